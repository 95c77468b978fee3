#!/usr/bin/env bash
# Checks the dependencies: licences, sources and known vulnerabilities of the Rust crates (deny.toml) and of
# the Python packages (requirements.lock). A check without access to its database is named and has not passed:
# the exit status is 4.
set -uo pipefail
cd "$(dirname "$0")/.."
DENY=0.20.2 # cargo-deny
tools=$PWD/target/audit
say() { printf 'audit: %s\n' "$*"; }
PATH="$(cat .venv/.rust-bin):$PATH"
found=0 unreached=0

if [ ! -x "$tools/bin/cargo-deny" ]; then
    say "building cargo-deny, once (some minutes)"
    cargo install --quiet --locked --root "$tools" "cargo-deny@$DENY" || exit 1
fi
"$tools/bin/cargo-deny" --log-level error check bans licenses sources || found=1
if ! said=$("$tools/bin/cargo-deny" check advisories 2>&1); then
    if grep -q 'failed to fetch advisory database' <<<"$said"; then
        say "left out: advisories of Rust crates; their database is out of reach (github.com/rustsec/advisory-db)"
        unreached=1
    else
        echo "$said"
        found=1
    fi
fi

.venv/bin/python -c 'import pip_audit' 2>/dev/null || .venv/bin/python -m pip install --quiet --disable-pip-version-check pip-audit
said=$(.venv/bin/python -m pip_audit --requirement requirements.lock --disable-pip --progress-spinner off 2>&1)
status=$?
# It passes over a package that the database has no answer for.
if grep -q 'could not be audited\|ConnectionError\|Failed to' <<<"$said"; then
    say "left out: advisories of Python packages; their database is out of reach"
    unreached=1
elif [ "$status" -ne 0 ]; then
    echo "$said"
    found=1
fi
[ "$found" = 0 ] || exit 1
[ "$unreached" = 0 ] || exit 4
say "nothing found"
