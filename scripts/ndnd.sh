#!/usr/bin/env bash
# Builds ndnd, the forwarder and tools of Named Data Networking in Go, into .venv/bin, for tests and
# docs/ccn.md. It takes a second when ndnd is there, and two minutes of a processor when it is not.
# scripts/third-party/ndnd has its version and the checksums of all sources. As an ordinary user without Go it
# prints the missing package.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'setup-ndnd: %s\n' "$*"; }
fail() { printf 'setup-ndnd: %s\n' "$*" >&2; exit 1; }

module=scripts/third-party/ndnd
program=github.com/named-data/ndnd
version=$(awk -v program="$program" '$1 == program {print $2}' "$module/go.mod")
# 1.24: the minor number counts.
minimum=$(awk '$1 == "go" {split($2, part, "."); print part[2]}' "$module/go.mod")
stamp=.venv/.ndnd
now=$(cat "$module/go.mod" "$module/go.sum" | cksum)

[ -x .venv/bin/python ] || fail "no .venv here; first: make setup"
if [ -x .venv/bin/ndnd ] && [ "$(cat "$stamp" 2>/dev/null)" = "$now" ]; then
    say "ndnd $version: all there"
    exit 0
fi

# A newer Go is not fetched by an older one unasked.
export GOTOOLCHAIN=local
new_enough() { # go
    local found
    found=$("$1" env GOVERSION 2>/dev/null) && [[ $found =~ ^go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge "$minimum" ]
}

find_go() {
    local candidate
    for candidate in go /usr/local/go/bin/go $(printf '%s\n' /usr/lib/go-1.*/bin/go | sort -rV); do
        if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
            go=$(command -v "$candidate")
            return 0
        fi
    done
    return 1
}

install_go() {
    local package=""
    if command -v apt-cache >/dev/null; then
        [ "$(id -u)" != 0 ] || apt-get update -qq
        package=$(apt-cache search --names-only '^golang-1\.[0-9]+-go$' | awk '{print $1}' | sort -t. -k2 -n | tail -n 1)
    fi
    if [[ ! $package =~ ^golang-1\.([0-9]+)-go$ ]] || [ "${BASH_REMATCH[1]}" -lt "$minimum" ]; then
        fail "Go 1.$minimum or newer is needed and the distribution has ${package:-none}. Unpack Go's own archive as /usr/local/go,
or install a newer package from the distribution's backports, and run this again."
    fi
    [ "$(id -u)" = 0 ] || fail "Go 1.$minimum or newer is needed. As root: apt-get install --no-install-recommends $package"
    say "installing $package"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null
}

if ! find_go; then
    install_go
    find_go || fail "the Go that was installed is not found, or older than 1.$minimum"
fi
say "building ndnd $version with $("$go" env GOVERSION) (two minutes of a processor)"
# -mod=readonly: with the modules of go.mod and go.sum alone. Without cgo no C compiler is needed.
GOFLAGS="" CGO_ENABLED=0 nice -n 19 "$go" -C "$module" build -mod=readonly -o "$PWD/.venv/bin/ndnd" "$program/cmd/ndnd"
printf '%s\n' "$now" >"$stamp"
say "ready: .venv/bin/ndnd"
