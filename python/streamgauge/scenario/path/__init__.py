"""The path of a scenario: `down` and `up`, each a shorthand or a chain of named stages.

One room a kind: `rate`, `shaper`, `queue`, `loss`, `delay`, `elements`; put together in `stages` and
`direction`. `words` describes a path in words, `plan` lowers it, `text` reads it from one line, `presets` has
the shipped paths.
"""

from streamgauge.scenario.path.common import MAX_IP_BYTES, Switch
from streamgauge.scenario.path.delay import (
    DelaySettings,
    DelayStep,
    GammaJitter,
    GammaSettings,
    NormalJitter,
    ParetoJitter,
    ParetoSettings,
    TableJitter,
    UniformJitter,
)
from streamgauge.scenario.path.direction import Direction, Path, preset
from streamgauge.scenario.path.elements import Blocking, Corruption, Duplication, MtuLimit, Reordering
from streamgauge.scenario.path.loss import (
    Bernoulli,
    Gilbert,
    GilbertElliott,
    GilbertElliottRuns,
    GilbertRuns,
    LossList,
    TracedLoss,
)
from streamgauge.scenario.path.presets import Preset, PresetSource, find_preset, preset_names
from streamgauge.scenario.path.queue import (
    CoDel,
    CoDelSettings,
    Drd,
    DrdSettings,
    DropTail,
    DualPi2,
    DualPi2Settings,
    FqCoDel,
    FqCoDelSettings,
    NistNet,
    Pie,
    PieSettings,
    Red,
    RedSettings,
)
from streamgauge.scenario.path.rate import RateStep, RateSteps, Square, SquareWave
from streamgauge.scenario.path.shaper import (
    Cbq,
    CbqSettings,
    Sleeping,
    SleepingSettings,
    TokenBucket,
    TokenBucketSettings,
)
from streamgauge.scenario.path.stages import Block, Bottleneck, Corrupt, Delay, Duplicate, Loss, Mtu, Reorder
from streamgauge.scenario.path.text import direction_of_text, text_of_direction
from streamgauge.scenario.path.trace import DelayTrace, LossTrace, Trace, TraceFile, shipped_traces
from streamgauge.scenario.path.words import direction_in_words

__all__ = [
    "MAX_IP_BYTES",
    "Bernoulli",
    "Block",
    "Blocking",
    "Bottleneck",
    "Cbq",
    "CbqSettings",
    "CoDel",
    "CoDelSettings",
    "Corrupt",
    "Corruption",
    "Delay",
    "DelaySettings",
    "DelayStep",
    "DelayTrace",
    "Direction",
    "Drd",
    "DrdSettings",
    "DropTail",
    "DualPi2",
    "DualPi2Settings",
    "Duplicate",
    "Duplication",
    "FqCoDel",
    "FqCoDelSettings",
    "GammaJitter",
    "GammaSettings",
    "Gilbert",
    "GilbertElliott",
    "GilbertElliottRuns",
    "GilbertRuns",
    "Loss",
    "LossList",
    "LossTrace",
    "Mtu",
    "MtuLimit",
    "NistNet",
    "NormalJitter",
    "ParetoJitter",
    "ParetoSettings",
    "Path",
    "Pie",
    "PieSettings",
    "Preset",
    "PresetSource",
    "RateStep",
    "RateSteps",
    "Red",
    "RedSettings",
    "Reorder",
    "Reordering",
    "Sleeping",
    "SleepingSettings",
    "Square",
    "SquareWave",
    "Switch",
    "TableJitter",
    "TokenBucket",
    "TokenBucketSettings",
    "Trace",
    "TraceFile",
    "TracedLoss",
    "UniformJitter",
    "direction_in_words",
    "direction_of_text",
    "find_preset",
    "preset",
    "preset_names",
    "shipped_traces",
    "text_of_direction",
]
