# The README's commands. Each does its own set-up, which takes seconds when nothing is missing.
.PHONY: docs help setup setup-tests setup-browsers setup-ndnd setup-hosted profiled wheel demo test test-sim test-long fuzz bench lint format audit reproduce-emu clean
.DEFAULT_GOAL := help

SG := .venv/bin/streamgauge
PY := .venv/bin/python
# The cargo that set-up chose, which need not be the first on PATH.
CARGO = PATH="$$(cat .venv/.rust-bin):$$PATH" cargo
# Features that this machine can build beyond the plain workspace, as set-up found them.
FEATURES = --features "$$(cat .venv/.cargo-features)"

# Prints the time at each part of a long target.
now = @date '+%T  $@: $(1)'

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: ## install missing dependencies, build changed sources
	@scripts/setup.sh

setup-tests: ## the same, and the dependencies of tests: a browser and its players
	@scripts/setup.sh --tests
	@scripts/players.sh || echo "setup-tests: tests of players in a browser are left out, and say so"

setup-browsers: setup ## the same, and players in a browser, VLC, HTTP/3 (docs/dash-players.md)
	@scripts/players.sh

setup-ndnd: setup ## the same, and ndnd, a forwarder of Named Data Networking, built from source (docs/ccn.md)
	@scripts/ndnd.sh

setup-hosted: ## the same, and the systems that are libraries of others: str0m (docs/calls.md)
	@scripts/setup.sh --hosted

profiled: setup ## build the simulator by a profile of itself: the same trials in less time (6 minutes, docs/performance.md)
	@scripts/profiled.sh

docs: setup ## build the documentation as a site that works offline, in dist/docs
	@$(PY) scripts/docs.py

wheel: ## build dist/*.whl, with everything inside, for any Python from 3.11 on; MACHINE=aarch64 for another processor (docs/install.md)
	@scripts/wheel.sh $(MACHINE)

demo: ## simulate video on a narrow link, stream it with real programs, write a report (2 minutes, and the build)
	@scripts/setup.sh --demo scripts/demo.sh --first
	@scripts/demo.sh --rest

# The same examples in each run: a failure here is a failure everywhere. `test-long` draws anew.
SAME = PROPTEST_RNG_SEED=1
RUST_TESTS = $(CARGO) test --quiet --workspace --exclude streamgauge-python $(FEATURES)
PARSERS := trace path_spec trial_plan http coding segment rtsp rtcp sdp mpd m3u8 sidx cmcd ndn rdt rist srt asm rm asf mms \
	wmsp capture capture_frames capture_pair servers scenario assignment expression player_files trial_json \
	baseline qlog live_asked live_change trace_forms

test: setup-tests ## everything that CI runs: Rust, Python, sim and emu
	$(call now,Rust)
	$(RUST_TESTS) --no-run
	# Four at a time: those of the engine are in real time, and wait more than they work. Meanwhile the parsers are fuzzed.
	@scripts/beside.sh '$(SAME) RUST_TEST_THREADS=4 $(RUST_TESTS)' 'scripts/fuzz.sh 5 $(PARSERS)'
	# Beside what set-up builds, so that nothing of it is built again with other features.
	$(CARGO) test --quiet --release -p streamgauge-sim -p streamgauge-python -p streamgauge-engine $(FEATURES) --test digests
	$(call now,real players and Python)
	# Players keep no processor busy.
	@scripts/real-players.sh $(PY) -m pytest -n auto --dist loadfile -m 'not emu and not long' --ignore tests/serving
	$(call now,emu)
	# Three at a time, where root runs them: they wait more than they work. Meanwhile trials in virtual machines.
	@scripts/beside.sh "$(PY) -m pytest -n 3 --dist loadgroup -m 'emu and not guest and not long' --ignore tests/serving" \
		"$(PY) -m pytest -n 2 --dist loadgroup -m 'guest and not long' tests/emu tests/machine"
	$(call now,all passed)

test-sim: setup ## the part of the tests that needs neither root nor Linux
	$(CARGO) test --quiet
	$(PY) -m pytest -n auto --dist loadfile -m 'not emu and not long'

test-long: setup-hosted ## the tests that take minutes: the catalogue in emu, the docs' new system built, records in Spark, a hundred kills
	@scripts/extras.sh readers
	$(PY) -m pytest -m long
	# Our SRT against libsrt and FFmpeg, our RIST against librist, where they are installed.
	$(CARGO) test --quiet -p streamgauge-systems --test srt_libsrt --test rist_librist -- --ignored
	# Properties by other examples than `test` has.
	$(RUST_TESTS)
	$(PY) -m pytest -n auto --dist loadfile -m 'hypothesis and not emu and not long' --hypothesis-profile anew

fuzz: setup ## fuzz the parsers, each for SECONDS=60, or TARGET=name alone
	@scripts/fuzz.sh $(or $(SECONDS),60) $(TARGET)

bench: setup ## rates of the hot paths; the simulator beside ns-3 where libns3-dev is installed
	$(CARGO) bench --quiet -p streamgauge-path -p streamgauge-transport -p streamgauge-wire -p streamgauge-systems -p streamgauge-record -p streamgauge-capture -p streamgauge-live
	$(CARGO) bench --quiet -p streamgauge-sim --bench sim -- 2
	$(CARGO) bench --quiet -p streamgauge-sim --bench floor -- --rounds=3
	$(PY) benches/simulators.py
	$(PY) benches/campaign.py
	$(PY) benches/compare.py
	$(PY) benches/matrix.py
	$(PY) benches/sweep.py
	$(PY) benches/infer.py
	$(PY) benches/evaluate.py --quick
	$(PY) benches/abr.py
	$(PY) benches/call.py
	$(PY) benches/captures.py
	$(PY) benches/names.py
	$(PY) benches/report_memory.py --trials 100,1000
	$(PY) benches/cluster.py
	$(PY) benches/emulator.py --quick
	$(PY) benches/emulator.py --quick --part packets --live
	$(PY) benches/virtual.py --quick
	$(PY) benches/link_peers.py --rounds 1
	$(PY) benches/emulator_peers.py --seconds 0.2
	# The figures that moved since the last release beyond their noise.
	$(PY) benches/history.py

lint: setup ## rustfmt, clippy, ruff, mypy --strict, plain English
	$(CARGO) fmt --all --check
	$(CARGO) clippy --quiet --workspace --all-targets $(FEATURES) -- -D warnings
	$(PY) -m ruff check python tests scripts benches
	$(PY) -m ruff format --check python tests scripts benches
	$(PY) -m mypy
	# Prose, by the rules of docs/style.md.
	$(PY) scripts/words.py

format: setup ## let the formatters write
	$(CARGO) fmt --all
	$(PY) -m ruff format python tests scripts benches
	$(PY) -m ruff check --fix python tests scripts benches

audit: setup ## check dependencies: licences, sources and known vulnerabilities
	@scripts/audit.sh

reproduce-emu: setup ## every scenario that runs in emu, in full (hours)
	$(SG) reproduce --mode emu --out runs/reproduce-emu '*'

clean: ## remove all builds
	rm -rf target dist .venv python/streamgauge/_bin python/streamgauge/_native*.so
