#!/usr/bin/env bash
# Tries a wheel in an empty Debian: `pip install`, sim at once, then the one line that `streamgauge doctor`
# gives, then emu.
#
#   scripts/try-wheel.sh bookworm|trixie [WHEEL]      WHEEL is the one in dist/ otherwise
#
# It needs root and debootstrap. The Debian is a folder below $TMPDIR (/tmp) with Python and its venv module.
# It has its own mounts and processes, and all of it is removed at the end, in any case. It has this machine's
# network, mirror and settings of pip and apt. A line for each step has its time, by the clock and of a
# processor. The exit status is 0 if all steps worked.
set -euo pipefail
[ "${1:-}" = --inside ] || cd "$(dirname "$0")/.."

say() { printf 'try-wheel: %s\n' "$*"; }
fail() { printf 'try-wheel: %s\n' "$*" >&2; exit 1; }

# Runs a step, and prints its time. Its output is shown if it fails.
step() { # words command...
    local words=$1 status=0 log=/tmp/step.log took
    local TIMEFORMAT='%1R s (processor: %1U s + %1S s)'
    shift
    took=$({ time "$@" >"$log" 2>&1; } 2>&1) || status=$?
    [ "$status" = 0 ] || { cat "$log" >&2; fail "$suite: $words: failed"; }
    say "$suite: $words: $took"
}

# --- inside ----------------------------------------------------------------------------------------------
# The rest of this script runs as the first process of its own namespaces. Its end is that of all processes in them.
enter() { # root
    local root=$1 part
    mount --bind "$root" "$root"
    for part in dev sys; do mount --rbind "/$part" "$root/$part"; done
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/run"
    # Trials here and on the machine outside take turns, as they take the same processors.
    mkdir -p "$root/run/lock"
    [ ! -d /run/lock ] || mount --bind /run/lock "$root/run/lock"
    local folder
    for folder in ${PIP_FIND_LINKS:-}; do
        [ ! -d "$folder" ] || { mkdir -p "$root$folder" && mount --bind "$folder" "$root$folder"; }
    done
    cd "$root"
    mkdir -p .outside
    # Not chroot, within which the kernel makes no user namespaces.
    pivot_root . .outside
    exec chroot . /usr/bin/env -i "${kept[@]}" HOME=/root LANG=C.UTF-8 TERM=dumb PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        bash /usr/local/bin/try-wheel.sh --inside "$suite"
}

