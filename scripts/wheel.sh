#!/usr/bin/env bash
# Builds one wheel with everything inside: native module, streamgauge-engine with its BPF programs, catalogue, presets,
# traces, published results. It is in dist/, for every CPython from 3.11 on.
#
#   scripts/wheel.sh             for this machine's processor
#   scripts/wheel.sh aarch64     for another one: x86_64, aarch64
#
# As root it installs missing tools (Rust, clang, libelf's headers). For another processor it is built with zig (of PyPI), and
# with rustup's standard library of that target, or else with Debian's Rust (scripts/cross.sh).
#
# The wheel is built from a copy of the files that git would commit, under the release profile, and of nothing else: the same
# commit, compilers and maturin give the same bytes (SOURCE_DATE_EPOCH is the commit's date unless it is set).
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/setup.sh
. scripts/setup.sh functions

machine=${1:-$(uname -m)}
root=$PWD
work=$root/target/wheel
stage=$work/source
ABOUT=0.9.3 # cargo-about
say() { printf 'wheel: %s\n' "$*"; }
fail() { printf 'wheel: %s\n' "$*" >&2; exit 1; }

[ "$(uname -s)" = Linux ] || fail "a wheel with streamgauge-engine is built on Linux alone"
case $machine in
    x86_64 | aarch64) ;;
    *) fail "no wheel for $machine: the processors are x86_64 and aarch64" ;;
esac

# --- tools -----------------------------------------------------------------------------------------------
missing=$(! command -v dpkg-query >/dev/null || missing_packages scripts/packages-debian-build.txt)
if [ -n "${missing// /}" ]; then
    [ "$(id -u)" = 0 ] || fail "missing system packages; as root: apt-get install -y --no-install-recommends $missing"
    say "installing system packages: $missing"
    apt-get update -qq
    # shellcheck disable=SC2086
    install_without_services $missing
fi
rust
[ "$(engine_features)" = bpf ] ||
    fail "clang, libelf and zlib with their headers are needed (Debian: scripts/packages-debian-build.txt)"
mkdir -p "$work"
maturin=$work/venv/bin/maturin
if [ ! -x "$maturin" ]; then
    say "installing maturin"
    "$(find_python)" -m venv "$work/venv"
    "$work/venv/bin/python" - pyproject.toml >"$work/requirements.txt" <<'PY'
import sys
import tomllib
print("\n".join(tomllib.load(open(sys.argv[1], "rb"))["build-system"]["requires"]))
PY
    "$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$work/requirements.txt"
fi

# Builds with cargo, for this machine or the other one.
build_with=(cargo build)
package_with=()
built=$work/target/release
if [ "$machine" != "$(uname -m)" ]; then
    # shellcheck source=scripts/cross.sh
    . scripts/cross.sh
    cross_to "$machine"
    build_with=("${cross_build[@]}")
    package_with=("${cross_package[@]}")
    built=$work/target/$machine-unknown-linux-gnu/release
fi

# --- the copy --------------------------------------------------------------------------------------------
parts=(Cargo.toml Cargo.lock LICENSE NOTICE README.md catalogue crates pyproject.toml python)
files() { # every file of `parts`, separated by zeros
    if git rev-parse --git-dir >/dev/null 2>&1; then
        git ls-files -z --cached --others --exclude-standard -- "${parts[@]}"
    else
        find "${parts[@]}" \( -name __pycache__ -o -name _bin -o -name '*.so' -o -name '*.egg-info' \) -prune -o \
            \( -type f -o -type l \) -print0
    fi
}
rm -rf "$stage"
mkdir -p "$stage"
# Times stay, so that Cargo sees the unchanged files. A file that is deleted and not yet committed is passed
# over.
files | while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
    xargs -0 cp -p --no-dereference --parents -t "$stage"
# In the tree a link, in the package the files.
rm "$stage/python/streamgauge/catalogue"
mv "$stage/catalogue" "$stage/python/streamgauge/catalogue"
# The installed files' permissions do not depend on the builder's umask.
chmod -R u=rwX,go=rX "$stage"

