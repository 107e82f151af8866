"""N37: what a log line carries acts in no output, on the whole way from the file to the text that is printed."""
# ruff: noqa: E501  (log lines are data)

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hostile.child import run_cli
from tests.hostile.logs import XID, XID_RULE

POISON = (
    "\x1b]52;c;cm0gLXJm\x07\x1b]8;;http://evil.example\x1b\\go\x1b]8;;\x1b\\\x1b]0;title\x07\x9b2J\u202egnp\u2066 [red]x[/red][/x]"
    "[link=http://evil.example]click[/link]</script><img src=http://evil.example/x.png onerror=alert(1)>{{7*7}}${7*7}```@team <!channel>"
    "![](http://evil.example/y.png)|=cmd()|'/c calc'!A1"
)


@pytest.mark.parametrize("form", ["text", "json", "markdown", "html", "slack"])
@pytest.mark.parametrize("options", [[], ["--no-redact"]], ids=["default", "raw"])
def test_poisoned_lines_are_inert(form: str, options: list[str], tmp_path: Path) -> None:
    poisoned = XID.replace("GPU has fallen", f"GPU has fallen{POISON} GPU has fallen").replace(
        "name=python3", f"name=py{POISON}thon"
    )
    (tmp_path / "dmesg.txt").write_text(poisoned + XID)
    (tmp_path / f"n{POISON[-30:].replace('/', '_')}.txt").write_text(XID.replace("0000:41", "0000:42"))
    ended = run_cli(["analyze", ".", "--format", form, *options, *(["--full"] if form == "text" else [])], tmp_path)
    assert ended.code in (0, 3), ended.err
    text = ended.out.decode()
    for active in ("\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\x00"):
        assert active not in text
    if form == "html":
        assert (
            "<img" not in text and "onerror=alert(1)>" not in text and text.count("<script") == text.count("</script>")
        )
    if form == "markdown":
        assert not any(line.startswith("![](") for line in text.splitlines())
    if form == "slack":
        assert "<!channel>" not in text
    if form == "json":
        assert XID_RULE in [h["rule"] for h in json.loads(text)["hypotheses"]]
