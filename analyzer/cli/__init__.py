"""The command line: one module a command, each loaded only when it is called, so that --help stays instant."""

from __future__ import annotations

import gc
import importlib
import sys

import click

COMMANDS = {
    "analyze": "Rank what went wrong in a folder, archive, file or standard input.",
    "triage": "The same for one pasted text.",
    "batch": "Many bundles at once: a report each, one table of incidents.",
    "similar": "Find earlier incidents like this one.",
    "timeline": "All sources merged on one axis of time.",
    "inspect": "What one artifact holds, as its parser sees it.",
    "rules": "Look up, explain and check the rules.",
    "show": "Render a saved report again.",
    "redact": "Write a copy of a bundle or report fit for sharing.",
    "schema": "Print a JSON Schema.",
}


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"analyzer.cli.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="stuckwarp", prog_name="stuckwarp")
def cli() -> None:
    """What hung or crashed on a GPU inference server, why, and what to do, from whatever artifacts are left.

    \b
    stuckwarp analyze bundle.tar.gz
    kubectl logs vllm-0 | stuckwarp triage -
    stuckwarp rules search "illegal instruction"
    """


def run() -> None:
    """Run the command line with the documented exit codes (docs/report-format.md)."""
    gc.set_threshold(50_000, 20, 20)  # a short run makes little garbage and many lasting objects
    try:
        code = cli.main(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.Abort:
        click.echo("stopped", err=True)
        sys.exit(130)
    except click.ClickException as problem:
        problem.show()
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except MemoryError:
        click.echo("stuckwarp ran out of memory. Give it fewer artifacts at once.", err=True)
        sys.exit(70)
    except Exception as problem:
        import os

        if os.environ.get("STUCKWARP_DEBUG"):
            raise
        click.echo(
            f"stuckwarp failed on this input: {type(problem).__name__} in {_where(problem)}. This is a fault of ours: "
            "please report it on the project's issue tracker (STUCKWARP_DEBUG=1 shows the trace).",
            err=True,
        )
        sys.exit(70)


def _where(problem: BaseException) -> str:
    place = problem.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return f"{place.tb_frame.f_code.co_name}:{place.tb_lineno}" if place is not None else "?"
