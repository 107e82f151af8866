"""Settings of the whole suite."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Machines that run this differ by a factor of ten, and the first example builds hypothesis' tables of characters: how
# fast an example is made says nothing about the code. What must be fast is measured in benchmarks/.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")
