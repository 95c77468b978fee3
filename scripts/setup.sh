#!/usr/bin/env bash
# Installs the dependencies of StreamGauge and builds it. It takes seconds when nothing is missing. As root it
# installs system packages too. As an ordinary user it prints the one line to run as root, and still sets up
# all of sim.
#
#   scripts/setup.sh                       all of it
#   scripts/setup.sh --tests               and the dependencies of tests
#   scripts/setup.sh --hosted              and the systems that are libraries of others; later builds keep them
#   scripts/setup.sh --demo [COMMAND...]   those of `make demo` alone; COMMAND runs as soon as the simulator can
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

RUST_MINIMUM=88 # 1.88, as in Cargo.toml
RUST_HOSTED=89  # 1.89, which str0m needs
HOSTED=.venv/.hosted # is there once hosted libraries were asked for
COMPILER="build-essential python3-venv" # the build waits for these

# --- system packages -------------------------------------------------------------------------------------
# nginx is a program of an example, not a service: its package is kept from starting one, now and at boot, unless
# there was one before.
install_without_services() { # package...
    local policy=/usr/sbin/policy-rc.d had_nginx=""
    ! command -v nginx >/dev/null || had_nginx=yes
    if [ ! -e "$policy" ]; then
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    else
        policy=""
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    [ -z "$policy" ] || { rm -f "$policy"; trap - EXIT; }
    if [ -z "$had_nginx" ] && command -v nginx >/dev/null; then
        systemctl disable --quiet nginx 2>/dev/null || update-rc.d nginx disable >/dev/null 2>&1 || true
    fi
}

missing_packages() { # list...
    local wanted
    wanted=$(grep -hv '^#' "$@")
    # shellcheck disable=SC2086
    comm -23 <(sort <<<"$wanted") \
        <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' $wanted 2>/dev/null | awk '$1 == "ii" {print $2}' | sort) | tr '\n' ' '
}

system_packages() { # list...
    if ! command -v dpkg-query >/dev/null; then
        say "not a Debian or Ubuntu system: skipping system packages (emu needs those of scripts/packages-debian.txt)"
        return
    fi
    local missing
    missing=$(missing_packages "$@")
    [ -n "${missing// /}" ] || { say "system packages: all there"; return; }
    local line="apt-get update && apt-get install -y --no-install-recommends $missing"
    if [ "$(id -u)" = 0 ]; then
        say "installing system packages: $missing"
        apt-get update -qq
        # shellcheck disable=SC2086
        install_without_services $missing
    else
        say "missing system packages; sim works without them. For emu run as root:"
        [[ $missing != *nginx* ]] || command -v nginx >/dev/null || line+=" && systemctl disable --now nginx"
        printf '    %s\n' "$line"
    fi
}

# Packages of tests alone. A distribution may not have one: then its tests are left out with a message.
test_packages() {
    local package
    command -v dpkg-query >/dev/null || return 0
    for package in $(grep -v '^#' scripts/packages-tests.txt); do
        [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null)" != "ii " ] || continue
        if [ "$(id -u)" != 0 ]; then
            say "without $package some tests are left out; as root: apt-get install --no-install-recommends $package"
        else
            say "installing for tests: $package"
            install_without_services "$package" 2>/dev/null || say "no $package here: the tests that need it are left out"
        fi
    done
}

# The compiler is first. A build needs processors and a download the network, so that both run at the same
# time.
demo_packages() {
    local missing="" compiler=""
    if command -v dpkg-query >/dev/null && [ "$(id -u)" = 0 ]; then
        missing=$(missing_packages scripts/packages-demo.txt)
        [ -n "${missing// /}" ] || { say "system packages: all there"; return; }
        say "installing system packages: $missing"
        apt-get update -qq
        # shellcheck disable=SC2086
        compiler=$(comm -12 <(tr ' ' '\n' <<<"$missing" | sort) <(printf '%s\n' $COMPILER | sort) | tr '\n' ' ')
        # shellcheck disable=SC2086
        [ -z "${compiler// /}" ] || install_without_services $compiler
        # shellcheck disable=SC2086
        [ "$missing" = "$compiler" ] || in_background "the system packages" install_without_services $missing
        return
    fi
    system_packages scripts/packages-demo.txt
}

# --- in the background -----------------------------------------------------------------------------------
background="" # a line for each: process, words

