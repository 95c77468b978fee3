//! Measures the emulated path from its two ends, before a trial: rate, base delay and queue limit.
//!
//! Nothing here asks the emulator. A train overfills the queue, probes cross it while it is empty, and the kernel
//! stamps every packet where it leaves one end's interface and where it reaches the other's.

mod analyse;
mod expect;
mod probe;

use serde::{Deserialize, Serialize};
use serde_json::json;
use std::net::Ipv4Addr;
use std::time::Duration;

use streamgauge_path::spec::PathSpec;

use crate::error::Result;
use crate::lines::say;
use analyse::{Filling, base_delay, filling};
use expect::Expected;
use probe::{End, Flight, Pair};

/// The configuration file; see PROTOCOL.md.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    server_netns: String,
    client_netns: String,
    server_ip: Ipv4Addr,
    player_ip: Ipv4Addr,
    server_if: String,
    client_if: String,
    /// The plan's path.
    expect: PathSpec,
}

/// Probes each way.
const PROBES: u32 = 8;

/// Largest relative error of a rate.
const RATE_BOUND: f64 = 0.01;

/// Largest error of a one-way base delay, s.
const DELAY_BOUND: f64 = 0.5e-3;

/// Measures and prints one JSON object.
pub fn run(config: Config) -> Result<()> {
    let Config { server_netns, client_netns, server_ip, player_ip, server_if, client_if, expect } = config;
    let mut pair = Pair {
        server: End::open(&server_netns, &server_if, server_ip, player_ip)?,
        client: End::open(&client_netns, &client_if, player_ip, server_ip)?,
    };
    let (down, up) = (Expected::of(&expect.down), Expected::of(&expect.up));

    let probes = probe_both(&mut pair, &down, &up)?;
    let down = Way::measure("down", &mut pair, true, down, &probes[0])?;
    let up = Way::measure("up", &mut pair, false, up, &probes[1])?;

    let train = |way: &Way| {
        way.filling.as_ref().map(|f| json!({"sent": f.sent, "received": f.received, "seconds": f.seconds}))
    };
    let errors: Vec<&String> = down.errors.iter().chain(&up.errors).collect();
    say(&json!({
        "rate_bps": down.filling.as_ref().map(|f| f.rate_bps),
        "down_delay_s": down.delay_s,
        "up_delay_s": up.delay_s,
        "rtt_s": down.delay_s.zip(up.delay_s).map(|(down, up)| down + up),
        "limit_bytes": down.filling.as_ref().map(|f| f.held_bytes),
        "limit_packets": down.filling.as_ref().map(|f| f.held_packets),
        "up_rate_bps": up.filling.as_ref().map(|f| f.rate_bps),
        "up_limit_bytes": up.filling.as_ref().map(|f| f.held_bytes),
        "up_limit_packets": up.filling.as_ref().map(|f| f.held_packets),
        "expected": ExpectedReport::new(&down.expected, &up.expected),
        "train": train(&down),
        "up_train": train(&up),
        "probes": {"down": probes[0].received(), "up": probes[1].received()},
        "errors": errors,
    }));
    Ok(())
}

/// The plan's values, under the same keys.
#[derive(Serialize)]
struct ExpectedReport {
    rate_bps: Option<u64>,
    down_delay_s: f64,
    up_delay_s: f64,
    rtt_s: f64,
    limit_bytes: Option<u64>,
    limit_packets: Option<u64>,
    up_rate_bps: Option<u64>,
    up_limit_bytes: Option<u64>,
    up_limit_packets: Option<u64>,
}

impl ExpectedReport {
    fn new(down: &Expected, up: &Expected) -> Self {
        ExpectedReport {
            rate_bps: down.rate_bps(),
            down_delay_s: down.delay_s,
            up_delay_s: up.delay_s,
            rtt_s: down.delay_s + up.delay_s,
            limit_bytes: down.limit_bytes(),
            limit_packets: down.limit_packets(),
            up_rate_bps: up.rate_bps(),
            up_limit_bytes: up.limit_bytes(),
            up_limit_packets: up.limit_packets(),
        }
    }
}

