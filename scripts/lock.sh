#!/usr/bin/env bash
# Writes the locks of the Python packages anew, after pyproject.toml has changed or to take newer versions:
#
#   requirements.lock       the packages that streamgauge needs to run: the container installs them
#   requirements-dev.lock   the same versions, and the packages of tests and lint: set-up installs them
#
# Both hold for every Python from 3.11 on and every platform, with the hash of each file.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/python -c 'import uv' 2>/dev/null || .venv/bin/python -m pip install --quiet --disable-pip-version-check uv
lock() { # file, option...
    .venv/bin/python -m uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
        --no-emit-index-url --custom-compile-command scripts/lock.sh --output-file "$@" pyproject.toml
}
lock requirements.lock
lock requirements-dev.lock --extra dev --constraints requirements.lock
