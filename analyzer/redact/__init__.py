"""Make a text, a report or a whole bundle fit for sharing: secrets, users' text and names become placeholders.

One value has one placeholder everywhere in a bundle (`<token-1>`, `host-2`, `<ip-3>`), so that what belongs together
still does; lines stay lines; what rules and parsers need (kernel names, Xid lines, PCI addresses, versions) stays.
Best effort by design: docs/safety.md says what it cannot promise.
"""

from __future__ import annotations

from analyzer.redact.bundle import redact_bundle
from analyzer.redact.redactor import Redactor, redact_text
from analyzer.redact.report import redact_report

__all__ = ["Redactor", "redact_bundle", "redact_report", "redact_text"]
