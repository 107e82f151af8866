"""What events add up to. Each module of this folder has `observe(bundle)`, which yields observations."""

from __future__ import annotations

import importlib
import pkgutil

from analyzer.reasoning.bundle import Bundle


def observe(bundle: Bundle) -> None:
    """Run every observer and keep what it saw in `bundle.observations`."""
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda one: one.name):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for observation in module.observe(bundle):
            bundle.observations.setdefault(observation.name, []).append(observation)
