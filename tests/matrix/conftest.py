"""One small matrix, run once for all tests of a module."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_matrix import OWN, write
from streamgauge.matrix import JudgedMatrix, judged, matrix_of, run_matrix


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> JudgedMatrix:
    """The small matrix with a system of the user's own, six trials of each cell."""
    folder = tmp_path_factory.mktemp("matrix")
    matrix = matrix_of(write(folder), own=[str(write(folder, OWN, "mine.yaml"))])
    ran: Path = folder / "runs"
    return judged(run_matrix(matrix, ran))