# A set-up that fails for want of Rust still finishes the rest. Ctrl-C does not reach processes in the background.
in_background() { # words command...
    "${@:2}" &
    background+="$! $1"$'\n'
    trap finish_background EXIT
    trap 'trap - EXIT; cut -d" " -f1 <<<"$background" | xargs kill; exit 130' INT TERM
}

finish_background() { # [words]: those alone
    local one words rest=""
    [ $# -gt 0 ] || trap - EXIT INT TERM
    while read -r one words; do
        if [ $# -gt 0 ] && [ "$words" != "$1" ]; then
            rest+="$one $words"$'\n'
        elif [ -n "$one" ]; then
            wait "$one" || fail "$words: failed, see above"
        fi
    done <<<"$background"
    background=$rest
}

# --- Rust ------------------------------------------------------------------------------------------------
new_enough() { # cargo
    local version
    version=$("$1" --version 2>/dev/null | awk '{print $2}') || return 1
    [ "$(cut -d. -f1 <<<"$version")" = 1 ] && [ "$(cut -d. -f2 <<<"$version")" -ge "$RUST_MINIMUM" ]
}

find_cargo() {
    local candidate
    for candidate in cargo "$HOME/.cargo/bin/cargo" /usr/lib/rust-1.*/bin/cargo; do
        if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
            PATH="$(dirname "$(command -v "$candidate")"):$PATH"
            export PATH
            return 0
        fi
    done
    return 1
}

rust() {
    find_cargo && return
    local newest=""
    if command -v apt-cache >/dev/null; then
        newest=$(apt-cache search --names-only '^cargo-1\.[0-9]+$' | awk '{print $1}' | sort -t. -k2 -n | tail -n 1)
    fi
    if [ -n "$newest" ] && [ "${newest##*.}" -ge "$RUST_MINIMUM" ]; then
        if [ "$(id -u)" = 0 ]; then
            say "installing $newest from the distribution"
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$newest" "rustc-${newest#cargo-}" >/dev/null
            find_cargo && return
        else
            fail "Rust 1.$RUST_MINIMUM or newer is needed. As root: apt-get install $newest rustc-${newest#cargo-}"
        fi
    fi
    fail "Rust 1.$RUST_MINIMUM or newer is needed and the distribution has none. Install it with
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y
and run this again."
}

# --- Python ----------------------------------------------------------------------------------------------
find_python() {
    local candidate
    # The system's own first: GStreamer's bindings belong to it, and an ordinary user can reach it where a
    # version manager's Python under root's home is closed to him.
    for candidate in /usr/bin/python3 python3 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null &&
            "$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    fail "Python 3.11 or newer with venv is needed. As root: apt-get install python3-venv"
}

# The demo's packages are a part of the others: a complete set-up suffices for the demo.
python_packages() { # lock
    local packages_now have
    [ -x .venv/bin/python ] || { say "making .venv"; "$(find_python)" -m venv .venv; }
    packages_now=$(cksum "$1")
    have=$(cat .venv/.streamgauge-packages 2>/dev/null || true)
    if [ "$have" = "$packages_now" ] || [ "$have" = "$(cksum requirements-dev.lock)" ]; then
        say "Python packages: all there"
        return
    fi
    say "installing Python packages into .venv"
    in_background "the Python packages" install_python_packages "$1" "$packages_now"
}

# The same files on every machine: scripts/lock.sh has chosen them.
install_python_packages() { # lock its-sum
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r "$1"
    printf '%s\n' "$2" >.venv/.streamgauge-packages
}

# --- build -----------------------------------------------------------------------------------------------
# Features of streamgauge-engine that this machine can build: BPF programs need clang, libelf and zlib.
engine_features() {
    local probe=$'#include <gelf.h>\n#include <zlib.h>\nint main(void) { return elf_version(EV_CURRENT) == 0 || !zlibVersion(); }'
    if command -v "${CLANG:-clang}" >/dev/null && cc -x c -o /dev/null - -lelf -lz <<<"$probe" 2>/dev/null; then
        printf 'bpf'
    fi
}

# Both crates are selected in each call, so that their common parts have the same features and are built once.
cargo_build() { # features option...
    PYO3_PYTHON="$PWD/.venv/bin/python" cargo build --release --quiet -p streamgauge-python -p streamgauge-engine \
        --features "pyo3/extension-module${1:+,$1}" "${@:2}" 2>.venv/build.log ||
        { cat .venv/build.log >&2; fail "the native module or streamgauge-engine did not build"; }
}

build() { # [command...], which runs when the native module is there
    local stamp=.venv/.streamgauge-build features="" built="${CARGO_TARGET_DIR:-target}/release"
    [ "$(uname -s)" != Linux ] || features=$(engine_features)
    features=${features:+streamgauge-engine/$features}
    local others=$features
    if [ -e "$HOSTED" ]; then
        others+="${others:+,}streamgauge-engine/hosted,streamgauge-sim/hosted"
        features+="${features:+,}streamgauge-engine/hosted,streamgauge-python/hosted"
    fi
    # For the Makefile's own calls of cargo.
    printf '%s\n' "$others" >.venv/.cargo-features
    if [ "$(cat "$stamp" 2>/dev/null)" = "features: $features" ] && [ -z "$(find Cargo.toml Cargo.lock pyproject.toml crates -newer "$stamp" \( -name '*.rs' -o -name '*.c' -o -name '*.toml' -o -name '*.lock' \) -print -quit)" ]; then
        say "engine and native module: up to date"
        simulator_is_there "$@"
        return
    fi
    if [ "$(uname -s)" = Linux ]; then
        say "building the native module and streamgauge-engine (the first time takes minutes)"
        [[ $features = *bpf* ]] || [ -n "$demo" ] || say "without BPF programs (vegas in emu): they need clang, libelf-dev and zlib1g-dev"
        mkdir -p python/streamgauge/_bin
        # `--lib` leaves out the engine, which the simulator does not need.
        cargo_build "$features" --lib
        install -m 755 "$built/lib_native.so" python/streamgauge/_native.abi3.so
        simulator_is_there "$@"
        cargo_build "$features"
        install -m 755 "$built/streamgauge-engine" python/streamgauge/_bin/
    else
        finish_background # maturin is one of the Python packages
        say "building the native module (the first time takes some minutes)"
        # shellcheck disable=SC1091
        VIRTUAL_ENV="$PWD/.venv" .venv/bin/maturin develop --release --quiet --skip-install ${features:+--features hosted} >/dev/null 2>.venv/build.log ||
            { cat .venv/build.log >&2; fail "the native module did not build"; }
        say "emu needs Linux: streamgauge-engine is not built here, sim is complete"
        simulator_is_there "$@"
    fi
    printf 'features: %s\n' "$features" >"$stamp"
}

# Runs a command beside the remaining builds and installations.
simulator_is_there() { # [command...]
    [ $# -gt 0 ] || return 0
    finish_background "the Python packages"
    link_package
    in_background "the first answer" "$@"
}

link_package() {
    # The checkout itself is the installed package: no copy to go stale.
    local site
    site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    [ "$(cat "$site/streamgauge-checkout.pth" 2>/dev/null)" = "$PWD/python" ] || printf '%s\n' "$PWD/python" >"$site/streamgauge-checkout.pth"
    if [ ! -x .venv/bin/streamgauge ]; then
        printf '#!%s/.venv/bin/python\nimport sys\n\nfrom streamgauge.cli import main\n\nsys.exit(main())\n' "$PWD" >.venv/bin/streamgauge
        chmod 755 .venv/bin/streamgauge
    fi
    # If Python may write no bytecode, each command would compile the package anew, a quarter of its start.
    .venv/bin/python -m compileall -q -j 0 python/streamgauge
}

# For scripts/wheel.sh, which wants the functions alone.
[ "${1:-}" != functions ] || return 0

demo="" hosted=""
if [ "${1:-}" = --demo ]; then
    demo=yes
    shift
    demo_packages
    # maturin, which builds elsewhere than on Linux, is in the other.
    if [ "$(uname -s)" = Linux ]; then lock=requirements.lock; else lock=requirements-dev.lock; fi
else
    system_packages scripts/packages-debian-build.txt scripts/packages-debian.txt
    [ "${1:-}" != --tests ] || test_packages
    [ "${1:-}" != --hosted ] || hosted=yes
    lock=requirements-dev.lock
    set --
fi
python_packages "$lock"
rust
if [ -n "$hosted" ]; then
    RUST_MINIMUM=$RUST_HOSTED new_enough cargo || fail "str0m needs Rust 1.$RUST_HOSTED or newer; update Rust"
    touch "$HOSTED"
fi
# For the Makefile's own calls of cargo.
dirname "$(command -v cargo)" >.venv/.rust-bin
build "$@"
finish_background
link_package
say "ready: .venv/bin/streamgauge --help"
