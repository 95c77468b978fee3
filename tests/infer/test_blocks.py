"""Blocks of claims and splits: what reads the same numbers is never held out from itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamgauge.errors import ScenarioError
from streamgauge.infer.blocks import blocks_of, draw_halves, load_split, split_file, split_text
from streamgauge.paper import papers, stating
from streamgauge.scenario import Scenario, find

PAPERS = ["hessler", "darwin", "ccn", "realvideo", "windows-media"]
BLOCKS = [("X-1", "X-2", "X-5"), ("X-3",), ("X-4",)]


def stated(paper: str) -> list[Scenario]:
    return stating([papers()[paper]], find([f"{paper}/*"], mutants=False))


@given(st.lists(st.integers(1, 5), min_size=2, max_size=12), st.integers(0, 2**32))
def test_a_draw_keeps_every_claim_and_cuts_no_block(sizes: list[int], seed: int) -> None:
    numbers = iter(range(100))
    blocks = [tuple(f"X-{next(numbers)}" for _ in range(size)) for size in sizes]
    halves = draw_halves(blocks, seed)
    assert sorted(claim for half in halves.values() for claim in half) == sorted(sum(blocks, ()))
    assert all(any(set(block) <= set(half) for half in halves.values()) for block in blocks)
    assert abs(len(halves["A"]) - len(halves["B"])) <= max(sizes)
    assert draw_halves(blocks, seed) == halves


def test_seeds_draw_different_halves() -> None:
    blocks = [(f"X-{number}",) for number in range(8)]
    assert len({draw_halves(blocks, seed)["A"] for seed in range(20)}) > 5


@pytest.mark.parametrize("paper", PAPERS)
def test_the_split_that_ships_is_the_draw_of_its_seed_and_cuts_no_block(paper: str) -> None:
    blocks = blocks_of(papers()[paper], stated(paper))
    split = load_split(split_file(paper), blocks)
    assert all(any(set(block) <= set(half) for half in split.halves.values()) for block in blocks)
    listed = [claim for half in split.halves.values() for claim in half]
    assert sorted(listed) == sorted(claim for block in blocks for claim in block)
    assert split.other("A") == split.halves["B"]


def test_claims_that_read_the_same_number_are_in_one_block() -> None:
    """HW-1 and HW-2 both read the loss of RealPlayer beside heavy cross traffic."""
    blocks = blocks_of(papers()["hessler"], stated("hessler"))
    (block,) = [block for block in blocks if "HW-1" in block]
    assert "HW-2" in block
    assert sorted(map(len, blocks), reverse=True) == list(map(len, blocks))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("X-5]\n  B", "X-5]\n  C", "expected 'A' and 'B'"),
        ("seed: 3", "seed: three", "expected 'seed'"),
        ("X-4", "X-4, X-7", "X-7 has no check"),
        ("X-4", "X-4, X-4", "X-4 stands here twice"),
    ],
)
def test_a_bad_split_is_refused(old: str, new: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "split.yaml"
    text = split_text("toy", BLOCKS, 3)
    head, middle, tail = text.partition("halves:")
    text = text.replace(old, new) if "seed" in old else head + middle + tail.replace(old, new)
    file.write_text(text)
    with pytest.raises(ScenarioError, match=words):
        load_split(file, BLOCKS)


def test_a_split_that_cuts_a_block_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "split.yaml"
    file.write_text("seed: 3\nblocks: []\nhalves:\n  A: [X-1, X-3]\n  B: [X-2, X-4, X-5]\n")
    with pytest.raises(ScenarioError, match="X-1, X-2, X-5 read the same numbers") as caught:
        load_split(file, BLOCKS)
    assert caught.value.line == 3
