"""`pytest --review`: run only the tests that try to break a promise of promises.toml; one line for each promise."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

PROMISES: dict[int, str] = {
    int(number): text
    for number, text in tomllib.loads((Path(__file__).parent / "promises.toml").read_text())["promises"].items()
}


def numbers(item: pytest.Item) -> list[int]:
    """The promises that a test tries to break."""
    return [number for mark in item.iter_markers("promise") for number in mark.args]


class Review:
    """Collects the outcome of each marked test; a promise is `held` if it has a test and all of them pass."""

    def __init__(self) -> None:
        self._outcomes: dict[int, list[str]] = defaultdict(list)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        marked = [item for item in items if numbers(item)]
        config.hook.pytest_deselected(items=[item for item in items if not numbers(item)])
        items[:] = marked

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        item.user_properties.append(("promises", numbers(item)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            marked: Any = dict(report.user_properties)["promises"]
            for number in marked:
                self._outcomes[number].append(report.outcome)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("promises")
        for number, text in PROMISES.items():
            terminalreporter.write_line(f"{self._state(number):<9} {number:>2}  {text}")
        terminalreporter.write_line("held" if self.held else "not held")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self.held and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @property
    def held(self) -> bool:
        """True if every promise was tried, and none was broken."""
        return all(self._state(number) == "held" for number in PROMISES)

    def _state(self, number: int) -> str:
        outcomes = set(self._outcomes[number])
        if "failed" in outcomes:
            return "broken"
        return "held" if outcomes == {"passed"} else "not tried"
