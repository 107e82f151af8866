"""The HTML report in a real Chromium, opened from file://: no console message, no request but the page, hostile text
inert, usable by keyboard, fluid with 10,000 events. Skipped where no Chromium is installed.

The browser is driven by the DevTools protocol over two pipes (`--remote-debugging-pipe`: JSON messages, each ended by
a zero byte), so that the test needs no further package.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analyzer.render import render
from analyzer.render.saved import load_report
from analyzer.report import Moment, Quote, Report, TimelineEvent

FOLDER = Path(__file__).parents[2] / "fixtures" / "render"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
QUIET = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--window-size=1280,900",
]  # fmt: skip
PATIENCE = 60.0
"""Seconds for one answer: a loaded machine starts a browser slowly."""


class Browser:
    """One headless Chromium with one page; `events` holds what it reported, in order."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # Above 9, so that neither end is closed by being put in place as descriptor 3 or 4.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_read, to_write)]
        actions = [
            (os.POSIX_SPAWN_DUP2, ends[0], 3),
            (os.POSIX_SPAWN_DUP2, ends[1], 4),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        arguments = [CHROMIUM, *QUIET, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        self._pid = os.posix_spawn(CHROMIUM, arguments, dict(os.environ), file_actions=actions, setpgroup=0)
        for end in (to_read, to_write, *ends):
            os.close(end)
        self._number = 0
        self._pending = b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        pages = [one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        page = pages[0]["targetId"] if pages else self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            self.call(f"{domain}.enable")

    def _messages(self, until: float) -> Iterator[dict[str, Any]]:
        while True:
            while b"\0" in self._pending:
                message, _, self._pending = self._pending.partition(b"\0")
                yield json.loads(message)
            ready, _, _ = select.select([self._read], [], [], max(until - time.monotonic(), 0))
            piece = os.read(self._read, 1 << 20) if ready else b""
            if not piece:
                return
            self._pending += piece

    def call(self, method: str, **parameters: Any) -> Any:
        """The result of one command; events that come meanwhile are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        for answer in self._messages(time.monotonic() + PATIENCE):
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self.events.append(answer)
        raise TimeoutError(f"no answer to {method}")

    def open(self, page: Path, *, dark: bool = False) -> None:
        """Load a file and wait until its script has drawn."""
        self.events.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media="screen", features=[scheme])
        self.call("Page.navigate", url=page.as_uri())
        until = time.monotonic() + PATIENCE
        while self.evaluate("document.readyState") != "complete" and time.monotonic() < until:
            time.sleep(0.05)
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """One key, down and up, to whatever has the focus."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def click(self, x: float, y: float) -> None:
        """One click of the main button at a place of the window, in CSS pixels."""
        for kind, buttons in (("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left" if buttons or "Re" in kind else
                      "none", buttons=buttons, clickCount=1)  # fmt: skip

    def complaints(self) -> list[str]:
        """Console messages, exceptions, log entries, issues (policy, deprecation) and every request beyond the page."""
        found = []
        for event in self.events:
            method, what = event.get("method", ""), event.get("params", {})
            if method in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded", "Audits.issueAdded",
                          "Page.javascriptDialogOpening"):  # fmt: skip
                found.append(json.dumps(what)[:600])
            if method == "Network.requestWillBeSent" and what["type"] != "Document":
                found.append("request: " + what["request"]["url"][:300])
        documents = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return found + [f"{len(documents)} requests"] * (len(documents) > 1)

    def close(self) -> None:
        """End this browser and its children, which are a process group of their own."""
        os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._read)
        os.close(self._write)


pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def _page(report: Report, folder: Path) -> Path:
    path = folder / "report.html"
    path.write_text(render(report, "html"), encoding="utf-8")
    return path


HOSTILE = (
    "\x1b]52;c;cm0gLXJm\x07\x1b]8;;http://127.0.0.1:9/a\x1b\\go\x1b]8;;\x1b\\\x1b]0;title\x07[red]x[/x][link=http://x]"
    "</script></pre></title><img src=http://127.0.0.1:9/x.png onerror=alert(1)><svg onload=alert(2)>"
    "<script>document.title='taken'</script><style>body{display:none}</style>\"'onmouseover='alert(3)"
    "{{7*7}}${7*7}```@team ![](http://127.0.0.1:9/y.png) | javascript:alert(4) \u202egnp =cmd()"
)


def _many(count: int, text: str = "Engine 000: Avg generation throughput: 12.5 tokens/s") -> list[TimelineEvent]:
    events = []
    for number in range(count):
        minute, second = divmod(number // 10, 60)
        time_ = f"2026-11-30T10:{minute:02d}:{second:02d}.{number % 10}00Z"
        quote = Quote(artifact="server.log", line=number + 1, text=text)
        events.append(TimelineEvent(
            time=time_, earliest=time_, latest=time_, kind="server_log.stats" if number % 9 else "kernel_log.xid",
            actor=f"Worker_TP{number % 8}", text=f"{number} {text}", source=quote,
            values={"generation tokens/s": float(number % 97)},
        ))  # fmt: skip
    return events


def _with_events(events: list[TimelineEvent]) -> Report:
    report = load_report(FOLDER / "identified.json")
    onset = Moment(time=events[len(events) // 2].time, what=events[0].text)
    timeline = report.timeline.model_copy(update={"events": events, "onset": onset, "last_progress": None})
    return report.model_copy(update={"timeline": timeline})


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["identified", "candidates", "unknown", "healthy", "unreadable"])
def test_the_page_opens_without_a_word_on_the_console_and_asks_for_nothing(
    browser: Browser, name: str, dark: bool, tmp_path: Path
) -> None:
    browser.open(_page(load_report(FOLDER / f"{name}.json"), tmp_path), dark=dark)
    assert browser.complaints() == []
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.evaluate("getComputedStyle(document.body).colorScheme") == "light dark"


def test_a_message_of_the_page_would_be_seen(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "loud.html"
    page.write_text("<!DOCTYPE html><title>x</title><img src=http://127.0.0.1:9/x.png><script>console.log(1)</script>")
    browser.open(page)
    complaints = "\n".join(browser.complaints())
    assert "127.0.0.1:9" in complaints and '"type": "log"' in complaints


def test_hostile_text_is_text(browser: Browser, tmp_path: Path) -> None:
    report = _with_events(_many(20, HOSTILE))
    item = report.hypotheses[0]
    poisoned = [piece.model_copy(update={"statement": HOSTILE, "source": Quote(artifact=HOSTILE, line=1, text=HOSTILE)})
                for piece in item.evidence_for]  # fmt: skip
    changed = item.model_copy(update={"title": HOSTILE, "why_here": HOSTILE, "evidence_for": poisoned})
    browser.open(_page(report.model_copy(update={"hypotheses": [changed], "summary": HOSTILE}), tmp_path))
    browser.evaluate("document.getElementById('canvas').focus()")
    for key in (".", ".", "Enter"):
        browser.press(key)
    browser.evaluate("new Promise(done => setTimeout(done, 100))")
    assert browser.complaints() == []
    assert browser.evaluate("document.querySelectorAll('img, svg, iframe, link, object').length") == 0
    assert browser.evaluate("document.querySelectorAll('script').length") == 2
    assert browser.evaluate("document.title").startswith("Identified")
    assert browser.evaluate("[...document.querySelectorAll('*')].every(one => [...one.attributes]"
                            ".every(given => !given.name.startsWith('on')))")  # fmt: skip
    assert "<img src=http" in browser.evaluate("document.getElementById('event').textContent")


def test_the_keyboard_reaches_an_event_and_its_record(browser: Browser, tmp_path: Path) -> None:
    browser.open(_page(_with_events(_many(400)), tmp_path))
    browser.evaluate("document.getElementById('canvas').focus()")
    before = browser.evaluate("document.getElementById('window').textContent")
    for key in ("+", "ArrowRight", "End", "Enter"):
        browser.press(key)
    browser.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert browser.evaluate("document.getElementById('window').textContent") != before
    # The last event lies beyond the rows that the page came with.
    assert "399 Engine" in browser.evaluate("document.activeElement.textContent")
    assert browser.evaluate("document.activeElement.tagName") == "TR"
    assert browser.evaluate("document.getElementById('records').open")


def test_a_click_goes_to_the_quoted_line(browser: Browser, tmp_path: Path) -> None:
    browser.open(_page(_with_events(_many(1) + _many(60)[-1:]), tmp_path))
    browser.evaluate("document.getElementById('canvas').scrollIntoView({block: 'center'})")
    box = browser.evaluate("(({left, top, width}) => ({left, top, width}))"
                           "(document.getElementById('canvas').getBoundingClientRect())")  # fmt: skip
    # The first event is in the first lane, 2 % of the range or half a second right of the labels.
    for x in range(200, int(box["width"]), 5):
        browser.click(box["left"] + x, box["top"] + 24 + 13)
        if browser.evaluate("document.activeElement.tagName") == "TR":
            break
    assert "server.log:1" in browser.evaluate("document.activeElement.textContent")


def test_ten_thousand_events_stay_fluid(browser: Browser, tmp_path: Path) -> None:
    browser.open(_page(_with_events(_many(10_000)), tmp_path))
    assert browser.complaints() == []
    spent = browser.evaluate(
        "(async () => { const canvas = document.getElementById('canvas'); const times = [];"
        "for (let step = 0; step < 20; step++) { const start = performance.now();"
        "canvas.dispatchEvent(new KeyboardEvent('keydown', {key: step % 2 ? '-' : '+'}));"
        "await new Promise(done => requestAnimationFrame(() => setTimeout(done)));"
        "times.push(performance.now() - start); } return times.sort((a, b) => a - b)[10]; })()"
    )
    assert spent < 250, f"{spent:.0f} ms a step"


def test_it_prints(browser: Browser, tmp_path: Path) -> None:
    browser.open(_page(load_report(FOLDER / "identified.json"), tmp_path))
    browser.call("Emulation.setEmulatedMedia", media="print")
    assert browser.evaluate("getComputedStyle(document.querySelector('.tools')).display") == "none"
    assert len(browser.call("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]) > 10_000
    assert browser.complaints() == []
