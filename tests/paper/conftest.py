"""Makes `synthetic` importable from every test that measures."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "metrics"))
