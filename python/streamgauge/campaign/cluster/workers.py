"""The workers of a cluster, and the missing parts of each."""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamgauge.campaign.cluster.on_worker import (
    EMU,
    Prepared,
    look,
    prepare,
    version,
    version_words,
)
from streamgauge.errors import CannotRunError
from streamgauge.systems.registry import Mode

if TYPE_CHECKING:
    from distributed import Client

__all__ = ["Workers", "cannot_answer", "first_line"]

_WORKERS_S: Final = 60.0
"""How long there may be no worker."""
_APART_S: Final = 1.0
"""Largest difference of clocks without a warning."""
_MOST_SAID: Final = 3


class Workers:
    """Those at the scheduler that `client` is connected to."""

    def __init__(self, client: Client, address: str) -> None:
        self.client = client
        self.address = address
        #: Those that take trials, if there are others that may not.
        self.only: list[str] | None = None
        self._known: dict[str, dict[str, Any]] = {}
        #: Those that get nothing.
        self._bad: set[str] = set()
        self._none_since: float | None = None
        #: Warnings on the way; not fatal.
        self.warnings: list[str] = []

    def threads(self, mode: Mode) -> int:
        """Returns how many trials of that mode they run at once."""
        if mode == "emu":
            return self._slots(EMU)
        addresses = self._known if self.only is None else self.only
        return sum(int(self._known[address]["threads"]) for address in addresses)

    def _slots(self, resource: str) -> int:
        return sum(int(told["resources"].get(resource, 0)) for told in self._known.values())

    def meet(self) -> None:
        """Looks at every worker. Raises CannotRunError if there is none, or one of another version."""
        deadline = time.monotonic() + _WORKERS_S
        while not (nthreads := self.client.nthreads()):
            if time.monotonic() > deadline:
                raise CannotRunError(
                    f"the Dask scheduler at {self.address} has no worker. Start some with "
                    f"'streamgauge worker {self.address}', or by your batch system (docs/cluster.md)."
                )
            time.sleep(0.2)
        self._known = {address: told for address, told in self._known.items() if address in nthreads}
        new = [address for address in nthreads if address not in self._known]
        before = time.time()
        told = self._run(look, workers=new)
        after = time.time()
        mine = version()
        self._raise(
            {
                address: f"has {version_words(found)}, this machine {version_words(mine)}; install the same"
                for address, found in told.items()
                if {key: found.get(key) for key in mine} != mine
            }
        )
        self._known |= told
        # A clock that is later than the answer, or earlier than the question, is off by at least that much.
        apart = {
            found["host"]: max(found["now"] - after, before - found["now"], 0.0) for found in told.values()
        }
        for host, apart_s in apart.items():
            if apart_s > _APART_S:
                self.warnings.append(
                    f"the clock of {host} is {apart_s:.0f} s or more apart from this machine's; the times in "
                    "its records are its own (let NTP set it)"
                )

    def _run(self, function: Callable[..., Any], *arguments: Any, workers: list[str]) -> dict[str, Any]:
        """Returns each worker's answer, aside from its trials. Raises CannotRunError naming those that
        fail."""
        if not workers:
            return {}
        with self.talking():
            told: dict[str, Any] = self.client.run(function, *arguments, workers=workers, on_error="return")
        failed = {address for address, found in told.items() if isinstance(found, Exception)}
        if failed:
            # A worker that died meanwhile needs no message.
            failed &= set(self.client.nthreads())
            self._raise({address: cannot_answer(told[address]) for address in failed})
        return {address: found for address, found in told.items() if not isinstance(found, Exception)}

    def _raise(self, lacking: Mapping[str, str]) -> None:
        if not lacking:
            return
        lines = [f"worker {address}{self._host(address)}: {why}" for address, why in lacking.items()]
        more = f"\nand {len(lines) - _MOST_SAID} more" if len(lines) > _MOST_SAID else ""
        raise CannotRunError("\n".join(line.rstrip(".") + "." for line in lines[:_MOST_SAID]) + more)

    def _host(self, address: str) -> str:
        known = self._known.get(address)
        return f" on {known['host']}" if known else ""

    def ask(self, asked: Prepared, *, emu: bool, way: str | None) -> None:
        """Every worker of its folder; of all else one a machine."""
        first = {told["host"]: address for address, told in reversed(self._known.items())}
        able = {address for address, told in self._known.items() if told["resources"].get(EMU)}
        slim = replace(asked, plans={}, url=None)
        lacking: dict[str, list[str]] = {}
        probe = None if asked.out is None else Path(asked.out) / f".{asked.token}"
        made = probe is not None and not probe.parent.exists()
        try:
            if probe is not None:
                probe.parent.mkdir(parents=True, exist_ok=True)
                probe.write_text(asked.token, encoding="utf-8")
            for full, needs_emu in itertools.product((True, False), (True, False)):
                workers = [
                    address
                    for address in self._known
                    if (address in first.values()) == full and (emu and address in able) == needs_emu
                ]
                question = replace(asked if full else slim, emu=needs_emu, way=way)
                lacking |= self._run(prepare, question, workers=workers)
        finally:
            if probe is not None:
                for file in probe.parent.glob(f".{asked.token}*"):
                    file.unlink(missing_ok=True)
                if made:
                    with contextlib.suppress(OSError):
                        probe.parent.rmdir()
        self._raise({address: found[0] for address, found in lacking.items() if found})

    @contextlib.contextmanager
    def talking(self) -> Iterator[None]:
        """Whatever Dask raises where no trial is to blame."""
        from distributed import CancelledError

        try:
            yield
        except (OSError, TimeoutError, CancelledError) as error:
            raise self.gone() from error
        except RuntimeError as error:
            if self.client.status == "running":
                raise
            raise self.gone() from error

    def gone(self) -> CannotRunError:
        return CannotRunError(
            f"the Dask scheduler at {self.address} is gone, or dropped its tasks. Start it and run the "
            "same command, which resumes."
        )

    def see_who_is_there(self, refusing: str = "") -> None:
        """Forgets workers that left, and checks new ones: one of another version gets nothing."""
        with self.talking():
            there = self.client.nthreads()
        self._known = {address: told for address, told in self._known.items() if address in there}
        if there:
            self._none_since = None
        elif self._none_since is None:
            self._none_since = time.monotonic()
        elif time.monotonic() - self._none_since > _WORKERS_S:
            raise CannotRunError(
                f"the cluster at {self.address} has had no worker for {_WORKERS_S:.0f} s. Start some and run "
                "the same command, which resumes."
            )
        mine = version()
        self._bad &= set(there)
        if refusing in self._known:
            del self._known[refusing]
        for address in set(there) - self._known.keys() - self._bad:
            with self.talking():
                (found,) = self.client.run(look, workers=[address], on_error="return").values()
            if isinstance(found, dict) and {key: found.get(key) for key in mine} == mine:
                self._known[address] = found
                continue
            self._bad.add(address)
            why = f"has {version_words(found)}" if isinstance(found, dict) else cannot_answer(found)
            self.warnings.append(f"worker {address}, which has come since, gets no trial: it {why}")
        if self._bad or self.only is not None:
            self.only = list(self._known)


def cannot_answer(error: BaseException) -> str:
    """Returns why a worker cannot answer a request, in words."""
    said = first_line(error)
    # Dask reports an object that could not even be read there by its text alone.
    missing = said.startswith(("ModuleNotFoundError(", "ImportError(", "AttributeError("))
    if missing or isinstance(error, ImportError | AttributeError | TypeError):
        return f"has no StreamGauge, or another version ({said}); install the same version there"
    return f"does not answer: {said}"


def first_line(error: BaseException) -> str:
    """Returns the first line of an error's text."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
