"""``streamgauge evaluate``: a congestion control against the requirements of standards.

A suite is a list of questions (`question.py`): each names a criterion and its source, the trials that it
needs, a value of one seed's trials, and a bound. Trials are run once for all questions (`running.py`), values
are judged over seeds (`judging.py`), and the result is printed, written and drawn.
"""

from streamgauge.evaluate.controls import known_controls, resolved
from streamgauge.evaluate.evaluation import AGAINST, Evaluation, EvaluationPlan, evaluate
from streamgauge.evaluate.suites import SUITES

__all__ = ["AGAINST", "SUITES", "Evaluation", "EvaluationPlan", "evaluate", "known_controls", "resolved"]
