"""The search by itself, on a space whose claims need no simulator."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from streamgauge.checks import TrialReadings
from streamgauge.claims.expression import parse
from streamgauge.infer.blocks import draw_halves
from streamgauge.infer.control import permuted
from streamgauge.infer.misses import ClaimedCheck, ClaimedChecks
from streamgauge.infer.points import Point, Readings
from streamgauge.infer.search import Aim, Search
from streamgauge.infer.unknowns import PriorValue, Unknown, Unknowns
from streamgauge.infer.weighing import further_splits, marginals, never_together, pulls

PLACES, VALUES = 8, 4
TRUTH = (1, 2, 3, 1, 2, 3, 0, 0)
CLAIMS = tuple(f"T-{place + 1}" for place in range(PLACES))


def unknowns(price: float = 0.02) -> Unknowns:
    values = tuple(PriorValue(str(index), index) for index in range(VALUES))
    return Unknowns(
        "toy",
        tuple(Unknown(f"u{place}", "", "path", values, price, (), "") for place in range(PLACES)),
    )


def checks() -> ClaimedChecks:
    """Each claim is of one unknown alone: its value is the truth's."""
    return ClaimedChecks(
        tuple(
            ClaimedCheck(claim, "toy/x", claim, parse(f"loss.f{place} == {10 * truth} % +- 1 pt").root, None)
            for place, (claim, truth) in enumerate(zip(CLAIMS, TRUTH, strict=True))
        )
    )


def run(points: Sequence[Point]) -> list[Readings | None]:
    """The reading of each flow is the index of its unknown's value, in tenths; no point has u0 = u1 = 3."""
    return [
        None
        if point[:2] == (3, 3)
        else {
            "toy/x": [
                TrialReadings(
                    scenario="toy/x",
                    mode="sim",
                    seed=1,
                    valid=True,
                    why=(),
                    numbers={f"loss.f{place}": index / 10 for place, index in enumerate(point)},
                    metrics=lambda: None,
                )
            ]
        }
        for point in points
    ]


def search(seed: int = 1, price: float = 0.02) -> Search:
    real = checks()
    return Search(unknowns(price), real, permuted(real, 1), run, run, seed)


@pytest.fixture(scope="module")
def done() -> Search:
    made = search()
    made.screen()
    made.random(60)
    for aim in (Aim("described", CLAIMS), Aim("A", CLAIMS[:4]), Aim("B", CLAIMS[4:])):
        made.evolve(aim, 150)
    return made


def test_it_finds_the_truth_and_keeps_what_the_sources_have(done: Search) -> None:
    assert done.best(Aim("described", CLAIMS)).point == TRUTH


def test_it_is_the_same_for_the_same_seed() -> None:
    found = []
    for seed in (3, 3, 4):
        made = search(seed)
        made.screen()
        made.random(30)
        made.evolve(Aim("described", CLAIMS), 30)
        found.append(list(made.tried))
    assert found[0] == found[1] != found[2]


def test_a_fit_to_half_of_the_claims_departs_for_these_alone(done: Search) -> None:
    """A departure costs, so that nothing is changed that the half does not ask for."""
    assert done.best(Aim("A", CLAIMS[:4])).point == (*TRUTH[:4], 0, 0, 0, 0)
    assert done.best(Aim("B", CLAIMS[4:])).point == (0, 0, 0, 0, *TRUTH[4:])


def test_a_fit_never_sees_what_another_has_bred(done: Search) -> None:
    shared = {point for phase in ("sources", "screening", "random") for point in done.phases[phase]}
    bred = {aim: set(done.phases[aim]) - shared for aim in ("described", "A", "B")}
    assert all(bred.values())
    for aim, mine in bred.items():
        seen = {one.point for one in done.visible(Aim(aim, ()))}
        others = set().union(*(points for name, points in bred.items() if name != aim)) - mine
        assert others
        assert not seen & others


def test_points_that_cannot_be_are_left_out(done: Search) -> None:
    assert not any(point[:2] == (3, 3) for point in done.tried)


def test_a_dear_departure_is_not_made() -> None:
    """It must explain more than it costs."""
    made = search(price=2.0)
    made.screen()
    made.random(40)
    assert made.evolve(Aim("described", CLAIMS), 40).point == made.source


def test_weights_lift_the_truth(done: Search) -> None:
    """A claim that holds makes its value e times as plausible as it was, whatever the prior."""
    for place, one in enumerate(marginals(done, Aim("described", CLAIMS))):
        assert sum(one.posterior) == pytest.approx(1)
        lift = [after / before for before, after in zip(one.prior, one.posterior, strict=True)]
        assert lift[TRUTH[place]] > 1
        assert lift.index(max(lift)) == TRUTH[place]


def test_claims_pull_where_they_hold(done: Search) -> None:
    strongest = {(one.unknown, one.value): one for one in reversed(pulls(done))}
    found = strongest["u1", "2"]
    assert (found.claim, found.with_it, found.without) == ("T-2", 1.0, 0.0)


def test_claims_that_exclude_each_other_are_named() -> None:
    real = checks()
    other = ClaimedCheck("T-9", "toy/x", "T-9", parse("loss.f0 == 0 % +- 1 pt").root, None)
    both = ClaimedChecks((*real.each, other))
    made = Search(unknowns(), both, both, run, run, 1)
    made.random(150)
    assert [one.claims for one in never_together(made)] == [("T-1", "T-9")]


def test_further_splits_weigh_what_was_tried(done: Search) -> None:
    before = len(done.tried)
    blocks = [(claim,) for claim in CLAIMS]
    found = further_splits(done, blocks, range(1, 11))
    assert len(done.tried) == before
    assert len({draw_halves(blocks, one.seed)["A"] for one in found}) > 5
    assert all(one.sources == pytest.approx(2 / 8) for one in found)
    assert all(0 <= one.held_out <= one.fitted <= 1 for one in found)
