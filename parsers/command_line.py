"""Command lines as people paste them: which program, with which options and which environment.

`vllm serve MODEL --tensor-parallel-size 2`, `docker run -e NCCL_DEBUG=INFO --shm-size 1g IMAGE …`, `NAME=value
python …`. Nothing is run or expanded: `$HOME` stays `$HOME`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from parsers.collect_env import SECRET
from parsers.pattern import lazy
from parsers.vllm_log.facts import SETTING_NAMES

LONGEST = 16_384
MOST_WORDS = 2_000

PROGRAMS = frozenset(
    """
    vllm python python3 sglang trtllm-serve trtllm-bench lmdeploy tritonserver docker podman nerdctl crictl ctr
    compose docker-compose kubectl oc helm nvidia-smi nvidia-ctk nvidia-container-cli nvidia-bug-report.sh cuda-
    gdb gdb py-spy dmesg journalctl curl wget modprobe insmod rmmod lsmod modinfo dkms systemctl service apt
    apt-get dnf yum pip pip3 uv conda cat tail head less grep ls ps top htop lspci lsof dcgmi nvidia-
    persistenced mpirun mpiexec torchrun srun sbatch salloc ray accelerate genai-perf ibstat ibv_devinfo
    ibstatus rdma ulimit df du free uname date uptime mokutil strace pstack kill pkill killall reboot nohup
    timeout env export sudo bash sh source ssh scp git make cmake nvcc ninja mount umount sysctl taskset numactl
    ./deviceQuery ./bandwidthTest ./p2pBandwidthLatencyTest nccl-tests all_reduce_perf ./all_reduce_perf nv-
    hostengine nvidia-fabricmanager
    """.split()  # noqa: SIM905
)
"""Programs whose name at the head of a line makes that line a command."""
_LEADS = frozenset(("sudo", "nohup", "time", "env", "exec", "strace", "numactl", "taskset"))
_SERVERS = lazy(
    r"(?:^|[ /])(?:vllm (?:serve|bench|chat|complete)|vllm\.entrypoints|sglang(?:\.launch_server|\.bench_| serve"
    r"| launch)"
    r"|trtllm-(?:serve|bench)|lmdeploy serve)|vllm/vllm-openai|lmsysorg/sglang"
)
_ASSIGNMENT = lazy(r"(?P<name>[A-Za-z_][A-Za-z0-9_]{1,80})=(?P<value>.*)$")
_OPTION = lazy(r"--(?P<name>[A-Za-z][\w.-]{1,80})(?:=(?P<value>.*))?$")
_IMAGE = lazy(r"(?=[a-z])(?:[\w.-]{1,100}(?::\d{2,5})?/){0,4}[\w.-]{1,100}:[\w][\w.-]{0,127}$")
_SECRET_OPTION = lazy(r"(?:^|_)(?:token|api_key|key|secret|password|credentials?)$")
_SHORT = {
    "-tp": "tensor-parallel-size",
    "-pp": "pipeline-parallel-size",
    "-dp": "data-parallel-size",
    "-q": "quantization",
}
_CONTAINERS = frozenset(("docker", "podman", "nerdctl", "docker-compose"))
_SECRET_VALUE = lazy(
    r"(?i)((?:token|secret|passw\w{0,8}|api[_-]?key|access[_-]?key|credentials?)[= ]{1,2}"
    r"|bearer )[^\s\"']{4,400}"
)
_TYPOGRAPHY = str.maketrans({"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'"})


@dataclass(slots=True)
class Command:
    """A command taken apart. `options` are the long options in order, without dashes, a flag's value is "True";
    `variables` are those set on the line (the values of secrets are not kept)."""

    program: str
    text: str
    options: list[tuple[str, str]] = field(default_factory=list)
    variables: list[tuple[str, str]] = field(default_factory=list)
    model: str | None = None
    image: str | None = None

    @property
    def shown(self) -> str:
        """The line with the values of secrets taken out."""
        return _SECRET_VALUE.sub(r"\1(set)", self.text)

    @property
    def server(self) -> bool:
        """Whether it starts or measures an inference server."""
        return _SERVERS.search(self.text) is not None

    def facts(self) -> Iterator[tuple[str, str, str]]:
        """(fact, value, how the line spells it): settings under the names that server logs give them, and every option
        of a server as `arg.NAME`."""
        for name, value in self.variables:
            yield f"env.{name}", value or "''", f"{name}="
        if self.image:
            yield "image", self.image, self.image
        if not self.server:
            return
        if self.model:
            yield "model.name", self.model, self.model
        for name, value in self.options:
            plain = name.replace("-", "_")
            known = SETTING_NAMES.get(plain)
            if _SECRET_OPTION.search(plain):
                continue
            if known and value not in ("", "auto", "None"):
                yield known, value, name
            yield f"arg.{plain}", value, name


def words_of(text: str) -> list[str]:
    """The words of a command line; quotes that do not close are taken as they stand. An en dash before a word is what
    word processors make of `--`."""
    text = re.sub(r"(?:(?<=\s)|^)[\u2013\u2014](?=[a-z])", "--", text[:LONGEST].translate(_TYPOGRAPHY))
    try:
        words = shlex.split(text, comments=False)
    except ValueError:
        words = text.replace('"', "").replace("'", "").split()
    return [word for word in words if word != "\\"][:MOST_WORDS]


def program_of(words: Sequence[str]) -> int | None:
    """The place of the program among the words: behind `sudo`, `timeout 30`, assignments; None without one."""
    at = 0
    while at < len(words):
        word = words[at]
        if word in _LEADS and at + 1 < len(words):
            at += 1
        elif word == "timeout" and at + 2 < len(words):
            at += 1
            while at < len(words) - 1 and (words[at].startswith("-") or re.fullmatch(r"[\d.]+[smhd]?", words[at])):
                at += 1
        elif _ASSIGNMENT.match(word) or (at and word.startswith("-")):
            at += 1
        else:
            break
    if at >= len(words):
        return len(words) - 1 if words and words[0] in ("export", "env") else None
    return at if words[at] in PROGRAMS or words[at].startswith(("./", "/usr/", "/opt/", "/bin/")) else None


def read_command(text: str) -> Command | None:
    """Take a command line apart (continuation lines already joined); None when it names no known program."""
    words = words_of(text)
    at = program_of(words)
    if at is None:
        return None
    program = words[at].rsplit("/", 1)[-1]
    command = Command(program, text.strip()[:LONGEST])
    for word in words[:at] if program != "export" else words[at + 1 :]:
        found = _ASSIGNMENT.match(word)
        if found and found["name"].isupper():
            _set(command, found["name"], found["value"])
    _options(command, words[at + 1 :], containers=program in _CONTAINERS)
    return command


def _set(command: Command, name: str, value: str) -> None:
    command.variables.append((name, "(set)" if SECRET.search(name) else value[:400]))


def _options(command: Command, words: list[str], *, containers: bool) -> None:
    previous = ""
    for at, word in enumerate(words):
        if word in _SHORT and at + 1 < len(words):
            command.options.append((_SHORT[word], words[at + 1][:400]))
            continue
        if containers and (previous in ("-e", "--env") or word.startswith("--env=")):
            found = _ASSIGNMENT.match(word.removeprefix("--env="))
            if found:
                _set(command, found["name"], found["value"])
            previous = word
            continue
        option = _OPTION.match(word)
        if option:
            value = option["value"]
            if value is None:
                following = words[at + 1] if at + 1 < len(words) else "-"
                value = "True" if following.startswith("-") and not re.match(r"-\d", following) else following
            if option["name"] not in ("env", "mount", "volume", "name"):
                command.options.append((option["name"], value[:400]))
        elif containers and command.image is None and _IMAGE.match(word):
            command.image = word
            command.options.clear()  # what stands before the image are the container's own options
        elif word == "serve" and at + 1 < len(words) and not words[at + 1].startswith("-"):
            command.model = words[at + 1]
        previous = word
    for name, value in command.options:
        if name in ("model", "model-path") and value != "True":
            command.model = value
