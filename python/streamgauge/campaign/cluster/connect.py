"""``--on``: the scheduler of a Dask cluster, its workers, and their preparation before the first trial."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from streamgauge.campaign.cluster.batches import Batches
from streamgauge.campaign.cluster.on_worker import Prepared, plan_digest
from streamgauge.campaign.cluster.workers import Workers, first_line
from streamgauge.campaign.plan import Job
from streamgauge.campaign.remote import EXTRA, Remote
from streamgauge.campaign.trial import EmuSettings
from streamgauge.campaign.work import Task
from streamgauge.campaign.workers import Watcher
from streamgauge.errors import CannotRunError, ScenarioError
from streamgauge.scenario import Scenario
from streamgauge.scenario.document import read_text
from streamgauge.scenario.limits import LimitError, check_text
from streamgauge.systems.registry import Mode

__all__ = ["Cluster", "connected", "scheduler_address"]

_ANSWER_S: Final = 10.0
"""How long a scheduler may take to answer."""


@contextlib.contextmanager
def connected(on: str) -> Iterator[Cluster]:
    """Yields the cluster at ``on``: a scheduler's address, a file that names it, or ``dask`` for that of
    Dask's own configuration.

    Raises CannotRunError if `distributed` is not installed or no scheduler answers, ScenarioError if ``on``
    names none.
    """
    try:
        import distributed
    except ImportError:
        raise CannotRunError(f"--on {on}: Dask is not installed; {EXTRA}.") from None
    address = scheduler_address(on)
    try:
        client = distributed.Client(address, timeout=_ANSWER_S, set_as_default=False, name="streamgauge")
    except (OSError, TimeoutError, ValueError) as error:
        raise CannotRunError(
            f"--on {on}: no Dask scheduler answers at {address} ({first_line(error)}). Start one there with "
            "'dask scheduler', and open its port in the firewall (docs/cluster.md)."
        ) from error
    try:
        yield Cluster(Workers(client, address))
    finally:
        # With a timeout: the scheduler itself may be dead.
        with contextlib.suppress(Exception):
            client.close(timeout=2)


def scheduler_address(on: str) -> str:
    """Returns the address of a scheduler that ``on`` names. Raises ScenarioError if there is none."""
    import dask

    if on == "dask":
        found = dask.config.get("scheduler-address", None)
        if found is None:
            raise ScenarioError(
                "--on dask: Dask's configuration names no scheduler; set scheduler-address in "
                "~/.config/dask/dask.yaml, or DASK_SCHEDULER_ADDRESS, or give the address itself"
            )
        return str(found)
    file = Path(on)
    if "://" not in on and (file.suffix in (".yaml", ".yml", ".json") or file.is_file()):
        return _address_in(file)
    if ":" not in on:
        raise ScenarioError(
            f"--on {on}: neither an address such as tcp://scheduler:8786, nor a file, nor 'dask'"
        )
    return on if "://" in on else f"tcp://{on}"


def _address_in(file: Path) -> str:
    """Returns the scheduler that a file names: Dask's configuration in YAML, which is in force from here on,
    or the file of ``dask scheduler --scheduler-file``."""
    import dask
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        text = read_text(file)
        check_text(text)
        data = YAML(typ="safe").load(text)
    except LimitError as error:
        raise ScenarioError(error.why, file=file, line=error.line) from None
    except (YAMLError, ValueError) as error:
        raise ScenarioError(f"is neither YAML nor JSON: {first_line(error)}", file=file) from None
    found = data if isinstance(data, dict) else {}
    address = found.get("scheduler-address", found.get("address"))
    if not isinstance(address, str):
        raise ScenarioError(
            "names no scheduler", file=file, hint="it wants 'scheduler-address: tcp://scheduler:8786'"
        )
    if "scheduler-address" in found:
        dask.config.update(dask.config.config, found, priority="new")
    return address


class Cluster:
    """Workers elsewhere, with the interface that processes of this machine have. Made by `connected`,
    prepared for a run by `prepare`, used by `run_all`."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self.address = workers.address
        self._root = Path()
        self._remote: Remote | None = None
        #: Wall time of a trial, s, by scenario and mode.
        self._pace: dict[tuple[str, Mode], float] = {}

    @property
    def warnings(self) -> list[str]:
        """Warnings from before the first trial and on the way; not fatal. The caller that prints one removes
        it."""
        return self._workers.warnings

    def threads(self, mode: Mode) -> int:
        """Returns how many trials of that mode its workers run at once."""
        self._workers.meet()
        return self._workers.threads(mode)

    def why_not(self, mode: Mode) -> str | None:
        """Returns why no worker can run ``mode``; None if one can. Waits for the first worker to come."""
        if not self.threads(mode):
            return (
                f"no worker of the cluster at {self.address} takes emu trials; start one with "
                f"'streamgauge worker {self.address}' on a machine that 'streamgauge doctor' calls able"
            )
        return None

    def prepare(
        self,
        scenarios: Sequence[Scenario],
        modes: Mapping[str, Sequence[Mode]],
        out: Path,
        *,
        seed: int,
        remote: Remote | None = None,
        way: str | None = None,
    ) -> None:
        """Makes sure that every worker can run these and put records there; ``seed`` is the first.

        Args:
            scenarios: the scenarios of the run.
            modes: the modes of each, by id.
            out: the campaign's folder, which workers share unless there is a ``remote``.
            seed: of the plans that workers must make as they are made here.
            remote: where records are written instead of ``out``.
            way: emu's.

        Raises CannotRunError naming the workers, and the missing parts of each.
        """
        self._root, self._remote = out.absolute(), remote
        self._workers.meet()
        with_clips = [
            (scenario, mode)
            for scenario in scenarios
            for mode in modes.get(scenario.id, ())
            if scenario.population is not None
            or any(flow.clip is not None for flow in scenario.in_mode(mode).flows.values())
        ]
        asked = Prepared(
            token=f"cluster-{uuid.uuid4().hex}",
            out=None if remote is not None else str(self._root),
            url=None if remote is None else remote.url,
            plans={
                f"{one.id} {mode}": (one, mode, seed, plan_digest(one, mode, seed))
                for one, mode in with_clips
            },
        )
        emu = any("emu" in of_one for of_one in modes.values())
        if emu and (why := self.why_not("emu")):
            raise CannotRunError(f"{why}.")
        self._workers.ask(asked, emu=emu, way=way)

    def expect(self, scenario: Scenario, mode: Mode, wall_s: float) -> None:
        """Sets the time of a trial, which is otherwise learned from the first: it decides the size of
        batches."""
        self._pace[scenario.id, mode] = wall_s

    def run_all(
        self, jobs: Sequence[Job], task: Callable[[Job], Task], emu: EmuSettings, watcher: Watcher
    ) -> None:
        """Runs all jobs, of one mode; calls `watcher` for each in this thread. Raises as `Batches.run`."""
        batches = Batches(self._workers, self._root, self._remote, self._pace, task, emu, watcher)
        batches.run(jobs)
