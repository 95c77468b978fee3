"""Every form and function of the language of checks, with its meaning and examples.

The parser reads the numbers of arguments here, and `scripts/reference.py` the rest, so that the page of
checks cannot be older than the parser.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

Over = Literal["samples", "values", "samples or values", "statements", "trials"]
"""The input of a function: one metric's samples, several values, statements, or the values of all trials."""


@dataclass(frozen=True)
class Form:
    """A form of the language. Each example is a whole statement or value."""

    examples: tuple[str, ...]
    meaning: str


@dataclass(frozen=True)
class Function(Form):
    """A function with its least and greatest number of arguments, its window not counted."""

    name: str
    least: int
    most: int
    over: Over


def _function(name: str, least: int, most: int, over: Over, meaning: str, *examples: str) -> Function:
    return Function(examples, meaning, name, least, most, over)


MANY: Final = 99
"""The greatest number of arguments of a function that takes any number."""

FORMS: Sequence[Form] = (
    Form(("loss.ftp",), "A metric of a flow, over the measurement window."),
    Form(
        ("queue.bottleneck", 'queue."up.bottleneck"'),
        "A metric of a stage. A name with other characters is in quotes.",
    ),
    Form(("jain",), "A metric of the whole trial."),
    Form(("sent.ftp of hessler/ftp-no",), "The same metric in another scenario, which is then run too."),
    Form(
        ("event.decode_time.video", 'event."my-event".video'),
        "The mean value of the events that a player writes under this name.",
    ),
    Form(("480 kbit/s", "16 KiB", "0.5 %", "2 pt"), "A quantity; `pt` are percentage points."),
    Form(("mean(throughput.a, start.a to start.a + 10 s)",), "A window; its bounds may be computed."),
    Form(("sent.a + sent.b - 2 * (sent.c / 3)",), "Arithmetic with `+`, `-`, `*`, `/` and brackets."),
    Form(
        ("loss.a < 1 %", "0.5 % <= loss.a <= 2 %"),
        "A comparison by `<`, `<=`, `>`, `>=`, `==` or `!=`, also in chains.",
    ),
    Form(
        ("sent.a == sent.b +- 8 %", "rtt.a == rtt.b +- 5 ms"),
        "Equality within a tolerance. A percentage is relative to the right side.",
    ),
    Form(("loss.a < 1 % and not (loss.b < 1 % or jain < 0.9)",), "Logic with `and`, `or` and `not`."),
)

_OF = "of one metric's samples in the window, or of several values"
DESCRIBED: Sequence[Function] = (
    _function("mean", 1, MANY, "samples or values", f"The mean {_OF}.",
              "mean(throughput.qt, 10 s to 20 s)", "mean(loss.a, loss.b)"),
    _function("min", 1, MANY, "samples or values", f"The least {_OF}.",
              "min(cwnd.a)", "min(goodput.a, goodput.b)"),
    _function("max", 1, MANY, "samples or values", f"The greatest {_OF}.",
              "max(queue.bottleneck, 0 s to 10 s)", "max(loss.a, loss.b)"),
    _function("median", 1, MANY, "samples or values", f"The median {_OF}.",
              "median(rtt.a)", "median(loss.a, loss.b, loss.c)"),
    _function("sd", 1, MANY, "samples or values", f"The standard deviation {_OF}.",
              "sd(jain)", "sd(goodput.a, goodput.b)"),
    _function("sum", 2, MANY, "values", "The sum.", "sum(goodput.a, goodput.b)"),
    _function("abs", 1, 1, "values", "The absolute value.", "abs(goodput.a - goodput.b)"),
    _function("jain", 2, MANY, "values", "Jain's fairness index.", "jain(goodput.a, goodput.b)"),
    _function("spearman", 2, MANY, "values",
              "The rank correlation of the values with their order; −1 if each is less than the one before.",
              "spearman(goodput.a, goodput.b, goodput.c)"),
    _function("peak", 2, 2, "samples", "The highest mean over consecutive samples that make up a time.",
              "peak(throughput.qt, 2 s)", "peak(throughput.qt, 2 s, 0 s to 10 s)"),
    _function("harm", 2, 2, "values",
              "The share of a flow's performance that others take: first the flow alone, then beside them.",
              "harm(goodput.tcp of my/alone, goodput.tcp)"),
    _function("count", 1, 1, "samples", "The number of events under a name.",
              "count(event.rebuffer.video)", "count(event.rebuffer.video, 0 s to 10 s)"),
    _function("tcp_rate", 3, 3, "values",
              "The rate of a TCP by packet size, round-trip time and loss (Floyd and Fall).",
              "tcp_rate(1500 B, rtt.ping, loss.ping)"),
    _function("tfrc_rate", 3, 3, "values", "The same rate with timeouts (RFC 5348).",
              "tfrc_rate(1500 B, rtt.ping, loss.ping)"),
    _function("fraction", 1, MANY, "statements", "The share of statements that hold in a repetition.",
              "fraction(max(loss.a) > 5 %, max(loss.b) > 5 %)"),
    _function("first", 1, 1, "statements",
              "The trial time at which the comparison first holds for a sample; infinite if it never does.",
              "first(level.video <= 35 kbit/s)", "first(level.video <= 35 kbit/s, 0 s to 60 s)"),
    _function("share", 1, 2, "trials",
              "The share of trials in which a statement holds, of all or of those in which a second holds.",
              "share(loss.a > 5 %)", "share(loss.a > 5 %, sent.a > 1 MB)"),
    _function("quantile", 2, 2, "trials", "The value that this percentage of trials does not exceed.",
              "quantile(rtt.ping, 80 %)"),
    _function("ks", 2, 2, "trials", "The distance of two distributions by Kolmogorov and Smirnov, 0 to 1.",
              "ks(goodput.a, goodput.b)"),
    _function("emd", 2, 2, "trials", "The earth mover's distance of two distributions, in the values' unit.",
              "emd(goodput.a, goodput.b)"),
    _function("correlation", 2, MANY - 1, "trials", "Pearson's r of pairs; several pairs are pooled.",
              "correlation(goodput.a, rtt.ping)",
              "correlation(goodput.a, rtt.ping, goodput.a of my/other, rtt.ping of my/other)"),
)  # fmt: skip
"""Every function."""

FUNCTIONS: dict[str, tuple[int, int]] = {one.name: (one.least, one.most) for one in DESCRIBED}
"""Every function with the least and the most arguments it takes."""
