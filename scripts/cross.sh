#!/usr/bin/env bash
# Tools for a wheel of another processor than this machine's. Sourced by wheel.sh.
#
# zig compiles C and links, for any version of glibc. The standard library of Rust must come from the same build as the
# compiler: either rustup's for that target, or else Debian's with Debian's compiler. That is unpacked into a folder and runs
# with its own C library, so that it needs neither root nor that release of Debian.
# shellcheck source=scripts/debs.sh
. scripts/debs.sh

ZIG=0.15.2 CARGO_ZIGBUILD=0.24.1
GLIBC=2.34         # the oldest with one library for threads; the native module's own build on Debian 12 needs it too
RUST_OF=trixie-backports
LIBELF_OF=bookworm # old enough for all supported systems

# Sets `cross_build` and `cross_package`, the command of cargo and the options of maturin, and their environment.
cross_to() { # machine
    local target=$1-unknown-linux-gnu architecture folder=$work/cross
    architecture=$(case $1 in x86_64) echo amd64 ;; aarch64) echo arm64 ;; esac)
    if [ "$(cat "$folder/zig" 2>/dev/null)" != "$ZIG $CARGO_ZIGBUILD" ]; then
        say "installing zig"
        "$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "ziglang==$ZIG" \
            "cargo-zigbuild==$CARGO_ZIGBUILD"
        mkdir -p "$folder"
        echo "$ZIG $CARGO_ZIGBUILD" >"$folder/zig"
    fi
    PATH=$work/venv/bin:$PATH
    rust_for "$target" "$architecture" "$folder"

    # libbpf is built from source, against libelf and zlib of that processor.
    local libraries=$folder/$architecture name
    if [ ! -e "$libraries/done" ]; then
        say "fetching libelf and zlib of $architecture"
        unpack_debs "$libraries" "$LIBELF_OF" "$architecture" alone libelf-dev libelf1 zlib1g-dev zlib1g ||
            fail "Debian's libelf and zlib for $architecture could not be fetched"
        touch "$libraries/done"
    fi
    export LIBBPF_SYS_EXTRA_CFLAGS="-I$libraries/usr/include -I$libraries/usr/include/$1-linux-gnu"
    name=LIBBPF_SYS_LIBRARY_PATH_${target//-/_}
    export "$name=$libraries/usr/lib/$1-linux-gnu"

    # zig's archiver writes the index of any processor's objects.
    printf '#!/bin/sh\nexec %q -m ziglang ar "$@"\n' "$work/venv/bin/python" >"$folder/ar"
    chmod 755 "$folder/ar"
    export AR=$folder/ar CARGO_PROFILE_RELEASE_STRIP=symbols
    cross_build=(cargo-zigbuild zigbuild --target "$target.$GLIBC")
    cross_package=(--target "$target" --zig --compatibility "manylinux_${GLIBC/./_}")
}

# Makes a `rustc` first on PATH that has the target's standard library.
rust_for() { # target architecture folder
    local target=$1 libraries rust=$3/rust
    has_library() { # rustc
        libraries=$("$1" --print target-libdir --target "$target" 2>/dev/null) && compgen -G "$libraries/libstd-*.rlib" >/dev/null
    }
    has_library rustc && return
    if command -v rustup >/dev/null && rustup --quiet target add "$target" 2>"$3/rustup.log" && has_library rustc; then
        return
    fi
    if [ ! -x "$rust/bin/rustc" ] || ! has_library "$rust/bin/rustc"; then
        say "fetching Debian's Rust with its library for $2 (250 MB)"
        rm -rf "$rust"
        unpack_debs "$rust/root" "$RUST_OF" "$(dpkg --print-architecture)" all libstd-rust-dev &&
            unpack_debs "$rust/root" "$RUST_OF" "$(dpkg --print-architecture)" alone rustc &&
            unpack_debs "$rust/root" "$RUST_OF" "$2" alone libstd-rust-dev ||
            fail "no Rust library for $target: neither rustup nor Debian's $RUST_OF could be fetched"
        debian_rustc "$rust"
        has_library "$rust/bin/rustc" || fail "Debian's Rust has no library for $target"
    fi
    PATH=$rust/bin:$PATH
    export RUSTC=$rust/bin/rustc
}

# Writes a `rustc` that runs Debian's with the C library beside it.
debian_rustc() { # folder
    local root=$1/root libraries
    libraries=$root/usr/lib/$(uname -m)-linux-gnu
    mkdir -p "$1/bin"
    printf '#!/bin/sh\nexec %q --library-path %q %q --sysroot %q "$@"\n' \
        "$(readlink -f "$root"/lib64/ld-linux-*.so.*)" "$libraries" "$root/usr/bin/rustc" "$root/usr" >"$1/bin/rustc"
    chmod 755 "$1/bin/rustc"
}
