#!/usr/bin/env bash
# Fuzzes the parsers: scripts/fuzz.sh [SECONDS [TARGET ...]], by default every target for 60 s.
#
# Targets in Python run under Atheris, which is libFuzzer too. On a platform without Atheris the script names
# them and leaves them out.
#
# libFuzzer needs coverage counters in the code, a pass of LLVM that stable rustc has as well. Only the
# address sanitizer needs a nightly compiler, and it finds little in safe Rust. Therefore this script passes
# the flags of cargo-fuzz itself, without a sanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
[ -f .venv/.rust-bin ] && PATH="$(cat .venv/.rust-bin):$PATH"
mapfile -t asked < <([ $# -gt 0 ] && printf '%s\n' "$@" ||
    ls fuzz/fuzz_targets fuzz/python_targets | sed -n 's/\.rs$//p; /^run\.py$/d; s/\.py$//p')
targets=() in_python=()
for target in "${asked[@]}"; do
    if [ -f "fuzz/python_targets/$target.py" ]; then in_python+=("$target"); else targets+=("$target"); fi
done
if [ ${#in_python[@]} -gt 0 ] && ! .venv/bin/python -c 'import atheris' 2>/dev/null; then
    echo "fuzz: left out, for want of Atheris: ${in_python[*]}"
    in_python=()
fi

host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks"
# In a short run of the tests, a full optimisation costs more than it gains.
short=()
if [ "$seconds" -lt 60 ]; then
    export CARGO_PROFILE_RELEASE_OPT_LEVEL=1
    # The same inputs in each run of the tests, and no more of them than a busy machine has time for.
    short=(-seed=1 -runs=40000)
fi
features=(--no-default-features)
for target in "${targets[@]}"; do
    grep -q streamgauge_record "fuzz/fuzz_targets/$target.rs" && features=()
done
# With a target named, build scripts and macros stay as they are.
[ ${#targets[@]} -eq 0 ] ||
    cargo build --quiet --release --manifest-path fuzz/Cargo.toml --target "$host" "${features[@]}" \
        $(printf -- '--bin %s ' "${targets[@]}")

fuzz() { # target, its command...
    local target=$1 log
    shift
    mkdir -p "fuzz/found/$target" "fuzz/corpus/$target" "fuzz/artifacts/$target"
    log=$(mktemp)
    # An input that takes 30 s is a finding, on a machine that is shared as well. A target that continues is ended.
    if ! timeout --kill-after=5 $((seconds + 120)) "$@" "${short[@]}" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=1024 -verbosity=1 \
        -print_final_stats=1 -artifact_prefix="fuzz/artifacts/$target/" "fuzz/found/$target" "fuzz/corpus/$target" \
        >"$log" 2>&1; then
        tail -40 "$log"
        echo "fuzz: $target breaks; run it again on the file above: $* FILE" >&2
        rm -f "$log"
        return 1
    fi
    echo "fuzz: $target: $(grep '^Done' "$log")"
    rm -f "$log"
}

# At once: a target keeps one core busy.
echo "fuzz: ${targets[*]} ${in_python[*]}, $seconds s"
pids=()
for target in "${targets[@]}"; do
    fuzz "$target" "fuzz/target/$host/release/$target" &
    pids+=($!)
done
for target in "${in_python[@]}"; do
    fuzz "$target" .venv/bin/python fuzz/python_targets/run.py "$target" &
    pids+=($!)
done
status=0
for pid in "${pids[@]}"; do
    wait "$pid" || status=1
done
exit "$status"
