"""What a person saw in a shell: prompts, commands, and the words with which tools, installers and runtimes fail.

Read as notes: silence in a transcript says nothing, since it holds what somebody chose to run. Output that another
parser knows (a table of nvidia-smi, kernel lines) is cut out before this parser gets the rest.

Texts: containerd/runc and libnvidia-container (`nvidia-container-cli: …`, its `src/cli`), kmod (`modprobe: FATAL: …`),
DKMS, nvidia-installer (its .run log), systemctl, kubectl, bash, GNU timeout, and the samples of the CUDA toolkit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from parsers import cuda_errors
from parsers.command_line import PROGRAMS, Command, read_command
from parsers.contract import Line, Trouble
from parsers.event import NOBODY, Event, fact
from parsers.nvidia_smi import failures as nvml
from parsers.pattern import lazy

MAX_EVENTS = 5_000
LONGEST_LINE = 4_000
MOST_CONTINUED = 200

PROMPT = lazy(
    r"(?:\([\w.@/ -]{1,40}\) ?)?(?:\[?[\w.-]{1,40}@[\w.-]{1,80}(?:[: ][^\n$#>]{0,120})?\]?(?P<sign>[$#]) {0,3}|\$ +"
    r"|(?:~|/[\w./-]{0,80})[$#] +|\++ )(?P<command>\S.{0,4000})"
)
ROOT = lazy(r"# (?P<command>[a-z./][\w./-]{0,60}(?: .{0,2000})?)$")
BARE = lazy(r"(?P<program>\.{0,2}/?[a-z][\w./-]{0,60})(?P<rest>(?: .{0,2000})?)$")
_ARGUMENTS = lazy(r"\s*$|.{0,200}(?:\s-{1,2}[A-Za-z]|\s\.{0,2}/[\w.]|\s[\w-]+=\S|\s\|\s|\\\s*$)")

FAILURES = (
    (lazy(r".{0,300}OCI runtime (?:create|exec) failed"), "container runtime", "start"),
    (
        lazy(r".{0,300}(?:runc (?:create|exec) failed|failed to create (?:shim|containerd) task)"),
        "container runtime",
        "start",
    ),
    (lazy(r".{0,300}nvidia-container-cli(?:\.real)?: "), "nvidia-container-cli", "start"),
    (
        lazy(r".{0,300}(?:could not select device driver|unknown or invalid runtime name)"),
        "container runtime",
        "runtime",
    ),
    (
        lazy(r"(?:docker: )?Error response from daemon: |ERROR: for \S{1,80} {1,4}Cannot start service"),
        "container runtime",
        "daemon",
    ),
    (lazy(r"(?:modprobe|insmod|rmmod|depmod|modinfo): (?:ERROR|FATAL|error|could not)"), "kmod", "module"),
    (
        lazy(
            r"ERROR: (?:The kernel module failed to load|Unable to load the (?:kernel module|'nvidia)"
            r"|Unable to (?:find|build)"
            r"|An error occurred while performing the step|Installation has failed|The Nouveau kernel driver"
            r"|You appear to be"
            r" running|Failed to (?:run|find|build|install)|Kernel (?:module|source)|An NVIDIA kernel module)"
        ),
        "nvidia-installer",
        "install",
    ),
    (
        lazy(r"Error! (?:Bad return status|Your kernel headers|Could not|The dkms|Build of)|dkms: .{0,80}fail"),
        "dkms",
        "build",
    ),
    (lazy(r"make(?:\[\d{1,3}\])?: \*\*\* |ninja: (?:error|build stopped|fatal)"), "build", "build"),
    (
        lazy(
            r"(?:-?bash|sh|zsh|/bin/sh)(?:: line \d+)?: .{1,200}: (?:command not found|No such file|Permission denied"
            r"|Cannot allocate|fork)"
        ),
        "shell",
        "command",
    ),
    (lazy(r"timeout: (?:sending signal|the monitored command dumped core)"), "timeout", "timeout"),
    (
        lazy(
            r"(?:Killed|Segmentation fault|Bus error|Illegal instruction|Aborted"
            r"|Terminated)(?: {1,4}\(core dumped\))?\s*$"
        ),
        "shell",
        "killed",
    ),
    (
        lazy(r"Job for \S{1,120} failed|Failed to (?:start|restart|enable|connect to bus)\b|\s{2,}Active: failed"),
        "systemctl",
        "service",
    ),
    (
        lazy(
            r"Error from server|error: (?:unable to|timed out|error executing|You must be logged)"
            r"|The connection to the server"
            r" \S{1,120} was refused|Unable to connect to the server"
        ),
        "kubectl",
        "cluster",
    ),
    (
        lazy(
            r"(?:-> |Result = FAIL|cuda\w{4,60} returned -?\d{1,4}\b|.{0,200}\(error code .{1,120}\)!|CUDA (?:error"
            r"|Error) at "
            r"|.{0,120}failed with error .{0,80}CUDA)"
        ),
        "cuda program",
        "cuda",
    ),
    (lazy(r"srun: error: |slurmstepd: error: |sbatch: error: |mpirun (?:noticed|detected) that "), "job", "job"),
    (
        lazy(r"NVIDIA-SMI has failed|Failed to initialize NVML|Unable to determine the device handle"),
        "nvidia-smi",
        "nvml",
    ),
)
SURE_FAILURES = lazy(
    r"docker: Error response from daemon: |(?:modprobe|insmod): (?:ERROR|FATAL): "
    r"|ERROR: The kernel module failed to load"
    r"|ERROR: Unable to load the (?:kernel module|'nvidia)|ERROR: for \S{1,80} {1,4}Cannot start service"
    r"|Error! (?:Bad return status for module build|Your kernel headers for kernel)"
)
"""Texts that no server writes at the head of a line."""
OUTPUT = lazy(
    r"[ac] (?:\d{1,4}|\*):(?:\d{1,4}|\*) [rwm]{1,3}\b|\w{2,16}, \d{1,8}, [ac] \d{1,4}:|\s*: \[#+\s*\]\s+\d{1,3}%"
    r"|Building kernel modules|(?:Installing|Verifying|Uncompressing|Extracting|Running|Creating|Starting|Pulling"
    r"|Unable to find"
    r" image) .{0,80}|\[Vector addition of |CUDA Device Query|\s?CUDA Device Query \(|\./?\w+ Starting\.\.\."
    r"|pid \d+ scenario"
    r"|launched\s*$|finished without error|\.\.\.\s*$|Detected \d+ CUDA Capable|Copy input data|CUDA kernel launch"
    r"|Test PASSED"
    r"|(?:Result = PASS|Done)\s*$|Launching pod|\w[\w.-]{0,80}\s+\d+/\d+\s+\w+\s+\d+"
    r"|ERROR: Encountered errors while bringing"
)
EXIT = lazy(
    r"(?:[\w./-]{1,60}:? )?(?:rc|exit(?:ed)?(?: with)?[ _]?(?:code|status)?|return ?code|\$\?|EXIT(?:_CODE)?"
    r"|Command terminated by (?P<signal>signal)|Command exited with non-zero status)"
    r"\s{0,2}[=:]?\s{0,2}(?P<code>-?\d{1,3})\s*$"
)
_CODE = lazy(r"[1-9]\d{0,2}\s*$")
LOG_FRONT = lazy(
    r"\s*(?:\([\w .]{1,60}pid=\d+|(?:DEBUG|INFO|WARNING|CRITICAL)\b|\[?\d{4}-\d\d-\d\d[T ]\d\d:|Traceback \(|  File \""
    r"|\[rank\d|[\w.-]+:\d+:\d+ \[\d+\] NCCL|\[\s*\d+\.\d{6}\])"
)


def _command(text: str, *, bare: bool = True) -> str | None:
    """The command that a line holds behind its prompt, or alone; None for any other line."""
    found = PROMPT.match(text)
    if found:
        command = found["command"]
        sure = found["sign"] is not None
        return command if sure or read_command(command.rstrip("\\")) is not None else None
    found = ROOT.match(text)
    if found:
        first, _, rest = found["command"].partition(" ")
        return found["command"] if first in PROGRAMS and _ARGUMENTS.match(f" {rest}" if rest else "") else None
    if not bare:
        return None
    if read := BARE.match(text):
        program = read["program"]
        if (program in PROGRAMS or program.startswith("./")) and _ARGUMENTS.match(read["rest"]):
            return text if not (program.startswith("./") and read["rest"].endswith("...")) else None
    if "=" in text[:80] and " " in text and (command := read_command(text.rstrip("\\"))) is not None:
        return text if command.variables else None
    return None


def _failure(text: str) -> tuple[str, str] | None:
    return next(((tool, what) for pattern, tool, what in FAILURES if pattern.match(text)), None)


class Terminal:
    """A TextParser of shell transcripts and of what tools print when they fail."""

    name: ClassVar[str] = "terminal"
    kind: ClassVar[str] = "notes"
    marks: ClassVar[tuple[bytes, ...]] = ()

    def sniff(self, head: str) -> float:
        """0.7 where most lines are commands, failures or output of these tools; 0.45 where one is in a short text; 0
        where a fifth of the lines are records of a log."""
        lines = [line[:LONGEST_LINE] for line in head.split("\n")[:300] if line.strip()]
        if not lines or 5 * sum(LOG_FRONT.match(line) is not None for line in lines) > len(lines):
            return 0.0
        telling = other = 0
        continued = False
        for line in lines:
            text = line.rstrip("\r")
            is_command = _command(text) is not None
            if is_command or _failure(text) is not None or EXIT.match(text):
                telling += 1
            elif OUTPUT.match(text) or (continued and text.startswith((" ", "-", "\u2013", "\t"))):
                other += 1
            continued = (is_command or continued) and text.endswith("\\")
        if telling == 0:
            return 0.0
        share = (telling + other) / len(lines)
        return (
            0.7 if share >= 0.5 else 0.45 if len(lines) <= 80 and (telling >= 2 or telling * 4 >= len(lines)) else 0.0
        )

    def claims(self, text: str) -> bool:
        """A prompt with a known command, or a failure that only such a tool writes."""
        if SURE_FAILURES.match(text):
            return True
        found = PROMPT.match(text[:LONGEST_LINE])
        return (
            found is not None and not text.startswith("+") and read_command(found["command"].rstrip("\\")) is not None
        )

    def read(self, lines: Iterable[Line], source: str) -> Iterator[Event | Trouble]:
        """`notes.command` with the facts that it states, `notes.failure`, `server_log.cuda_error`, `process.exit` and
        `gpu_samples.error`, in the order of the lines."""
        held: list[Line] = []
        asked = False
        count = 0
        for line in lines:
            text = line.text.rstrip("\r")[:LONGEST_LINE]
            if held and len(held) < MOST_CONTINUED:
                held.append(line)
                if text.rstrip().endswith("\\"):
                    continue
            elif (_command(text)) is not None:
                held = [line]
                if text.rstrip().endswith("\\"):
                    continue
            if held:
                found, held = list(self._said(held, source)), []
                asked = found[0].fields["command"].endswith("echo $?")
            elif asked and _CODE.match(text):
                asked = False
                fields = {"exit_code": int(text), "reason": None, "name": None}
                found = [Event("process.exit", line.span(source), line.text, line.outer, NOBODY, fields)]
            else:
                found = list(self._output(text, line, source))
            for event in found:
                count += 1
                if count > MAX_EVENTS:
                    yield Trouble(source, "limit", f"more than {MAX_EVENTS} commands and failures", line.number)
                    return
                yield event
        if held:
            yield from self._said(held, source)
            yield Trouble(source, "truncated", "the text ends inside a command that goes on", held[-1].number)

    @staticmethod
    def _said(held: list[Line], source: str) -> Iterator[Event]:
        first = held[0]
        body = _command(first.text.rstrip("\r")) or first.text
        joined = " ".join(part.rstrip("\\ \r") for part in [body, *(line.text.strip() for line in held[1:])]).strip()
        command: Command | None = read_command(joined)
        fields = {
            "program": command.program if command else joined.split(" ", 1)[0],
            "command": command.shown[:LONGEST_LINE] if command else joined[:LONGEST_LINE],
        }
        yield Event("notes.command", first.span(source), first.text, first.outer, NOBODY, fields)
        told: set[tuple[str, str]] = set()
        for name, value, spelled in command.facts() if command else ():
            if (name, value) in told:
                continue
            told.add((name, value))
            shown = next((line for line in held if spelled in line.text), first)
            yield fact(name, value, shown.span(source), shown.text, stamp=first.outer)

    @staticmethod
    def _output(text: str, line: Line, source: str) -> Iterator[Event]:
        broken = nvml.event(line, source)
        if broken is not None:
            yield broken
        failed = _failure(text)
        if failed is not None:
            tool, what = failed
            fields = {"tool": tool, "what": what, "message": text.strip()[:800]}
            yield Event("notes.failure", line.span(source), line.text, line.outer, NOBODY, fields)
            returned = lazy(r"cuda\w{4,60} returned -?(\d{1,4})\b").match(text.strip())
            errors = cuda_errors.find(text) if what == "cuda" else []
            if returned and (error := cuda_errors.decode(int(returned[1]))) is not None and error.code:
                errors = [error, *(one for one in errors if one.code != error.code)]
            for error in errors[:4]:
                about = {"code": error.code, "name": error.name, "call": None}
                yield Event("server_log.cuda_error", line.span(source), line.text, line.outer, NOBODY, about)
        ended = EXIT.match(text.strip())
        if ended and int(ended["code"]):
            code = -int(ended["code"]) if ended["signal"] else int(ended["code"])
            fields_of = {"exit_code": code, "reason": None, "name": None}
            yield Event("process.exit", line.span(source), line.text, line.outer, NOBODY, fields_of)

    def inspect(self, lines: Iterable[Line], source: str) -> dict[str, Any]:
        """`commands` (line, program, command), `failures` (line, tool, what, message), `facts` (name -> values)."""
        view: dict[str, Any] = {"commands": [], "failures": [], "facts": {}}
        for item in self.read(lines, source):
            if not isinstance(item, Event):
                continue
            if item.kind == "fact":
                values = view["facts"].setdefault(item.fields["name"], [])
                if item.fields["value"] not in values:
                    values.append(item.fields["value"])
            elif item.kind in ("notes.command", "notes.failure"):
                place = "commands" if item.kind == "notes.command" else "failures"
                view[place].append({"line": item.span.first_line, **item.fields})
        return view


PARSER = Terminal()
