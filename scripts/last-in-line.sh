#!/usr/bin/env bash
# Runs a command last in line for a processor: scripts/last-in-line.sh [--strictly] [--while FILE] COMMAND [ARGUMENT ...]
#
# It has what others leave, and yields at once: in a control group that is idle (cpu.idle, since Linux 5.15), which takes
# root. Elsewhere by niceness, which is not as strict: a trial in real time may find a processor taken for milliseconds.
# With --strictly nothing runs there, and the exit status is 125. With --while it takes its turn like any other as soon
# as FILE is gone.
set -uo pipefail
strictly="" file=""
[ "${1:-}" != --strictly ] || { strictly=yes; shift; }
[ "${1:-}" != --while ] || { file=$2; shift 2; }

group=""
for place in /sys/fs/cgroup/cpu /sys/fs/cgroup/cpu,cpuacct /sys/fs/cgroup; do
    mkdir "$place/streamgauge-$$" 2>/dev/null || continue
    if { echo 1 >"$place/streamgauge-$$/cpu.idle"; } 2>/dev/null; then
        group=$place/streamgauge-$$
        break
    fi
    rmdir "$place/streamgauge-$$"
done
[ -n "$group" ] || [ -z "$strictly" ] || exit 125

# A session of its own: where sessions share processors, niceness counts within one alone.
# shellcheck disable=SC2016
setsid bash -c '
    group=$1; shift
    if [ -n "$group" ]; then echo $$ >"$group/cgroup.procs" || exit 125; else { echo 19 >/proc/self/autogroup; } 2>/dev/null; fi
    exec nice -n 19 "$@"' bash "$group" "$@" &
session=$!
watch=""
end() {
    [ -z "$watch" ] || kill "$watch" 2>/dev/null
    # All of it: the command and its children.
    kill -TERM -- "-$session" 2>/dev/null
    wait "$session" 2>/dev/null
    [ -n "$group" ] || return
    # A process that left the session is still in the group.
    for _ in $(seq 50); do
        rmdir "$group" 2>/dev/null && return
        sleep 0.1
    done
    echo "last-in-line: ended what outlived its command: $(xargs -r ps -o pid=,args= -p <"$group/cgroup.procs" | head -5)" >&2
    xargs -r kill -KILL <"$group/cgroup.procs" 2>/dev/null
    sleep 0.5
    rmdir "$group" 2>/dev/null || echo "last-in-line: $group stays" >&2
}
trap 'trap - EXIT; end; exit 143' INT TERM
trap end EXIT
if [ -n "$group" ] && [ -n "$file" ]; then
    # A machine that is never idle would keep it for ever.
    (
        trap 'kill "$!"; exit' TERM
        while [ -e "$file" ]; do sleep 1 & wait "$!"; done
        echo 0 >"$group/cpu.idle"
        while sleep 300 & wait "$!"; do
            echo "last-in-line: these still run:"
            xargs -r ps -o pid=,stat=,time=,args= -p <"$group/cgroup.procs" | cut -c 1-150
        done
    ) 2>/dev/null &
    watch=$!
fi
wait "$session"