inside() {
    umount --lazy /.outside && rmdir /.outside
    # In a folder that every user may read: servers and players have the user of least rights.
    local sg=/opt/streamgauge/bin/streamgauge
    step "python3 -m venv /opt/streamgauge" python3 -m venv /opt/streamgauge
    step "pip install the wheel" /opt/streamgauge/bin/pip install --quiet --no-cache-dir /root/*.whl
    mkdir /srv/trial && cd /srv/trial
    step "streamgauge --version" "$sg" --version
    say "$suite: $(cat /tmp/step.log), $(/opt/streamgauge/bin/python --version)"
    step "the first run in sim" "$sg" run hessler/ftp-medium --mode sim
    local install
    install=$("$sg" doctor --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["install"] or "")' || true)
    [ -n "$install" ] || fail "$suite: doctor names nothing to install, though nothing is"
    "$sg" doctor >/tmp/doctor.txt && fail "$suite: doctor says that emu can run, though nothing is installed"
    [ "$(tail -n 1 /tmp/doctor.txt)" = "    $install" ] || fail "$suite: doctor does not end with the line"
    say "$suite: doctor says: $install"
    step "that line" sh -c "$install"
    "$sg" doctor >/tmp/doctor.txt || { cat /tmp/doctor.txt >&2; fail "$suite: doctor says that emu cannot run"; }
    grep '^missing' --after-context=2 /tmp/doctor.txt || true
    # It fetches and encodes the clip first.
    step "the first run in emu, 5 s of it streaming" emu udp
    streamed
    step "another one" emu tcp
    streamed
    # With a home of his own, and so a clip of his own.
    useradd --create-home somebody
    step "an ordinary user's first" su somebody -c "cd && bash $0 --inside $suite emu udp"
    streamed
    step "the report" "$sg" report runs
    step "git" apt-get install -y -qq --no-install-recommends git
    step "the steps of action.yml on two commits" act
    grep 'action-steps: outputs' /tmp/step.log
    say "$suite: all steps worked"
}

# The steps of the action on a program with two commits. They are equal, so that nothing is worse: 0, or 2 without a verdict.
act() {
    local status=0
    mkdir /srv/player && cd /srv/player
    git init --quiet
    git config user.name tester && git config user.email tester@localhost
    cp /srv/action/action.yaml video.yaml
    git add . && git commit --quiet --message first
    echo "# Another build." >>video.yaml
    git commit --quiet --all --message second
    /opt/streamgauge/bin/python /srv/action/action-steps.py /srv/action/action.yml --input scenario=video.yaml \
        --input base=HEAD~1 --input at-most=2 --input "wheel=$(ls /root/*.whl)" || status=$?
    [ "$status" = 0 ] || [ "$status" = 2 ]
}

# A short trial of real video. An invalid one, of a busy machine, is a trial, and of one so short not every check can judge.
emu() { # transport
    local status=0
    /opt/streamgauge/bin/streamgauge run "today/demo-rtsp-$1-medium" --mode emu --repeat 1 --replace 0 --json \
        --set until.time=5s --set 'measure.window=[0s,5s]' --set flows.cross.start=1s --set flows.cross.stop=4s || status=$?
    [ "$status" -le 2 ]
}

# Prints the result of the last step's trial; an error if no video arrived.
streamed() {
    sed -n '/^{/,$p' /tmp/step.log | python3 -c '
import json, sys

(trial,) = json.load(sys.stdin)["trials"]
goodput = trial["flows"].get("video", {}).get("goodput_bps", 0)
why = "; ".join(trial["why"])
print(f"try-wheel:     {goodput / 1e3:.0f} kbit/s of video came through,", f"invalid: {why}" if why else "a valid trial")
sys.exit(not goodput)' || { cat /tmp/step.log >&2; fail "$suite: no video came through"; }
}

if [ "${1:-}" = --inside ]; then
    suite=$2
    "${3:-inside}" "${@:4}"
    exit
fi

# --- outside ---------------------------------------------------------------------------------------------
suite=${1:-}
case $suite in
    bookworm | trixie) ;;
    *) echo "usage: scripts/try-wheel.sh bookworm|trixie [WHEEL]" >&2; exit 2 ;;
esac
# This machine's settings of proxies and mirrors, for apt, pip and others.
mapfile -t kept < <(env | grep -iE '^(PIP_[A-Z_]*|(http|https|no|all)_proxy|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)=' || true)
if [ "${2:-}" = --enter ]; then
    enter "$3"
fi
[ "$(id -u)" = 0 ] || fail "run it as root: it makes and enters another Debian's root folder"
command -v debootstrap >/dev/null || fail "debootstrap is missing; apt-get install debootstrap"
wheel=${2:-$(compgen -G "dist/streamgauge-*_$(uname -m).whl" || true)}
[ -f "$wheel" ] || fail "no wheel, or several: 'make wheel' builds one in dist/, or name one"

# shellcheck disable=SC1091
own=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(apt-get indextargets --format '$(CODENAME) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
    awk -v own="$own" '$1 == own && $2 == "Debian" { print $3; exit }')
[ -n "$mirror" ] || fail "apt has no source of Debian's packages to take $suite from"

scratch=$(mktemp -d "${TMPDIR:-/tmp}/streamgauge-try-$suite.XXXXXX")
trap 'rm -rf --one-file-system "$scratch"' EXIT
root=$scratch/root
chmod 755 "$scratch"
step "debootstrap" debootstrap --variant=minbase --include=ca-certificates,python3-venv "$suite" "$root" "$mirror"

apt-config dump | grep -E '^Acquire::(Check-|http|https|ftp|Retries)' >"$root/etc/apt/apt.conf.d/90machine" || true
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /root/.pip/pip.conf /root/.config/pip/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    [ ! -f "$file" ] || install -D -m 644 "$file" "$root$file"
done
# As in images of containers: an installed service is not started, as it would be one of the machine outside.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
cp "$wheel" "$root/root/"
mkdir "$root/srv/action"
cp action.yml scripts/action-steps.py tests/newcomer/action.yaml "$root/srv/action/"
install -m 755 "$0" "$root/usr/local/bin/try-wheel.sh"

unshare --mount --propagation private --pid --fork --kill-child bash "$0" "$suite" --enter "$root"
