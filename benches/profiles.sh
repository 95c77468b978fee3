#!/usr/bin/env bash
# Measures the build profiles of the native module: the processor time of each build, and of the same trials.
#
#   benches/profiles.sh          some 25 minutes of a processor, and 2 GB in target/profiles
#
# `release` is the profile that set-up builds. `one-piece` has every crate of ours in one unit of code, without
# link-time optimisation. `linked` has thin link-time optimisation too, as the wheel has it.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -x .venv/bin/python ] || { echo "profiles: run scripts/setup.sh first" >&2; exit 1; }
PATH="$(cat .venv/.rust-bin):$PATH"
unset CARGO_PROFILE_RELEASE_LTO CARGO_PROFILE_RELEASE_CODEGEN_UNITS CARGO_PROFILE_RELEASE_DEBUG
work=$PWD/target/profiles
mkdir -p "$work"

build() { # name [variable=value...]
    local name=$1 TIMEFORMAT='%1R s by the clock, %1U s user, %1S s system'
    shift
    rm -rf "${work:?}/$name"
    printf 'profiles: %s: ' "$name"
    time env CARGO_INCREMENTAL=0 "$@" CARGO_TARGET_DIR="$work/$name" PYO3_PYTHON="$PWD/.venv/bin/python" \
        cargo build --release --quiet -p streamgauge-python -p streamgauge-engine --lib --features pyo3/extension-module
    mv "$work/$name/release/lib_native.so" "$work/$name.so"
    rm -rf "${work:?}/$name"
}

build release 2>&1
build one-piece CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 2>&1
build linked CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 CARGO_PROFILE_RELEASE_LTO=thin 2>&1
for name in one-piece linked; do
    .venv/bin/python benches/native.py "$work/release.so" "$work/$name.so" --rounds 5
done
