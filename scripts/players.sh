#!/usr/bin/env bash
# Installs the parts that only players in browsers, VLC and HTTP/3 need. It takes seconds when all is there.
# As an ordinary user it prints the one line to run as root and sets up the rest.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/setup.sh
. scripts/setup.sh functions
say() { printf 'setup-browsers: %s\n' "$*"; }

missing=""
! command -v dpkg-query >/dev/null || missing=$(missing_packages scripts/packages-players.txt)
# npm's client downloads the players' JavaScript, from its configured registry.
command -v npm >/dev/null || missing+="npm"
if [ -z "${missing// /}" ]; then
    say "system packages: all there"
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing system packages: $missing"
    apt-get update -qq
    # shellcheck disable=SC2086
    install_without_services $missing
else
    say "missing; as root: apt-get update && apt-get install -y --no-install-recommends $missing"
fi

.venv/bin/python -c 'import aioquic' 2>/dev/null || { say "installing aioquic"; scripts/extras.sh http3; }
PYTHONPATH=python .venv/bin/python -m streamgauge.systems.javascript | sed 's/^/setup-browsers: /'