# --- build -----------------------------------------------------------------------------------------------
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null) || SOURCE_DATE_EPOCH=315532800 # 1980, a zip's first day
fi
export SOURCE_DATE_EPOCH
export CARGO_TARGET_DIR=$work/target
# The fastest code, however long it takes to build.
export CARGO_PROFILE_RELEASE_LTO=thin CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1
# Paths of this machine are in no message and in no byte.
home=${CARGO_HOME:-$HOME/.cargo}
export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$stage=/streamgauge --remap-path-prefix=$home/registry/src=/crates"
export CFLAGS="${CFLAGS:-} -ffile-prefix-map=$work=/streamgauge -ffile-prefix-map=$home/registry/src=/crates"

say "building streamgauge-engine (the first time takes some minutes)"
"${build_with[@]}" --release --locked --quiet --manifest-path "$stage/Cargo.toml" -p streamgauge-engine --features bpf
package=$stage/python/streamgauge
mkdir -p "$package/_bin"
if [ "$machine" = "$(uname -m)" ]; then
    strip -o "$package/_bin/streamgauge-engine" "$built/streamgauge-engine"
else # stripped by its linker
    cp "$built/streamgauge-engine" "$package/_bin/streamgauge-engine"
fi
chmod 755 "$package/_bin/streamgauge-engine"
git describe --always --abbrev=40 '--exclude=*' --dirty=+ >"$package/_bin/commit" 2>/dev/null || rm "$package/_bin/commit"

notice=$work/NOTICE-third-party.txt
made_of=$(cksum Cargo.lock crates/*/Cargo.toml scripts/third-party/{about.toml,notice.hbs})
if [ "$(cat "$notice.of" 2>/dev/null)" != "$made_of" ]; then
    about=$work/tools/bin/cargo-about
    if [ ! -x "$about" ]; then
        say "building cargo-about, once (two minutes)"
        # Without the flags for the programs inside.
        env -u RUSTFLAGS -u CFLAGS CARGO_TARGET_DIR="$work/tools/target" cargo install --quiet --locked \
            "cargo-about@$ABOUT" --features cli --root "$work/tools"
        rm -rf "$work/tools/target"
    fi
    say "collecting the licences of the crates inside"
    # It reads every package of Cargo.lock, those of other systems and tests too, and needs no other source.
    cargo fetch --quiet --locked --manifest-path "$stage/Cargo.toml"
    "$about" generate --offline --locked --fail --manifest-path "$stage/Cargo.toml" --workspace \
        --features streamgauge-engine/bpf --config scripts/third-party/about.toml --output-file "$notice" \
        scripts/third-party/notice.hbs
    printf '%s\n' "$made_of" >"$notice.of"
fi
cp "$notice" "$stage/"

say "building the native module and packing"
rm -rf "$work/out"
(cd "$stage" && "$maturin" build --release --locked --quiet --auditwheel check "${package_with[@]}" --out "$work/out") 2>"$work/maturin.log" ||
    { cat "$work/maturin.log" >&2; fail "the native module did not build"; }
wheel=$(ls "$work/out"/*.whl)

# The tag speaks of the native module alone; the engine may not need a newer glibc than it promises.
glibc() { readelf --version-info --wide "$1" | grep -o 'GLIBC_2\.[0-9]*' | sed 's/.*\.//' | sort -n | tail -n 1; }
promised=$(sed -E 's/.*manylinux_2_([0-9]+)_.*/\1/' <<<"${wheel##*/}")
needed=$(glibc "$package/_bin/streamgauge-engine")
[ "$needed" -le "$promised" ] ||
    fail "streamgauge-engine needs glibc 2.$needed and the wheel's name promises 2.$promised"
mkdir -p dist
mv "$wheel" dist/
size=$(stat -c %s "dist/${wheel##*/}" | numfmt --to=si --suffix=B)
say "dist/${wheel##*/} ($size, for glibc 2.$promised or newer)"