/// Sends small packets both ways, far enough apart that each finds the path empty.
fn probe_both(pair: &mut Pair, down: &Expected, up: &Expected) -> Result<[Flight; 2]> {
    let frame = 100.min(down.frame.min(up.frame) as usize);
    let serial = down.transmission(frame).max(up.transmission(frame));
    let gap = Duration::from_millis(10).max(Duration::from_secs_f64(2.0 * serial));
    let mut flights = [Flight::default(), Flight::default()];
    for seq in 0..PROBES {
        pair.server.send(seq, frame)?;
        // Half a gap apart, so that the two ends do not compete for the CPU.
        pair.collect(gap / 2, &mut flights);
        pair.client.send(seq, frame)?;
        pair.collect(gap / 2, &mut flights);
    }
    let longest = (down.delay_s + serial).max(up.delay_s + serial);
    pair.collect(Duration::from_secs_f64(longest + 0.1), &mut flights);
    pair.next_run();
    Ok(flights)
}

/// One direction's findings.
struct Way {
    expected: Expected,
    delay_s: Option<f64>,
    filling: Option<Filling>,
    errors: Vec<String>,
}

impl Way {
    fn measure(
        name: &str,
        pair: &mut Pair,
        is_down: bool,
        expected: Expected,
        probes: &Flight,
    ) -> Result<Way> {
        let mut errors = Vec::new();
        if probes.received() < PROBES as usize {
            errors
                .push(format!("{name}: {} of {PROBES} probes came through an empty path", probes.received()));
        }
        let mut delay_s = base_delay(probes, |frame| expected.transmission(frame));
        let mut measured = None;
        if let (Some(bottleneck), Some(first_delay)) = (expected.bottleneck.as_ref(), delay_s) {
            let flight = run_train(pair, is_down, &expected)?;
            match filling(&flight, first_delay, bottleneck) {
                Some(found) => {
                    // Now that the rate is known, take the probes' own transmission time out with it.
                    delay_s =
                        base_delay(probes, |frame| bottleneck.counted(frame) as f64 * 8.0 / found.rate_bps);
                    errors.extend(found.judge(name, bottleneck));
                    measured = Some(found);
                }
                // A machine that is starved can hold all of it back: the trial is invalid then, and not broken.
                None => errors.push(format!("{name}: too little of the train arrived for a rate")),
            }
        }
        match delay_s {
            Some(delay) if (delay - expected.delay_s).abs() > DELAY_BOUND => errors.push(format!(
                "{name} delay is {:.3} ms, not {:.3} ms (bound {} ms)",
                delay * 1e3,
                expected.delay_s * 1e3,
                DELAY_BOUND * 1e3
            )),
            Some(_) => {}
            None => errors.push(format!("{name}: the delay could not be measured")),
        }
        Ok(Way { expected, delay_s, filling: measured, errors })
    }
}

/// Overfills the queue in one burst, then keeps it full until the stamps reveal the rate.
fn run_train(pair: &mut Pair, is_down: bool, expected: &Expected) -> Result<Flight> {
    let plan = expected.train();
    let mut flights = [Flight::default(), Flight::default()];
    let mut seq = 0;
    let start = std::time::Instant::now();
    fn sender(pair: &mut Pair, is_down: bool) -> &mut End {
        if is_down { &mut pair.server } else { &mut pair.client }
    }
    while seq < plan.burst {
        sender(pair, is_down).send(seq, plan.frame)?;
        seq += 1;
        if seq % 64 == 0 {
            pair.collect(Duration::ZERO, &mut flights);
        }
    }
    let burst_took = start.elapsed();
    while start.elapsed() < plan.lasts {
        let due = plan.burst + (plan.pace * (start.elapsed() - burst_took).as_secs_f64()) as u32;
        while seq < due {
            sender(pair, is_down).send(seq, plan.frame)?;
            seq += 1;
        }
        pair.collect(Duration::from_micros(500), &mut flights);
    }
    // Queued packets leave one after the other; a gap of several of them is the end.
    let quiet = Duration::from_secs_f64(expected.delay_s + 4.0 * expected.transmission(plan.frame) + 0.1);
    pair.collect_until_quiet(quiet, &mut flights);
    pair.next_run();
    let [down, up] = flights;
    let mut flight = if is_down { down } else { up };
    flight.burst = plan.burst;
    Ok(flight)
}
