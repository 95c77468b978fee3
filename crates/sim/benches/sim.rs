//! The cost of a packet: user + system CPU time until all files are closed, per data packet that leaves the down
//! bottleneck, with the record as shipped and with it off.
//!
//! N NewReno flows over 10 Mbit/s (N x 0.5 Mbit/s above 20 flows), a queue of 1 BDP, 20 ms round trip, host
//! jitter on, starts spread over the first second. Then how many trials a second one thread does and all cores do,
//! side by side in this run.
//!
//! Run it by `cargo bench -p streamgauge-sim --bench sim`. Options: `--json`; numbers of flows instead of 2, 20, 200
//! and 2,000; `--off` or `--on` for one half alone, which leaves the threads out; `--rounds=R` (the least counts), 3 by
//! default. `benches/simulators.py` runs it beside ns-3.

mod dumbbell;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use dumbbell::{MOST_FLOWS, cpu_us, plan, rate_bps};
use streamgauge_base::Duration;
use streamgauge_plan::{Keep, TrialPlan};

/// The least of this many measurements is reported, unless asked otherwise.
const ROUNDS: usize = 3;

/// The command line's options.
struct Options {
    flows: Vec<u64>,
    json: bool,
    off: bool,
    on: bool,
    rounds: usize,
}

impl Options {
    fn parse(args: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options { flows: Vec::new(), json: false, off: true, on: true, rounds: ROUNDS };
        for arg in args {
            match arg.as_str() {
                // An argument that cargo adds.
                "--bench" => {}
                "--json" => options.json = true,
                "--off" => options.on = false,
                "--on" => options.off = false,
                text => match (text.strip_prefix("--rounds=").map(str::parse), text.parse()) {
                    (Some(Ok(rounds)), _) if rounds > 0 => options.rounds = rounds,
                    (None, Ok(flows)) if (1..=MOST_FLOWS).contains(&flows) => options.flows.push(flows),
                    _ => {
                        let known = "--json, --off, --on, --rounds=R or numbers of flows";
                        return Err(format!("{text}: give {known}, 1 to {MOST_FLOWS}"));
                    }
                },
            }
        }
        if !options.on && !options.off {
            return Err("--off and --on: give one of them, or neither for both".into());
        }
        if options.flows.is_empty() {
            options.flows = vec![2, 20, 200, 2000];
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("sim bench: {error}");
            return ExitCode::from(2);
        }
    };
    let directory = std::env::temp_dir().join(format!("streamgauge-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("the temporary folder takes a folder");
    let mut lines = Vec::new();
    for &flows in &options.flows {
        let off = options.off.then(|| measure(flows, Keep::Metrics, options.rounds, &directory));
        let on = options.on.then(|| measure(flows, Keep::Packets, options.rounds, &directory));
        lines.push((flows, off, on));
        if !options.json {
            print_line(&lines[lines.len() - 1]);
        }
    }
    let parallel = (options.on && options.off).then(|| parallel(&directory));
    std::fs::remove_dir_all(&directory).expect("it was made above");
    if options.json {
        print_json(&lines, parallel.as_ref());
    } else if let Some(p) = parallel {
        let (speed_up, memory) = (p.all_cores / p.one_thread, peak_memory_mb());
        println!(
            "trials of 10,000 packets, recorded: {:.1}/s on one thread, {:.1}/s on {} ({speed_up:.2} x)",
            p.one_thread, p.all_cores, p.threads
        );
        println!("peak memory {memory:.0} MB");
    }
    ExitCode::SUCCESS
}

/// One measurement.
#[derive(Clone, Copy)]
struct Cost {
    /// User + system CPU microseconds per data packet.
    us: f64,
    packets: u64,
    /// Rows per data packet; 0 with the record off.
    rows: f64,
    /// Bytes that arrived, as a share of the full segments that the bottleneck could carry.
    goodput: f64,
    /// Segments sent again, per data packet.
    again: f64,
}

type Line = (u64, Option<Cost>, Option<Cost>);

fn measure(flows: u64, keep: Keep, rounds: usize, directory: &Path) -> Cost {
    let plan = plan(flows, keep);
    let full = rate_bps(flows) as f64 / 8.0 * plan.duration.as_secs_f64() * 1448.0 / 1514.0;
    let mut best: Option<Cost> = None;
    for _ in 0..rounds {
        let before = cpu_us();
        let summary = streamgauge_sim::simulate(&plan, directory).expect("the plan is sound");
        let us = cpu_us() - before;
        let packets = summary.bottleneck_packets;
        let rows = summary.rows.unwrap_or(0) as f64 / packets as f64;
        let received: u64 = summary.flows.iter().map(|flow| flow.player_received_bytes).sum();
        let again: u64 =
            summary.flows.iter().filter_map(|flow| flow.tcp.as_ref()).map(|t| t.retransmits).sum();
        let (goodput, again) = (received as f64 / full, again as f64 / packets as f64);
        let cost = Cost { us: us / packets as f64, packets, rows, goodput, again };
        best = Some(best.filter(|b| b.us <= cost.us).unwrap_or(cost));
    }
    best.expect("there is at least one round")
}

/// Trials a second by the wall clock, which other work on the machine disturbs.
struct Parallel {
    threads: usize,
    one_thread: f64,
    all_cores: f64,
}

fn parallel(directory: &Path) -> Parallel {
    const TRIALS: u64 = 64;
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let trial = |seed: u64| {
        let duration = Duration::from_nanos(10_000 * 1514 * 8 * 100);
        (TrialPlan { seed, duration, ..plan(2, Keep::Packets) }, directory.join(seed.to_string()))
    };
    let trials: Vec<(TrialPlan, PathBuf)> = (0..TRIALS).map(trial).collect();
    for (_, directory) in &trials {
        std::fs::create_dir_all(directory).expect("the temporary folder takes a folder");
    }
    let rate = |threads: usize| {
        let begun = Instant::now();
        let done = streamgauge_sim::simulate_many(&trials, NonZeroUsize::new(threads));
        assert!(done.iter().all(Result::is_ok));
        TRIALS as f64 / begun.elapsed().as_secs_f64()
    };
    Parallel { threads, one_thread: rate(1), all_cores: rate(threads) }
}

fn print_line((flows, off, on): &Line) {
    let text = |cost: &Option<Cost>| cost.map_or("      -".into(), |c| format!("{:7.3}", c.us));
    let rows = on.map_or(String::new(), |c| format!(", {:.2} rows a packet", c.rows));
    let Some(any) = off.or(*on) else { return };
    println!(
        "N = {flows:4}: record off {} us, on {} us a packet ({} packets{rows}, goodput {:.1} %, {:.1} % sent again)",
        text(off),
        text(on),
        any.packets,
        100.0 * any.goodput,
        100.0 * any.again
    );
}

fn print_json(lines: &[Line], parallel: Option<&Parallel>) {
    let value = |cost: &Option<Cost>| cost.map(|c| c.us);
    let lines: Vec<_> = lines
        .iter()
        .map(|(flows, off, on)| {
            let any = off.or(*on).expect("one half at least was measured");
            serde_json::json!({
                "flows": flows, "record_off_us": value(off), "record_on_us": value(on), "packets": any.packets,
                "goodput": any.goodput, "retransmitted": any.again, "rows_per_packet": on.map(|c| c.rows),
            })
        })
        .collect();
    let parallel = parallel.map(|p| {
        let (one, all) = (p.one_thread, p.all_cores);
        serde_json::json!({"threads": p.threads, "one_thread_per_s": one, "all_cores_per_s": all})
    });
    let report = serde_json::json!({
        "schema": "streamgauge.bench.sim/2", "per_packet": lines, "trials": parallel, "peak_memory_mb": peak_memory_mb(),
    });
    println!("{report}");
}

/// Returns the most memory that this process has had, in MB.
fn peak_memory_mb() -> f64 {
    let usage =
        nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).expect("it always works");
    // macOS counts bytes where Linux counts units of 1,024.
    let unit = if cfg!(target_os = "macos") { 1.0 } else { 1024.0 };
    usage.max_rss() as f64 * unit / 1e6
}
