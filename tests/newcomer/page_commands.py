"""When each command of the README and of the pages runs: here, in namespaces, among the long tests, never."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

When = Literal["here", "serving", "in namespaces", "long", "never"]


@dataclass(frozen=True)
class How:
    """When a command is run, why not here, and what is seen of it."""

    when: When = "here"
    why: str = ""
    status: int = 0
    #: Patterns of what it prints, each of which the page shows as well.
    shows: tuple[str, ...] = ()


HERE = How()
WORLD = How("in namespaces", "needs namespaces")
A_MINUTE = "takes minutes"
VIRTUAL = How("long", "a virtual machine, which tests/machine starts")
READERS = "runs what the reader has written"
GATEWAY = How("never", "names a network of one's own; tests/gateway does the like between namespaces")
CAPTURES = How("never", "names captures of one's own")
PUBLIC = "plays for a person, in a window or through speakers"

#: Pages whose commands take ten seconds or so. `make test-long` runs them; in `make test` the program
#: reads them.
LONGER = (
    "ccn.md",
    "compare.md",
    "content.md",
    "figures.md",
    "http.md",
    "matrix.md",
    "quality.md",
    "queues.md",
    "realvideo.md",
    "serve.md",
    "sweep.md",
    "windows-media.md",
)

COMMANDS: dict[str, How] = {
    # README
    "make demo": How("never", "streams for two minutes; CI runs it by itself"),
    "make test": How("never", "is what runs this"),
    "streamgauge doctor": WORLD,
    "streamgauge calibrate": How("long", A_MINUTE),
    "streamgauge list": HERE,
    "streamgauge show today/rtsp-udp-medium": HERE,
    "streamgauge presets": HERE,
    "streamgauge run today/rtsp-udp-medium": How("long", A_MINUTE, status=0),
    "streamgauge run hessler/ftp-medium --mode sim --repeat 10 --set path.down.rate=2Mbit/s": HERE,
    "streamgauge sweep hessler/ftp-medium --mode sim --over path.down.queue=10kB,20kB,50kB": HERE,
    "streamgauge run today/demo-rtsp-udp-medium --machine virtual --seed 1 --out runs/once": VIRTUAL,
    "streamgauge run today/demo-rtsp-udp-medium --machine virtual --seed 1 --out runs/twice": VIRTUAL,
    "streamgauge reproduce 'hessler/ftp-*' --mutants": HERE,
    "streamgauge reproduce darwin": How("long", A_MINUTE, status=1),
    "streamgauge crosscheck tcp --quick --case 'reno/*'": How("long", A_MINUTE, status=1),
    "streamgauge run examples/nginx-ffmpeg.yaml": How("long", "test_own_programs runs it in less time"),
    "streamgauge report runs/": HERE,
    "streamgauge link --down 'rate 1 Mbit/s, queue 10 kB, delay 20 ms' --server 'python3 -m http.server' "
    "-- sh -c 'curl -so /dev/null http://$STREAMGAUGE_SERVER:8000/docs/images/rtsp-udp-tcp.png'": WORLD,
    "streamgauge link --preset lte --trace lte-walking -- bash": WORLD,
    "streamgauge clip carphone-550k videos/clip.mp4": HERE,
    "streamgauge serve --system darwin --listen 127.0.0.1:8554 videos/ &": How("serving"),
    "streamgauge play rtsp://127.0.0.1:8554/clip.mp4": How(shows=("played to the end", "over Reliable UDP")),
    "streamgauge calibrate --out calibration.png": How("long", A_MINUTE),
    "streamgauge compare dash/lte-bola --mode sim "
    "--over flows.video.parameters.rule=bola,dashjs-dynamic,hlsjs,shaka": How(
        status=1, shows=("bola serves the viewer best",)
    ),
    # first-trial, own-player, tour, style
    "streamgauge show hessler/ftp-medium": HERE,
    "streamgauge run hessler/ftp-medium --mode sim --repeat 10 --out runs/first": HERE,
    "streamgauge report runs/first": HERE,
    "streamgauge run hessler/ftp-medium --mode sim --repeat 10 --set path.down.queue='codel 20 kB' "
    "--out runs/first": How(status=1),
    "streamgauge sweep hessler/ftp-medium --mode sim --over path.down.queue=10kB,20kB,50kB "
    "--out runs/queues": HERE,
    "streamgauge run my-player.yaml": How("long", A_MINUTE),
    "streamgauge compare my-player.yaml --commit HEAD~1 --commit HEAD --until decided --at-most 12": How(
        "never", "compares commits of one's own"
    ),
    "streamgauge run examples/one-link.yaml": How("long", A_MINUTE),
    "python scripts/words.py README.md": How("never", "test_plain_english does it"),
    "python scripts/words.py --table": How("never", "test_plain_english does it"),
    # campaigns
    "streamgauge compare today/demo-rtsp-udp-medium today/demo-rtsp-tcp-medium --mode sim": How(
        status=1,
        shows=("tcp is best by time frozen and frames lost, udp by latency to live: time frozen tcp",),
    ),
    # compare
    "streamgauge compare hessler/ftp-medium --over 'path.down.queue=droptail 20 kB,codel 20 kB' --mode sim "
    "--metric neighbour_delay --metric harm": How(status=1),
    "streamgauge compare rtp darwin --in today/demo-rtsp-udp-medium --mode sim --metric frames_lost "
    "--until decided --at-most 12": HERE,
    # matrix, findings
    "streamgauge compare matrix --kind 'tcp-*' --repeat 3": How(
        "long", "matrix.md runs it here with one family of systems"
    ),
    "streamgauge compare matrix": How("long", A_MINUTE),
    "streamgauge compare matrix --kind 'tcp-*' --system 'dash-*' --repeat 3": HERE,
    "streamgauge compare matrix patient.yaml --kind 'tcp-*' --repeat 3": HERE,
    "streamgauge run matrix/link-loss-rtp-udp --mode sim --set 'flows.*.parameters.decoder=libavcodec'": HERE,
    "streamgauge compare matrix --emulate 1 --machine virtual": How("never", "takes an hour"),
    "streamgauge run my.yaml --machine virtual --with /opt/mine": How("never", "names a folder of one's own"),
    "streamgauge compare matrix --emulate 1 --kind tcp-cubic": How("never", "half an hour of real time"),
    "streamgauge run 'matrix/three-*' --mode sim": How("long", A_MINUTE),
    "streamgauge run 'hessler/ftp-*' --mode sim --repeat 25 --keep metrics --out runs/ftp": HERE,
    "streamgauge run 'hessler/ftp-*' --mode sim --repeat 25 --keep metrics --out runs/ftp --verify": HERE,
    # ci
    "streamgauge compare video.yaml --save-baseline baseline.json": How("never", "test_ci_workflow does it"),
    "streamgauge compare video.yaml --against baseline.json --junit after.xml --summary after.md": How(
        "never", "test_ci_workflow does it"
    ),
    "streamgauge compare today/demo-rtsp-udp-medium --over 'path.down.queue=droptail 20 kB,codel 20 kB' "
    "--mode sim --junit queues.xml --summary queues.md": How(status=1),
    "streamgauge run hessler/ftp-medium --mode sim --repeat 4 --junit checks.xml --summary checks.md": HERE,
    # captures
    "streamgauge link --down 'rate 3 Mbit/s, queue 30 kB, delay 20 ms' --up 'delay 20 ms' "
    "--capture link.pcapng --server 'iperf3 -s -1' -- sh -c 'iperf3 -R -t 8 -c $STREAMGAUGE_SERVER'": WORLD,
    "streamgauge analyze link.pcapng": WORLD,
    "streamgauge analyze server.pcapng client.pcapng": CAPTURES,
    "streamgauge analyze server.pcapng client.pcapng --scenario measured.yaml --trace my-line.csv": CAPTURES,
    "streamgauge analyze server.pcapng client.pcapng --checks line.yaml": CAPTURES,
    "streamgauge run measured.yaml": How("never", READERS),
    "streamgauge run dash-stalls.yaml --mode emu --capture --out stalls": How("never", A_MINUTE),
    "cp stalls/scenario=*/mode=emu/seed=1/capture.pcapng ticket.pcapng": How("never", READERS),
    "streamgauge analyze ticket.pcapng --report ticket.html": How(
        "never", "test_adaptive_streams has the capture"
    ),
    "streamgauge analyze ticket.pcapng --out ticket": How("never", "test_adaptive_streams has the capture"),
    "streamgauge verify ticket": How("never", READERS),
    "streamgauge report ticket": How("never", READERS),
    "streamgauge analyze server.pcapng client.pcapng --flow quic --qlog server.sqlog --out record": CAPTURES,
    "streamgauge analyze server.pcapng client.pcapng --flow 203.0.113.9:61000=10.0.0.2:4000": CAPTURES,
    # cluster
    "python -m pip install 'streamgauge[cluster]'": How("never", "has been done"),
    "dask scheduler --port 8786": How("never", "test_cluster does it, on a free port"),
    "streamgauge worker tcp://scheduler:8786": How("never", "test_cluster does it"),
    "streamgauge run 'hessler/ftp-*' --mode sim --repeat 25 --keep metrics --on tcp://scheduler:8786 "
    "--out /shared/run-1": How("never", "test_cluster does it"),
    # calls
    "streamgauge compare rfc8867 --mode sim": How("long", A_MINUTE),
    "streamgauge compare rfc8867 --kind 5.1 --mode sim --repeat 2": HERE,
    "streamgauge run today/call-medium --mode sim": HERE,
    "streamgauge systems call": HERE,
    "make setup-hosted": How("never", "builds for minutes; test-long begins with it"),
    "streamgauge run 'today/webrtc-*' --mode sim": How("long", "needs str0m, which test-long builds"),
    "streamgauge compare webrtc call --in today/webrtc-step --mode sim": How(
        "long", "needs str0m, which test-long builds", status=1
    ),
    "streamgauge systems webrtc": HERE,
    "streamgauge run today/call-chromium-no --mode emu --repeat 1": How("never", "needs Chromium"),
    "streamgauge run today/call-chromium-medium --mode emu "
    "--set flows.video.parameters.controller=scream": How("never", "needs Chromium"),
    "streamgauge systems webrtc-chromium": HERE,
    "streamgauge compare rfc8867 --kind 5.1 --system gcc --system webrtc-chromium --mode emu "
    "--report calls.html": How("never", "needs Chromium"),
    # contribution
    "streamgauge latency-table srt --loss 1%,5% --rtt 50ms,100ms --repeat 2 --report latency.html": HERE,
    "streamgauge run contribution/srt-overhead --mode sim": HERE,
    "streamgauge run today/srt --mode emu": How("never", "real trials for some minutes"),
    "streamgauge run today/contribution --mode emu --machine virtual": VIRTUAL,
    "streamgauge systems srt-libsrt": HERE,
    "streamgauge crosscheck contribution --against sim --case 'srt-libsrt/0*'": How("never", A_MINUTE),
    "streamgauge crosscheck contribution --machine virtual --docs docs/fidelity-contribution.md": How(
        "never", "takes an hour"
    ),
    "streamgauge latency-table srt rist --loss 1%,5% --rtt 100ms --repeat 2 --report both.html": HERE,
    "streamgauge run contribution/rist-four-round-trips --mode sim": HERE,
    "streamgauge systems srt": HERE,
    "streamgauge systems rist": HERE,
    # realvideo
    "streamgauge run realvideo/head2head-75 --mode sim --repeat 8": How(status=1),
    "streamgauge run realvideo/media-scaling-35-udp --mode sim --repeat 8": How(status=2),
    "streamgauge reproduce realvideo --mode sim": How("long", A_MINUTE, status=1),
    "streamgauge reproduce hessler --mode sim": How("long", A_MINUTE, status=1),
    "streamgauge reproduce hessler darwin realvideo windows-media ccn --mode sim": How(
        "long", A_MINUTE, status=1
    ),
    "streamgauge reproduce windows-media --mode sim": How("long", A_MINUTE, status=1),
    "streamgauge systems realvideo": HERE,
    "streamgauge run 'realvideo/eight-*' --mode emu --machine virtual --repeat 8": How(
        "never", "takes half an hour"
    ),
    "streamgauge run 'realvideo/eight-*' --mode sim --repeat 8 --out runs/eight": How(
        "long", "what comes next takes minutes", status=2
    ),
    "streamgauge quality runs/eight": How("long", A_MINUTE),
    "streamgauge run 'today/playlist-*' --mode sim": How("long", A_MINUTE, status=2),
    "streamgauge serve --system realvideo --listen 127.0.0.1:8554 films": How(
        "never", "test_serve_realvideo does it, on a free port"
    ),
    "mplayer rtsp://127.0.0.1:8554/film.rm": How("never", PUBLIC),
    "streamgauge play rtsp://127.0.0.1:8554/film.rm": How(
        "never", "test_play_realvideo does it, on a free port"
    ),
    # windows-media
    "streamgauge run windows-media/sbr-548-250 --mode sim": HERE,
    "streamgauge run 'windows-media/queue-*' --mode sim": HERE,
    "streamgauge systems windows_media": HERE,
    "streamgauge run 'windows-media/sbr-*25' windows-media/sbr-548-250 --mode emu --jobs 8": How(
        "long", A_MINUTE, status=1
    ),
    "streamgauge ladder carphone --rates 28k,109k,282k --audio 24kbit/s --duration 60s "
    "--out films/film.wmv": HERE,
    "streamgauge serve --system windows_media --listen 127.0.0.1:8554 films": How(
        "never", "test_serve_windows_media does it, on a free port"
    ),
    "ffmpeg -rtsp_transport udp -i rtsp://127.0.0.1:8554/film.wmv -map 0 -c copy film.mkv": How(
        "never", "test_serve_windows_media does it, on a free port"
    ),
    "streamgauge play rtsp://127.0.0.1:8554/film.wmv": How(
        "never", "test_play_windows_media does it, on a free port"
    ),
    "streamgauge ladder carphone --rates 28k,43k,86k,109k,148k,282k,340k,548k,764k,1128k "
    "--audio 24kbit/s --out films/ten.wmv": HERE,
    # sweep
    "streamgauge sweep hessler/ftp-medium --mode sim --over path.down.queue=10kB,20kB,50kB "
    "--over path.down.rate=0.5Mbit/s,1Mbit/s --out runs/queues --figure queues.svg": How(
        shows=(r"10 kB +1 Mbit/s +10/10 +648\.55 ± 0\.61 +8\.21 ± 0\.62 +58\.331 ± 0\.080",)
    ),
    "streamgauge report runs/queues": HERE,
    # CONTRIBUTING
    "make setup": How("never", "has been done"),
    # install
    "make wheel": How("never", "test_wheel does it"),
    "make wheel MACHINE=aarch64": How("never", "test_wheel does it"),
    "scripts/try-foreign-wheel.sh aarch64": How("never", "test_wheel does it"),
    "streamgauge run hessler/ftp-medium --mode sim": HERE,
    "streamgauge run today/demo-rtsp-udp-medium --mode emu": How("long", A_MINUTE, status=0),
    "make test-sim": How("never", "is what runs this"),
    "make test-long": How("never", "takes an hour"),
    "make docs": How("never", "test_site does it"),
    "make lint": How("never", "CI runs it"),
    "make fuzz": How("never", "CI runs a part of it"),
    "make audit": How("never", "asks databases of advisories"),
    "make bench": How("never", "a benchmark"),
    "make profiled": How("never", "test_profiled does it"),
    # abr
    "streamgauge compare 'dash/lte-*' --mode sim": How(
        "long", A_MINUTE, status=1, shows=("rank  subject", r"bba-2 +[\d.]+ ± [\d.]+ Mbit/s")
    ),
    "streamgauge compare dash/square-bola --over 'flows.video.parameters.rule=bola,bola-e,dynamic' "
    "--mode sim --metric qoe_lin --metric level": How(status=1),
    "cargo test -p streamgauge-systems last && make setup": How("never", "test_walks does it"),
    "streamgauge run last.yaml --mode sim": How("never", READERS),
    "streamgauge compare dash/lte-bola --mode sim "
    "--over flows.video.parameters.rule=bola,rule.py:cautious": How("never", READERS),
    # adapters, adding-a-queue, calibrate, emu
    "streamgauge systems curl": How("never", "test_walks does it"),
    "streamgauge run pages.yaml": How("never", READERS),
    "cargo test -p streamgauge-path --test headdrop && make setup": How("never", "test_walks does it"),
    "streamgauge run headdrop.yaml --mode sim": How("never", READERS),
    "streamgauge run examples/hls.yaml": How("long", "test_own_programs runs it in less time"),
    "streamgauge run examples/own-player.yaml": How("long", "test_own_events runs it in less time"),
    "streamgauge calibrate --quick --json": How("long", A_MINUTE),
    "streamgauge calibrate --live": How("long", A_MINUTE),
    "streamgauge calibrate --out calibration.png --out calibration.json": How("long", A_MINUTE),
    "python benches/validity.py --json validity.json": How("never", "a benchmark"),
    "python benches/link_peers.py --rounds 3": How("never", "a benchmark"),
    "streamgauge run examples/http.yaml --mode emu --repeat 20 --jobs 4": How("long", A_MINUTE),
    # gateway
    "sudo streamgauge gateway --lan eth1 --wan eth2 --preset lte --live": GATEWAY,
    "sudo streamgauge gateway --lan eth1 --wan eth2 --preset lte --dry-run": GATEWAY,
    "sudo ip address flush dev eth1; sudo ip link set eth1 up": GATEWAY,
    "sudo ip address flush dev eth2; sudo ip link set eth2 up": GATEWAY,
    "sudo streamgauge gateway --lan eth1 --wan eth2 "
    "--down 'rate 4 Mbit/s, queue 60 kB, delay 20 ms'": GATEWAY,
    "sudo streamgauge gateway --lan wlan0 --down 'rate 2 Mbit/s, queue 30 kB, delay 30 ms' "
    "--up 'delay 30 ms'": GATEWAY,
    "sudo streamgauge gateway --container player --preset dsl": GATEWAY,
    "streamgauge gateway --listen 8554 --to camera.local:554 --down 'rate 1 Mbit/s, queue 20 kB'": GATEWAY,
    # content
    "streamgauge clip carphone-550k clips/clip.mp4": HERE,
    "streamgauge clip testsrc2-1M clips/card.mp4 --duration 4s --audio 48kbit/s --json": How(
        shows=(r"digest",)
    ),
    "streamgauge ladder carphone --rates 235k,560k,1050k,1750k --duration 6s --audio 64kbit/s "
    "--out videos": How(shows=(r"key frames align: 3 segments; videos/content\.json says where",)),
    "streamgauge ladder testsrc2 --rates 235k,560k --duration 6s --audio 64kbit/s --out card": HERE,
    "ffmpeg -loglevel error -i card/235k.mp4 -i card/560k.mp4 -i card/audio.mp4 -map 0 -map 1 -map 2 "
    "-c copy -f dash -seg_duration 2 card/manifest.mpd": HERE,
    "streamgauge ladder videos/235k.mp4 videos/1750k.mp4 --json": HERE,
    "streamgauge run examples/short-flows.yaml --mode sim": HERE,
    "streamgauge run examples/cache.yaml --mode sim": HERE,
    "streamgauge run playlist.yaml --mode sim --repeat 5": HERE,
    # dash-players
    "streamgauge run today/dash-gstreamer-medium --mode emu": How("long", A_MINUTE),
    "streamgauge run today/dash-dashjs-medium --mode emu": How("long", A_MINUTE),
    "streamgauge run today/dash-dashjs-medium --mode emu --set flows.video.parameters.rule=bola": How(
        "long", A_MINUTE
    ),
    "streamgauge run today/dash-dashjs-medium --mode emu --set flows.video.parameters.http=3": How(
        "long", A_MINUTE
    ),
    "make setup-browsers": How("never", "has been done where browsers' players are tested"),
    "python -m streamgauge.systems.javascript": How("never", "fetches; test_nginx_dash has what goes wrong"),
    "python -m pip install aioquic": How("never", "installs"),
    "streamgauge ladder testsrc2 --rates 100k,250k --duration 6s --audio 48kbit/s --out rungs": HERE,
    "streamgauge package rungs --out served": How(shows=(r"DASH: served/manifest\.mpd; HLS: served/master",)),
    "streamgauge run examples/dash.yaml": How("long", A_MINUTE),
    # virtual
    "streamgauge machine build": VIRTUAL,
    "streamgauge machine list": HERE,
    "streamgauge machine remove": How("never", "would remove what tests use"),
    # extending
    "cargo test -p streamgauge-systems push && make setup": How("never", "test_walks does it"),
    "streamgauge systems push": How("never", "test_walks does it"),
    "streamgauge run push.yaml --mode sim": How("never", READERS),
    # fidelity, performance
    "streamgauge crosscheck tcp --machine virtual --trials 2 --docs docs/fidelity.md": How(
        "never", "takes hours"
    ),
    "streamgauge crosscheck abr --quick --case 'hlsjs/*'": How("never", "real browsers for some minutes"),
    "streamgauge crosscheck abr --jobs 4 --docs docs/fidelity-abr.md": How("never", "takes an hour"),
    "streamgauge crosscheck abr --real tests/crosscheck/fidelity-abr.json --case 'shaka/*'": How(
        "never", "encodes ladders for minutes"
    ),
    "streamgauge crosscheck tcp --case 'reno*/480k-tbf' --case 'reno*/480k-0ms' --jobs 4 "
    "--docs docs/fidelity-papers.md": How("never", "real trials for some minutes"),
    "streamgauge crosscheck systems --quick --systems rtp --conditions 3": How(
        "never", "real trials for some minutes"
    ),
    "streamgauge crosscheck systems --jobs 2 --docs docs/fidelity-systems.md": How(
        "never", "takes two hours"
    ),
    "streamgauge crosscheck systems --jobs 2 --conditions 4": How("never", "takes an hour"),
    "streamgauge crosscheck systems --machine virtual --also runs/crosscheck/crosscheck-systems.json "
    "--docs docs/fidelity-systems.md": How("never", "takes an hour"),
    "python benches/simulators.py": How("never", "a benchmark"),
    "cargo bench -p streamgauge-sim --bench sim": How("never", "a benchmark"),
    "cargo bench -p streamgauge-sim --bench floor": How("never", "a benchmark"),
    # figures
    "streamgauge run 'today/demo-rtsp-*-medium' --mode sim --out runs/demo": HERE,
    "streamgauge report runs/demo --figures svg,pdf,csv,py": HERE,
    "python runs/demo/figures/today-demo-rtsp-udp-medium-time.py": HERE,
    # http
    "streamgauge run today/http-medium --mode sim": HERE,
    "streamgauge reproduce today/http --mode sim --mutants": HERE,
    "streamgauge run today/http-nginx-medium --mode emu": How("long", A_MINUTE),
    "streamgauge run today/http-nginx-medium --mode emu --set flows.video.parameters.player=ffplay": How(
        "long", A_MINUTE
    ),
    "streamgauge run 'today/http-nginx-*' --mode emu --machine virtual --jobs 2": How("never", "15 minutes"),
    "streamgauge run 'today/http-nginx-*' --mode emu --machine virtual --jobs 2 "
    "--set flows.video.parameters.player=ffplay": How("never", "15 minutes"),
    # live
    "streamgauge run today/demo-rtsp-udp-medium --live": How("never", "tests/live runs it with a client"),
    "streamgauge link --down 'rate 2 Mbit/s, queue 30 kB, delay 20 ms' --up 'delay 20 ms' --live "
    "--server 'python3 -m http.server' -- bash": How("never", "tests/live runs it with a client"),
    # link-command
    "streamgauge link --down 'rate 1 Mbit/s, queue 10 kB, delay 20 ms' --up 'delay 20 ms' "
    "--server 'python3 -m http.server' "
    "-- sh -c 'curl -so /dev/null http://$STREAMGAUGE_SERVER:8000/docs/images/queues.png'": How(
        "in namespaces",
        shows=(
            r"streamgauge: down +\d+ kbit/s \([\d.]+ % of the link\) over [\d.]+ s",
            r"one-way delay p50/p95/p99 [\d.]+ / [\d.]+ / [\d.]+ ms",
            r"at most [\d.]+ kB waiting",
            r"packets delivered",
        ),
    ),
    "streamgauge link --preset dsl --server 'iperf3 -s -1' "
    "-- sh -c 'iperf3 -R -c $STREAMGAUGE_SERVER'": WORLD,
    "streamgauge link --down 'rate 2 Mbit/s' --server 'python3 -m http.server' "
    "-- streamgauge link --down 'delay 40 ms' --up 'delay 40 ms' "
    "-- sh -c 'curl http://$STREAMGAUGE_SERVER:8000/'": WORLD,
    "sudo streamgauge link --preset lte --internet -- curl -o /dev/null https://example.org/": How(
        "never", "leaves the machine"
    ),
    "streamgauge link --preset lte --server 'python3 -m http.server' "
    "-- sh -c 'chromium --headless --dump-dom http://$STREAMGAUGE_SERVER:8000/'": How(
        "never", "needs Chromium"
    ),
    "sudo streamgauge link --preset lte --server 'python3 -m http.server' "
    "-- sh -c 'chromium --headless --no-sandbox --dump-dom http://$STREAMGAUGE_SERVER:8000/'": How(
        "never", "needs Chromium"
    ),
    # papers
    "streamgauge reproduce darwin --mode emu": How("long", "takes hours", status=1),
    "streamgauge reproduce darwin --mode both --machine virtual": How("long", "takes an hour", status=1),
    "streamgauge reproduce darwin --mutants --robust": How("long", A_MINUTE, status=1),
    "streamgauge reproduce darwin --reading paper --json": How("long", A_MINUTE, status=1),
    "streamgauge reproduce 'today/l4s-*' --mode sim --mutants": How("long", A_MINUTE),
    "python benches/captures_judge.py --docs": How("never", "a benchmark"),
    "python benches/captures_judge.py ccn/tcp-narrow-reno --mutant 'gap test'": How("never", "a benchmark"),
    "python benches/history.py": How("never", "a benchmark"),
    "benches/profiles.sh": How("never", "a benchmark"),
    "python scripts/messages.py crates": How("never", "test_messages does it"),
    "streamgauge run today/tcp-cubic --mode emu --seed 1 "
    "--set 'flows.tcp.congestion_control={bpf: mine.bpf.o}'": How("never", READERS),
    # quality, queues
    "streamgauge run my-scenario.yaml --out runs": HERE,
    "streamgauge quality runs": How(shows=("PSNR",)),
    "streamgauge quality runs --json": HERE,
    "streamgauge reproduce 'today/queue-*' --mode sim --mutants": HERE,
    "streamgauge run 'today/queue-*' --mode emu": How("long", "takes ten minutes"),
    # reliable-udp, reliable-udp-today
    "streamgauge reproduce 'today/reliable-udp-*' --mode sim --mutants": How(
        "long", "20 s of two processors"
    ),
    "streamgauge reproduce 'today/reliable-udp-*' --mode sim --set 'flows.*.parameters.preset=paper'": How(
        "long", "as long", status=1
    ),
    "streamgauge run darwin/vlc-vs-qtp-qtp-0.50 --mode sim --repeat 10 --set 'path.down.rate=144 kbit/s' "
    "--set path.down.shaper=serial --set path.down.layer=ethernet --set 'path.down.delay=0 ms' "
    "--set 'until.time=35 s' --set flows.video.clip=carphone-288k --set flows.video.parameters.preset=source "
    "--set flows.video.parameters.media_rate_known=off": How(status=1, shows=(r"45\.[67]\d? ± [01]\.\d+ %",)),
    "streamgauge run darwin/1qt1tcp-const --mode sim": How(status=1, why="the page says so"),
    "streamgauge clip carphone-242k movies/clip.mp4": HERE,
    "streamgauge serve --system darwin movies/": How("serving"),
    # scenarios, tcp
    "streamgauge run my.yaml": HERE,
    "streamgauge run my.yaml --set path.down.rate=1Mbit/s --repeat 5": HERE,
    "streamgauge run today/tcp-cubic --mode sim --set 'flows.tcp.parameters.without=[prr]'": HERE,
    # own-congestion-control
    "streamgauge run today/tcp-cubic --mode sim --seed 1 "
    '--set "flows.tcp.congestion_control=$PWD/gentle.py:Gentle"': How("never", READERS),
    "cargo run --manifest-path examples/controller-crate/Cargo.toml": How(
        "never", "crates/sim/tests/controller_crate.rs runs it"
    ),
    "streamgauge evaluate cc aimd.py --quick --report aimd.html": How(
        "never", "tests/evaluate/test_evaluate_walk.py does it"
    ),
    "streamgauge evaluate cc examples/controller-crate:aimd --quick --reference reno "
    "--report rust-aimd.html": How("never", "tests/evaluate/test_evaluate_walk.py does it"),
    # evaluate, evaluated
    "streamgauge evaluate cc vegas --quick --seeds 3 --out runs/vegas": How("long", A_MINUTE, status=1),
    "streamgauge evaluate cc nada --suite rfc8867 --seeds 2 --out runs/nada": How("long", A_MINUTE, status=1),
    "streamgauge reproduce 'bbr/probe-*' --mode sim --mutants": HERE,
    "streamgauge evaluate cc reno cubic bic vegas bbr bbr3 tfrc dctcp prague --suite bcp133 --quick "
    "--docs docs/evaluated.md": How("never", "takes ten minutes"),
    # serve
    "streamgauge serve --system darwin --listen 127.0.0.1:8554 videos": How("serving"),
    "ffplay rtsp://127.0.0.1:8554/clip.mp4": How("never", PUBLIC),
    "streamgauge serve --system http --listen 127.0.0.1:8080 videos": How("serving"),
    "streamgauge play http://127.0.0.1:8080/clip.mp4": How(shows=("played to the end",)),
    "mpv --rtsp-transport=udp rtsp://127.0.0.1:8554/clip.mp4": How("never", PUBLIC),
    "gst-launch-1.0 playbin uri=rtsp://127.0.0.1:8554/clip.mp4": How("never", PUBLIC),
    "streamgauge play rtsp://127.0.0.1:8554/clip.mp4 --player quicktime": How(shows=("played to the end",)),
    "streamgauge ladder carphone --rates 235k,560k,1050k,1750k --duration 6s --audio 64kbit/s "
    "--out videos/ladder": HERE,
    "streamgauge serve --system dash --listen 127.0.0.1:8090 videos": How("serving"),
    "streamgauge run 'ccn/narrow-*' --mode emu --repeat 3 --jobs 2": How("long", "25 minutes", status=1),
    "streamgauge run 'ccn/*loss-*' --mode emu --machine virtual --repeat 1 --jobs 2": How(
        "never", "takes an hour"
    ),
    "streamgauge reproduce ccn --mode sim": How("long", A_MINUTE, status=1),
    "streamgauge reproduce ccn --mode sim --mutants": How("long", A_MINUTE, status=1),
    "streamgauge reproduce 'ccn/narrow-*' --mode sim --robust": How("long", A_MINUTE, status=1),
    "streamgauge reproduce 'ccn/viewers-*' --mode sim": How("long", A_MINUTE),
    "streamgauge compare ccn/narrow-udp --over "
    "'flows.video.parameters.window_control=in-order,aimd,cubic,vegas,bbr' "
    "--set flows.video.parameters.retransmission=rto --set flows.video.parameters.interest_window=64 "
    "--mode sim": How("long", A_MINUTE),
    "streamgauge compare ccn/loss-3-udp --over 'flows.video.parameters.retransmission=lifetime,rto' "
    "--mode sim --metric frozen_share --metric level": HERE,
    "streamgauge serve --system ccn --listen 127.0.0.1:6363 videos": How("serving"),
    "streamgauge play ndn://127.0.0.1:6363/clip/ladder/manifest.mpd": How(
        shows=("played to the end", r"over NDN \(TCP face\)", "0 expired")
    ),
    "streamgauge play --transport udp ndn://127.0.0.1:6363/clip/ladder/manifest.mpd": How(
        shows=("played to the end",)
    ),
    "streamgauge proxy ndn://127.0.0.1:6363/clip --listen 127.0.0.1:8070": How("serving"),
    "mpv http://127.0.0.1:8070/ladder/manifest.mpd": How("never", PUBLIC),
    "cvlc http://127.0.0.1:8070/ladder/manifest.mpd": How("never", PUBLIC),
    "make setup-ndnd": How(
        "never", "builds for two minutes; test_serve_ccn plays through it where that was done"
    ),
    "mpv http://127.0.0.1:8090/ladder/manifest.mpd": How("never", PUBLIC),
    "ffplay http://127.0.0.1:8090/ladder/master.m3u8": How("never", PUBLIC),
    "streamgauge play http://127.0.0.1:8090/ladder/manifest.mpd": How(
        shows=("played to the end", "adaptive: ")
    ),
    # inferred
    "streamgauge infer hessler": How("never", "takes the better part of an hour"),
    "streamgauge infer darwin --quick --report darwin.html": How("long", A_MINUTE, status=0),
    "streamgauge infer ccn --points 200 --seeds 2 --out runs/ccn": How("never", "takes hours"),
    "streamgauge infer hessler --write-reading": How("never", "changes the catalogue"),
    # two-phases, filling
    (
        "streamgauge run 'windows-media/sbr-sweep-*' 'windows-media/loss-sbr-*' 'windows-media/mbr-*' "
        "--mode sim"
    ): How("long", A_MINUTE, status=1),
    (
        "streamgauge two-phases runs --fit 'windows-media/sbr-sweep-725-*' --fit "
        "'windows-media/loss-sbr-*' --judge 'windows-media/sbr-sweep-*' --judge 'windows-media/mbr-*' "
        "--out model.csv --out model.json --out model.png"
    ): How("long", A_MINUTE, status=0),
    "streamgauge run 'today/filling-*' --mode sim": How("long", A_MINUTE, status=0),
    (
        "streamgauge compare 'today/filling-*-340' --mode sim --metric harm --metric neighbour_share "
        "--metric loss"
    ): How("long", A_MINUTE, status=1),
    (
        "streamgauge compare 'today/filling-*-340' --mode sim --metric harm --set measure.window='[44 "
        "s, 56 s]'"
    ): How("long", A_MINUTE, status=0),
    (
        "streamgauge sweep 'today/filling-*-340' --over flows.video.clip.rate='[304 kbit/s]' --mode sim "
        "--metric filling_time"
    ): How("long", A_MINUTE, status=0),
    (
        "streamgauge compare 'today/filling-rivals-cubic-*' --mode sim --metric harm --metric goodput "
        "--metric loss"
    ): How("long", A_MINUTE, status=1),
    (
        "streamgauge compare 'today/filling-rivals-bbr-*' --mode sim --metric harm --metric goodput "
        "--metric loss"
    ): How("long", A_MINUTE, status=1),
    (
        "streamgauge compare today/filling-windows-media-340 --mode sim --over "
        "flows.video.clip.source=carphone,bikes,bigbuckbunny --metric harm --metric goodput --metric "
        "loss"
    ): How("long", A_MINUTE, status=0),
}
