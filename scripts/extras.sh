#!/usr/bin/env bash
# Installs the packages of an extra (pyproject.toml, optional-dependencies) into .venv: extras.sh NAME...
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { echo "extras.sh: name an extra of pyproject.toml: http3, ns3, readers" >&2; exit 2; }

.venv/bin/python - "$@" >.venv/extras.txt <<'PY'
import sys
import tomllib

extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]
for name in sys.argv[1:]:
    if name not in extras:
        sys.exit(f"extras.sh: pyproject.toml has no extra {name!r}; it has {', '.join(extras)}")
    print("\n".join(extras[name]))
PY
.venv/bin/python -m pip install --quiet --disable-pip-version-check -r .venv/extras.txt
