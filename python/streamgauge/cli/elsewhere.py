"""``--on`` and ``--out URL``: trials that run on a cluster, and records that go to an object store."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamgauge.campaign import CampaignResult
from streamgauge.campaign.cluster import Cluster, connected
from streamgauge.campaign.remote import Remote, as_folder, is_url
from streamgauge.cli.output import remark
from streamgauge.errors import ScenarioError
from streamgauge.scenario import Scenario
from streamgauge.systems.registry import Mode

__all__ = ["Elsewhere", "local_copy", "placed"]


@dataclass(frozen=True)
class Elsewhere:
    """A cluster, and where its records go."""

    cluster: Cluster
    out: Path
    """The folder that its workers share; with ``remote`` a local one, for fetched files."""
    remote: Remote | None = None

    def prepare(
        self,
        scenarios: Sequence[Scenario],
        modes: Mapping[str, Sequence[Mode]],
        *,
        seed: int,
        way: str | None,
    ) -> None:
        """Makes sure that its workers can run these, and prints other warnings. Raises CannotRunError."""
        self.cluster.prepare(scenarios, modes, self.out, seed=seed, remote=self.remote, way=way)
        self.tell()

    def tell(self) -> None:
        """Prints the cluster's messages."""
        while self.cluster.warnings:
            remark(f"warning: {self.cluster.warnings.pop(0)}")

    def where(self, directory: Path) -> str:
        """Returns a folder of the campaign, by the user's name."""
        if self.remote is None:
            return str(directory)
        below = directory.relative_to(self.out).as_posix()
        return self.remote.url if below == "." else f"{self.remote.url}/{below}"

    def fetch(self, result: CampaignResult) -> None:
        """Fetches the sources of tables and figures."""
        if self.remote is not None:
            self.remote.fetch(self.out, under=result.out.relative_to(self.out).as_posix())

    def put(self, folder: Path, files: Sequence[Path]) -> None:
        """Takes files of the campaign's folder to where its records are."""
        if self.remote is not None:
            self.remote.put(folder, files)

    def directories(self, trials: Sequence[dict[str, Any]]) -> None:
        """Sets the folders of trials in ``streamgauge.run/1``."""
        for trial in trials:
            trial["directory"] = self.where(Path(trial["directory"]))


@contextmanager
def placed(on: str | None, out: str, *, jobs: int = 1) -> Iterator[tuple[Path, Elsewhere | None]]:
    """The campaign's folder, and the cluster that was asked for.

    Raises ScenarioError or CannotRunError, naming the option, before anything is started.
    """
    folder = as_folder(out) if is_url(out) else Path(out)
    if on is None:
        if folder is None:
            raise ScenarioError(
                f"--out {out}: only workers of a cluster put records there. Add --on (docs/cluster.md), or "
                "give a folder."
            )
        yield folder, None
        return
    if jobs > 1:
        raise ScenarioError(
            "--jobs is for this machine. A worker of the cluster runs one emu trial for each 'emu' resource."
        )
    with ExitStack() as stack:
        remote = None
        if folder is None:
            # Before any request to the cluster: whether it can be reached and no other process writes it.
            remote = Remote(out)
            stack.enter_context(remote.writing())
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamgauge-")))
        cluster = stack.enter_context(connected(on))
        yield folder, Elsewhere(cluster, folder if remote is not None else folder.absolute(), remote)


@contextmanager
def local_copy(where: str, *, large: bool = False) -> Iterator[Path]:
    """The records at a URL as a folder that is gone afterwards, packets and events too if `large`; a folder
    as it is. Raises ScenarioError if none are there."""
    folder = as_folder(where) if is_url(where) else Path(where)
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="streamgauge-") as copy:
        if not Remote(where).fetch(Path(copy), below=True, large=large):
            raise ScenarioError(
                f"{where}: no records are there; name a URL to which run or reproduce took them"
            )
        yield Path(copy)
