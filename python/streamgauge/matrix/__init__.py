"""The matrix: every system in every kind of scenario, ranked for viewer and neighbours, on one page.

``streamgauge compare matrix`` runs it; docs/matrix.md describes how it is read and extended.
"""

from streamgauge.matrix.agreement import MeasureAgreement, agreements
from streamgauge.matrix.answer import MatrixSentence, sentences
from streamgauge.matrix.as_json import to_json
from streamgauge.matrix.beside import brief_of
from streamgauge.matrix.cells import Matrix, MatrixCell, MatrixSystem, ScenarioKind, matrix_of
from streamgauge.matrix.emulated import QUARTER
from streamgauge.matrix.judged import JudgedKind, JudgedMatrix, judged
from streamgauge.matrix.page import write_page
from streamgauge.matrix.running import EmulatedBeside, MatrixTrials, run_matrix

__all__ = [
    "QUARTER",
    "EmulatedBeside",
    "JudgedKind",
    "JudgedMatrix",
    "Matrix",
    "MatrixCell",
    "MatrixSentence",
    "MatrixSystem",
    "MatrixTrials",
    "MeasureAgreement",
    "ScenarioKind",
    "agreements",
    "brief_of",
    "judged",
    "matrix_of",
    "run_matrix",
    "sentences",
    "to_json",
    "write_page",
]
