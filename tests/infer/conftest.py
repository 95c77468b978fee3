"""One inference of the toy, for all tests that look at it."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamgauge.infer.inferring import Inferred, Question, infer
from toy import ASKED, toy


@pytest.fixture(scope="session")
def question(tmp_path_factory: pytest.TempPathFactory) -> Question:
    return toy(tmp_path_factory.mktemp("question"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("search")


@pytest.fixture(scope="session")
def found(question: Question, folder: Path) -> Inferred:
    return infer(question, ASKED, folder)
