"""Several processes in one session (pytest-xdist): which tests go to one, and what they tell at its end."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).parent / "emu"))

from driving import STARVED, UNUSUAL
from guests import ON_THE_HOST
from people import tell_of_the_starved
from streamgauge.emu.machine.virtual import why_not
from streamgauge.scenario import Scenario, load
from trials_lock import take_own_lock

# The same examples in each run: what fails here fails anywhere. `make test-long` draws anew.
# A loaded machine is slow: neither an example's time nor the time to draw one is a finding.
_UNTIMED = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("same", derandomize=True, **_UNTIMED)
hypothesis.settings.register_profile("anew", derandomize=False, **_UNTIMED)
hypothesis.settings.load_profile("same")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Starts one Chromium for a session: Playwright runs once in a process."""
    sync = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not here (the extra 'dev'; make setup installs it)"
    )
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium here (scripts/packages-tests.txt; make test installs it as root)")
    with sync.sync_playwright() as playwright:
        # As root, and in a container, Chromium has no sandbox of its own. These pages are ours.
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="session")
def catalogue() -> tuple[Scenario, ...]:
    """Every scenario that ships, loaded once: it takes seconds. That their mutants make sense too is for
    tests/scenario/test_catalogue.py."""
    return tuple(load("*", mutants=False))


def pytest_configure(config: pytest.Config) -> None:
    # What is said to one of several processes (`--dist loadgroup`).
    if getattr(config.option, "loadgroup", False):
        take_own_lock()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Those of a module share what was prepared for it, and those that ask for `emulated` a run. Modules that
    # see what the whole machine has say so themselves: group "machine".
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            shared = "emulated" in getattr(item, "fixturenames", ())
            item.add_marker(pytest.mark.xdist_group("emulated" if shared else item.path.stem))
    # Without virtual machines they are trials of this one, and take turns with others.
    if why_not() is None:
        for item in items:
            if "guests" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.guest)


def pytest_collection_finish(session: pytest.Session) -> None:
    # xdist tells its scheduler the groups as endings of names; without them each test would go anywhere.
    if getattr(session.config.option, "loadgroup", False):
        alone = [item.nodeid for item in session.items if "@" not in item.nodeid]
        assert not alone, f"this pytest and pytest-xdist lose groups of tests: {alone[0]}"


def pytest_sessionfinish(session: pytest.Session) -> None:
    # Of several processes only the first one's terminal is seen.
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output.update(trials_starved=STARVED, trials_unusual=UNUSUAL, trials_on_the_host=ON_THE_HOST)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})
    STARVED.extend(output.get("trials_starved", []))
    UNUSUAL.extend(output.get("trials_unusual", []))
    ON_THE_HOST.extend(output.get("trials_on_the_host", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    tell_of_the_starved(terminalreporter)
