"""``python -m streamgauge``."""

import sys

from streamgauge.cli import main

sys.exit(main())
