#!/usr/bin/env bash
# Tries a wheel of another processor under QEMU's emulation of programs, in a folder with Debian's packages for it.
#
#   scripts/try-foreign-wheel.sh aarch64 [WHEEL]      WHEEL is the one in dist/ otherwise
#
# It needs neither root nor an installed QEMU, but Linux 6.7 or newer: the rule that such programs run under QEMU is then one
# of a user namespace and ends with it. Steps: a simulated trial must have the digest that it has on this machine, and the
# engine must stream by real sockets. A line for each step has its time. The exit status is 0 if all steps worked.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debs.sh
. scripts/debs.sh

say() { printf 'try-foreign-wheel: %s\n' "$*"; }
fail() { printf 'try-foreign-wheel: %s\n' "$*" >&2; exit 1; }
step() { # words command...
    local words=$1 log=$work/step.log TIMEFORMAT='%1R s' took status=0
    shift
    took=$({ time "$@" >"$log" 2>&1; } 2>&1) || status=$?
    [ "$status" = 0 ] || { tail -n 40 "$log" >&2; fail "$machine: $words: failed"; }
    say "$machine: $words: $took"
}

machine=${1:-}
case $machine in
    aarch64) architecture=arm64 magic='\xb7' ;;
    *) echo "usage: scripts/try-foreign-wheel.sh aarch64 [WHEEL]" >&2; exit 2 ;;
esac
wheel=${2:-$(compgen -G "dist/streamgauge-*_$machine.whl" || true)}
[ -f "$wheel" ] || fail "no wheel for $machine, or several: 'make wheel MACHINE=$machine' builds one in dist/, or name one"
work=$PWD/target/wheel/try-$machine
root=$work/root
mkdir -p "$work"

# --- the folder ------------------------------------------------------------------------------------------
if [ ! -e "$work/done" ]; then
    rm -rf "$root" "$work/qemu"
    # Debian 12's QEMU has no openat2(2), by which the engine opens files.
    step "QEMU" unpack_debs "$work/qemu" trixie "$(dpkg --print-architecture)" alone qemu-user
    step "Debian 12 for $architecture" unpack_debs "$root" bookworm "$architecture" all python3 libelf1 libstdc++6 bash coreutils
    touch "$work/done"
fi
rm -rf "$root/opt/streamgauge" "$root/trial"
mkdir -p "$root/trial"
python=.venv/bin/python
[ -x "$python" ] || fail "no .venv: run scripts/setup.sh first"
platforms=()
for glibc in 34 31 28 27 24 17; do platforms+=(--platform "manylinux_2_${glibc}_$machine"); done
step "pip install" "$python" -m pip install --quiet --disable-pip-version-check --target "$root/opt/streamgauge" \
    --only-binary :all: --implementation cp --python-version 3.11 "${platforms[@]}" --platform "manylinux2014_$machine" "$wheel"

# --- its programs ----------------------------------------------------------------------------------------
# The rule names the first bytes of a program: an ELF file of that processor.
elf='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00'$magic'\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
emulated() { # shell commands, run in the folder
    unshare --user --map-root-user --mount --net --pid --fork --kill-child bash -euc '
        mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
        printf "%s" ":streamgauge:M::$2:$3:$4:F" >/proc/sys/fs/binfmt_misc/register
        ip link set lo up
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        exec chroot "$1" /usr/bin/env -i PATH=/usr/bin:/opt/streamgauge/bin HOME=/trial LANG=C.UTF-8 \
            PYTHONPATH=/opt/streamgauge PYTHONDONTWRITEBYTECODE=1 bash -euc "cd /trial; $5"
    ' - "$root" "$elf" "$mask" "$work/qemu/usr/bin/qemu-$machine" "$1"
}
sg='python3 -m streamgauge'
step "streamgauge --version" emulated "$sg --version"
run='run hessler/ftp-medium --mode sim --seed 1'
step "a trial in sim" emulated "$sg $run >there.txt"
here=$work/here
rm -rf "$here"
mkdir -p "$here"
# shellcheck disable=SC2086
(program=$PWD/.venv/bin/streamgauge && cd "$here" && "$program" $run >here.txt)
there=$(grep '^digest' "$root/trial/there.txt") && same=$(grep '^digest' "$here/here.txt") || fail "a trial printed no digest"
[ "$there" = "$same" ] || fail "$machine: the same trial has another $there than on this machine: $same"
say "$machine: that trial has the $there of this machine"
step "a clip, encoded here" .venv/bin/streamgauge clip carphone-242k "$root/trial/videos/clip.mp4"
step "the engine serves and plays it by real sockets" emulated "
    $sg serve --system darwin --listen 127.0.0.1:8554 videos >served.txt 2>&1 &
    for try in \$(seq 100); do
        $sg play --transport tcp rtsp://127.0.0.1:8554/clip.mp4 && exit
        sleep 1
    done
    cat served.txt
    exit 1"
grep -h 'frames\|end' "$work/step.log" || true
say "$machine: all steps worked"
