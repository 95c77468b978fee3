from streamgauge.errors import CannotRunError as CannotRunError
from streamgauge.errors import MediaError as MediaError
from streamgauge.errors import RecordError as RecordError
from streamgauge.errors import ScenarioError as ScenarioError
from streamgauge.errors import StreamGaugeError as StreamGaugeError
from streamgauge.notebook import Checks as Checks
from streamgauge.notebook import LoadedTrial as LoadedTrial
from streamgauge.notebook import Record as Record
from streamgauge.notebook import Runs as Runs
from streamgauge.notebook import Scenario as Scenario
from streamgauge.notebook import Scenarios as Scenarios
from streamgauge.notebook import load as load
from streamgauge.notebook import load_scenario as load_scenario
from streamgauge.notebook import open_record as open_record
from streamgauge.notebook import run as run
from streamgauge.notebook import scenarios as scenarios
from streamgauge.notebook import sweep as sweep

__version__: str
