"""The same analysis on the users' own Ray cluster (extra `ray`): bundles must be readable from every node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.fleet.worker import Limits, Task, analyse, failed

RETRIES = 4


class NoRay(RuntimeError):
    """Ray is not installed, or no cluster can be reached."""


def ray_pool(tasks: Sequence[Task], limits: Limits, address: str | None = None) -> Iterator[tuple[Task, str]]:
    """(task, report JSON) as they are done. A task whose worker or node dies is run again elsewhere, `RETRIES` times.

    Raises NoRay when Ray is missing. `address` None = the cluster of `RAY_ADDRESS`, else one on this machine.
    """
    try:
        import ray
    except ImportError as problem:
        raise NoRay(
            "Ray is not installed. Install the extra: pip install 'stuckwarp[ray]', or leave out --engine ray"
        ) from problem
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False, include_dashboard=False)
        except (ConnectionError, RuntimeError, ValueError) as problem:
            raise NoRay(
                f"no Ray cluster can be reached: {problem}. Set RAY_ADDRESS or start one with `ray start`"
            ) from problem
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(analyse)
    width = max(2, int(ray.cluster_resources().get("CPU", 2)) * 2)
    waiting = iter(tasks)
    running: dict[object, Task] = {}
    while True:
        while len(running) < width and (task := next(waiting, None)) is not None:
            running[remote.remote(task, limits)] = task
        if not running:
            return
        ready, _ = ray.wait(list(running), num_returns=1)
        for reference in ready:
            task = running.pop(reference)
            try:
                report = ray.get(reference)
            except ray.exceptions.RayError as problem:
                report = failed(f"the cluster gave it up ({type(problem).__name__})", task.path)
            yield task, report
