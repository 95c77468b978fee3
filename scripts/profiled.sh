#!/usr/bin/env bash
# Builds the simulator by a profile of itself: first with counters, while it runs a thousand trials of the
# catalogue, then optimised for the frequent paths. It gives the same trials, to the last bit, in less time,
# and prints the gain.
#
#   scripts/profiled.sh           in place of the build of scripts/setup.sh, until sources change
#   scripts/profiled.sh --aside   to target/profiled/lib_native.so alone
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/setup.sh
. scripts/setup.sh functions

say() { printf 'profiled: %s\n' "$*"; }
fail() { printf 'profiled: %s\n' "$*" >&2; exit 1; }

case "${1:-}" in
    "" | --aside) ;;
    *) fail "unknown option $1; it is called without one, or with --aside" ;;
esac
[ "$(uname -s)" = Linux ] || fail "the simulator is built by a profile on Linux alone"
module=python/streamgauge/_native.abi3.so
if [ ! -x .venv/bin/streamgauge ] || [ ! -e "$module" ]; then
    fail "nothing is built here yet: run scripts/setup.sh first"
fi
rust

# --- the reader of the counters -----------------------------------------------------------------------------
# It must be from the compiler's own LLVM: rustup has it as a component, a distribution under its number.
host=$(rustc -vV | awk '/^host:/ {print $2}')
llvm=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
find_profdata() {
    local candidate
    for candidate in "$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata" "llvm-profdata-$llvm" "/usr/lib/llvm-$llvm/bin/llvm-profdata"; do
        if command -v "$candidate" >/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}
if ! profdata=$(find_profdata) && command -v rustup >/dev/null; then
    say "installing llvm-tools of this Rust"
    rustup --quiet component add llvm-tools || true
fi
profdata=$(find_profdata) ||
    fail "llvm-profdata of LLVM $llvm is needed, which this Rust is built with. Install it with
    rustup component add llvm-tools    (a Rust of rustup's), or as root
    apt-get install llvm-$llvm         (a distribution's)"

# --- build, drive, build ---------------------------------------------------------------------------------
work=$PWD/target/profiled
# The fastest code, however long it takes to build.
export CARGO_PROFILE_RELEASE_LTO=thin CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
rm -rf "$work/counters" "$work/trials" "$work/trials.log" "$work/package"
mkdir -p "$work"
# The build without a profile, to compare with; this may not be the first run.
cmp -s "$module" "$work/lib_native.so" && [ -e "$work/plain.so" ] || cp "$module" "$work/plain.so"
trap 'rm -rf "$work/counters" "$work/trials" "$work/package"' EXIT
trap 'exit 130' INT TERM

built() { # flags of the compiler: where the module lies
    local flags features=pyo3/extension-module
    [ ! -e .venv/.hosted ] || features+=,streamgauge-python/hosted
    # shellcheck disable=SC2086
    printf -v flags '%s\x1f' ${RUSTFLAGS:-} "$1"
    # With `--target`, build scripts and procedural macros are compiled without these flags.
    PYO3_PYTHON="$PWD/.venv/bin/python" CARGO_TARGET_DIR="$work" CARGO_ENCODED_RUSTFLAGS="${flags%$'\x1f'}" \
        cargo build --release --quiet -p streamgauge-python --features "$features" --target "$host" \
        2>"$work/build.log" || { cat "$work/build.log" >&2; fail "the native module did not build"; }
}
package_with() { # module: the package of this checkout, with that native module
    rm -rf "$work/package"
    mkdir -p "$work/package"
    cp -rs "$PWD/python/streamgauge" "$work/package/"
    rm "$work/package/streamgauge/$(basename "$module")"
    cp "$1" "$work/package/streamgauge/$(basename "$module")"
}

say "building with counters (two minutes on two processors)"
built "-Cprofile-generate=$work/counters"
package_with "$work/$host/release/lib_native.so"
unset LLVM_PROFILE_FILE
say "driving it: two trials of each scenario of the five papers, one of each of the matrix"
for driven in 'reproduce hessler darwin realvideo windows-media ccn --repeat 2' 'run matrix/* --repeat 1'; do
    # Unquoted on purpose, but not to find files. The checks need not pass with so few trials.
    set -f
    # shellcheck disable=SC2086
    PYTHONPATH="$work/package" .venv/bin/python -m streamgauge $driven --mode sim --out "$work/trials" >>"$work/trials.log" 2>&1 || true
    set +f
done
[ "$(find "$work/trials" -name trial.json | wc -l)" -ge 1000 ] ||
    { tail -n 20 "$work/trials.log" >&2; fail "its trials did not run"; }
"$profdata" merge -o "$work/profile.profdata" "$work/counters"
say "building by the counters (two minutes)"
built "-Cprofile-use=$work/profile.profdata"
cp "$work/$host/release/lib_native.so" "$work/lib_native.so"

# --- the same, and faster --------------------------------------------------------------------------------
say "comparing both, trial by trial"
.venv/bin/python benches/native.py target/profiled/plain.so target/profiled/lib_native.so || {
    rm -f "$work/lib_native.so"
    fail "its trials are not those of set-up's build, which stays"
}
if [ "${1:-}" = --aside ]; then
    say "ready: target/profiled/lib_native.so"
else
    install -m 755 "$work/lib_native.so" "$module"
    say "ready, in place of the build of set-up"
fi
