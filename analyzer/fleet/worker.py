"""One bundle, in a process of its own: a bundle that eats memory, time or the interpreter harms nothing else."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

RECYCLED = 400
"""Bundles after which a worker is replaced: what was loaded or leaked goes with it."""


@dataclass(slots=True, frozen=True)
class Limits:
    """Per bundle: wall seconds and bytes of address space (0 = none)."""

    seconds: float = 300.0
    memory: int = 2 << 30


@dataclass(slots=True, frozen=True)
class Task:
    """A bundle to be analysed. `key` is what the result is filed under, `limits` as `budget_of` takes them."""

    key: str
    path: str
    rules: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()


def failed(why: str, path: str) -> str:
    """The report, as JSON, on a bundle that could not be analysed to its end."""
    from analyzer import __version__
    from analyzer.report import Report, Tool, TroubleNote

    return Report(
        tool=Tool(version=__version__, rulebook=""),
        verdict="unreadable",
        input=path,
        summary=f"This bundle was given up: {why}.",
        troubles=[TroubleNote(source=path, tag="limit", text=why)],
    ).model_dump_json()


def analysed(task: Task) -> str:
    """The report on one bundle as JSON. A pure function of the bundle: how long it took is left out."""
    from analyzer.analyze import analyze
    from analyzer.intake.budget import budget_of

    report = analyze([task.path], _rulebook(task.rules), budget_of(task.limits))
    return report.model_copy(update={"took_s": None}).model_dump_json()


_books: dict[tuple[str, ...], Any] = {}


def _rulebook(folders: tuple[str, ...]) -> Any:
    if folders not in _books:
        from analyzer.reasoning.rulebook import load

        _books[folders] = load(folders)
    return _books[folders]


def serve(pipe: Connection, memory: int) -> None:
    """A worker's life: tasks in, reports out, until the other end is gone."""
    if memory and sys.platform.startswith("linux"):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    while True:
        try:
            task = pipe.recv()
        except (EOFError, OSError, KeyboardInterrupt):
            return
        good = True
        try:
            report = analysed(task)
        except MemoryError:
            report, good = (
                failed(f"it needs more than the {memory >> 20} MiB of memory that one bundle may use", task.path),
                False,
            )
        except KeyboardInterrupt:
            return
        except Exception as problem:
            report = failed(f"an internal error ({type(problem).__name__}: {problem})"[:300], task.path)
        try:
            pipe.send((report, good))
        except OSError:
            return
        if not good:
            return


class Worker:
    """A process and the task it is at."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, limits.memory), daemon=True)
        self.process.start()
        theirs.close()
        self.task: Task | None = None
        self.done = 0
        self.deadline = 0.0

    def give(self, task: Task) -> None:
        """Start on a task."""
        self.task, self.deadline = task, time.monotonic() + self._limits.seconds
        self.pipe.send(task)

    def take(self) -> tuple[str, bool]:
        """(report JSON, whether the worker can go on) once the pipe is ready or the deadline has passed."""
        assert self.task is not None
        path = self.task.path
        if not self.pipe.poll(0):
            self.stop()
            return failed(f"it took longer than {self._limits.seconds:g} s", path), False
        try:
            report, good = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(5)
            code = self.process.exitcode
            how = f"by signal {-code}" if code is not None and code < 0 else f"with code {code}"
            return failed(f"the process that analysed it ended {how}", path), False
        self.done += 1
        return report, good and self.done < RECYCLED

    def stop(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def analyse(task: Task, limits: Limits) -> str:
    """One task in a worker that this process keeps for the next (a cluster engine's task)."""
    worker = _kept.pop() if _kept else Worker(limits)
    worker.give(task)
    worker.pipe.poll(limits.seconds)
    report, good = worker.take()
    if good:
        _kept.append(worker)
    else:
        worker.stop()
    return report


_kept: list[Worker] = []


def pool(
    tasks: Sequence[Task], limits: Limits, size: int, started: Callable[[Task], None] | None = None
) -> Iterator[tuple[Task, str]]:
    """(task, report JSON) in the order in which they are done, `size` at a time."""
    waiting = iter(tasks)
    busy: list[Worker] = []
    idle: list[Worker] = []
    try:
        while True:
            while len(busy) < size and (task := next(waiting, None)) is not None:
                worker = idle.pop() if idle else Worker(limits)
                try:
                    worker.give(task)
                except OSError:  # it died while idle
                    worker.stop()
                    worker = Worker(limits)
                    worker.give(task)
                if started is not None:
                    started(task)
                busy.append(worker)
            if not busy:
                return
            left = min(worker.deadline for worker in busy) - time.monotonic()
            ready = wait([worker.pipe for worker in busy], timeout=max(left, 0.0))
            for worker in list(busy):
                if worker.pipe not in ready and worker.deadline > time.monotonic():
                    continue
                busy.remove(worker)
                task_done = worker.task
                report, good = worker.take()
                if good:
                    idle.append(worker)
                else:
                    worker.stop()
                assert task_done is not None
                yield task_done, report
    finally:
        for worker in busy + idle:
            worker.stop()
