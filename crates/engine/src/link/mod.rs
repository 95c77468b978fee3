//! The link emulator: real frames through `streamgauge-path` on the real clock.
//!
//! A packet is scheduled from the kernel's stamp of its arrival and leaves at its logical time, so that a late
//! wake-up delays one packet and never adds up. How late is measured, packet by packet.

mod capture;
mod clock;
mod clocked_path;
mod config;
mod egress;
mod emulator;
mod files;
mod fragments;
mod live;
mod port;
mod sabotage;
mod slab;
mod stats;
mod wait;

use std::os::fd::AsRawFd;

use serde_json::{Value, json};
use streamgauge_live::Watched;
use streamgauge_path::spec::PathSpec;
use streamgauge_path::{at_rest, most_packets};
use streamgauge_plan::Legend;
use streamgauge_record::PacketSender;

pub use clock::Clock;
pub use config::Config;

use crate::error::{EngineError, Result};
use crate::lines::{Command, Commands, bad_field, say};
use crate::sys::{
    Cpu, RealTime, available_memory_bytes, clock_ns, cpu_seconds, monotonic_ns, stolen_seconds, thread_cpu,
};
use capture::{CAPTURE_FILE, Capture, PortSummary};
use clocked_path::{ClockedPaths, REHEARSAL_IDS, Trial};
use emulator::Emulator;
use sabotage::Sabotage;
use slab::Slab;
use wait::{Stalls, Waiter};

/// Runs until it is stopped; see PROTOCOL.md.
pub fn run(config: Config) -> Result<()> {
    let mut link = Link::open(config)?;
    say(&json!({"event": "ready", "class": link.class.name(), "mlock": link.class.mlock}));
    let mut commanded = true;
    loop {
        while commanded && let Some(command) = link.commands.next()? {
            if link.obey(command)? {
                return link.stop();
            }
        }
        commanded = link.emulate();
        if link.is_live && link.emulator.show(commanded) {
            return link.stop();
        }
        if link.emulator.is_over(link.idle_ns()) {
            return link.stop();
        }
    }
}

struct Link {
    config: Config,
    commands: Commands,
    class: RealTime,
    waiter: Waiter,
    emulator: Emulator,
    sabotage: Sabotage,
    spent_at_reset: Spent,
    /// The live view of the trial while it runs, until it starts.
    live: Option<Watched>,
    is_live: bool,
}

/// Resources spent so far.
#[derive(Clone, Copy)]
struct Spent {
    /// By this thread, which forwards.
    own: Cpu,
    /// By all of this process, s.
    process_s: f64,
    /// Kept from this machine by its hypervisor, s.
    stolen_s: f64,
    /// How often this thread had to make room for another.
    preemptions: i64,
}

impl Spent {
    fn so_far() -> Self {
        let (own, preemptions) = thread_cpu();
        Spent { own, process_s: cpu_seconds(), stolen_s: stolen_seconds(), preemptions }
    }

    /// Returns the resources spent since `before`, during which `packets` were sent, in the protocol's words.
    fn since(self, before: Spent, packets: u64) -> Value {
        let own = self.own.since(before.own);
        let cpu_s = self.process_s - before.process_s;
        // Two clocks: they may disagree by a microsecond.
        let others_s = (cpu_s - own.total_s()).max(0.0);
        let per_packet = (packets > 0).then(|| cpu_s * 1e6 / packets as f64);
        json!({
            "cpu_s": cpu_s, "cpu": {"loop": own, "others_s": others_s, "us_per_packet": per_packet},
            "stolen_s": self.stolen_s - before.stolen_s,
            "preemptions": self.preemptions - before.preemptions,
        })
    }
}

impl Link {
    fn open(config: Config) -> Result<Self> {
        if !config.out.is_dir() {
            return Err(EngineError::config(&config.out, "not a directory")
                .remedy("make the directory that `out` names before the link starts"));
        }
        let sabotage = Sabotage::new(&config.sabotage);
        let rehearsal = rehearsal(&config, &sabotage)?;
        // The trial's path is built here too, so that a mistake in the plan shows before anything runs.
        ClockedPaths::new(&config.plan.path, config.plan.seed, 0, 0, &sabotage)?;
        let commands = Commands::from_stdin()?;
        let slab = slab(&config, &sabotage)?;
        // Before the real-time class, which threads inherit.
        let live = live::open(&config, &commands)?;
        let emulator = Emulator::open(&config, rehearsal, sabotage.clone(), slab)?;
        let class = RealTime::enter(config.fifo_priority);
        let rings = emulator.ports.iter().map(|port| port.ring.fd().as_raw_fd());
        let waiter = Waiter::new(rings, commands.fd(), class.fifo.is_some() && config.spin)?;
        let spent_at_reset = Spent::so_far();
        let is_live = live.is_some();
        Ok(Link { config, commands, class, waiter, emulator, sabotage, spent_at_reset, live, is_live })
    }

    fn idle_ns(&self) -> Option<i64> {
        self.config.plan.until_idle.map(|idle| idle.as_nanos().min(i64::MAX as u64) as i64)
    }

    /// Waits for the next event, reads arrivals and sends packets that are due; returns true if commands
    /// should be read.
    fn emulate(&mut self) -> bool {
        let until = self.emulator.next_event(self.idle_ns());
        let emulator = &self.emulator;
        let commanded = self.waiter.wait(until, || emulator.patience(), || emulator.has_arrival());
        let packets = self.emulator.step();
        self.waiter.passed(packets, monotonic_ns());
        commanded
    }

    /// Executes a command; returns true if that is to end.
    fn obey(&mut self, command: Command) -> Result<bool> {
        if self.emulator.is_running() && !matches!(command, Command::Stop | Command::Status) {
            let why = "the trial has started; only stop and status are left";
            return Err(EngineError::new("read a command", why).remedy("see PROTOCOL.md").code(2));
        }
        match command {
            Command::Preflight => {
                self.emulator.rehearse(rehearsal(&self.config, &self.sabotage)?);
                say(&json!({"event": "preflight"}));
            }
            Command::Reset => {
                self.emulator.rehearse(rehearsal(&self.config, &self.sabotage)?);
                self.spent_at_reset = Spent::so_far();
                self.waiter.stalls = Stalls::default();
                say(&json!({"event": "reset"}));
            }
            Command::Start { t0_monotonic_ns } => {
                self.start(t0_monotonic_ns)?;
                say(&json!({"event": "started", "t0_monotonic_ns": t0_monotonic_ns}));
            }
            Command::Status => {
                let (packets, inside, ns) = self.emulator.progress();
                say(
                    &json!({"event": "status", "t_s": ns as f64 / 1e9, "packets": packets, "inside": inside}),
                );
            }
            Command::Stop => return Ok(true),
        }
        Ok(false)
    }

    fn start(&mut self, t0: u64) -> Result<()> {
        let Config { plan, out, .. } = &self.config;
        let t0 = i64::try_from(t0).map_err(|_| {
            EngineError::new("start", "t0_monotonic_ns is no time of CLOCK_MONOTONIC").code(2)
        })?;
        let end = t0.saturating_add_unsigned(plan.duration.as_nanos());
        let clocked_paths = ClockedPaths::new(&plan.path, plan.seed, t0, 0, &self.sabotage)?;
        let legend = Legend::of(plan);
        // Its thread is of the normal class: SCHED_RESET_ON_FORK sees to that.
        let rows = PacketSender::create(&out.join(streamgauge_record::PACKETS_FILE), &legend)
            .map_err(|e| EngineError::record(&e))?;
        let trial = Trial::new(rows, &legend, &plan.path, self.live.take());
        let interfaces = &self.config.interfaces;
        let names = [Some(&interfaces.server), Some(&interfaces.client), interfaces.cross.as_ref()];
        let names: Vec<&str> = names.into_iter().flatten().map(String::as_str).collect();
        let file = out.join(CAPTURE_FILE);
        let capture =
            self.config.capture.then(|| Capture::create(&file, &names, realtime_ns())).transpose()?;
        let begun = self.config.plan.last_scheduled().as_nanos().min(i64::MAX as u64) as i64;
        self.emulator.start(clocked_paths, trial, capture, t0, begun, end);
        Ok(())
    }

    /// Ends the trial, writes its files and reports it.
    fn stop(mut self) -> Result<()> {
        let Some(mut finished) = self.emulator.finish() else {
            say(&json!({"event": "stopped", "stats": Value::Null}));
            return Ok(());
        };
        let spent = Spent::so_far();
        // The next steps are slow and not urgent.
        self.class.leave();
        let mut stats = self.emulator.stats();
        let ports = self.emulator.ports.iter().map(|port| PortSummary { dropped: port.stats.ring_drops });
        if let Some(capture) = finished.capture.take() {
            capture.finish(realtime_ns(), ports.collect())?;
        }
        let written = files::write(&self.config, finished, self.emulator.health())?;
        let more =
            json!({"class": self.class.name(), "mlock": self.class.mlock, "stalls": self.waiter.stalls});
        let sent = self.emulator.ports.iter().map(|port| port.stats.tx_packets).sum();
        for part in [written, more, spent.since(self.spent_at_reset, sent)] {
            if let (Value::Object(stats), Value::Object(part)) = (&mut stats, part) {
                stats.extend(part);
            }
        }
        say(&json!({"event": "stopped", "stats": stats}));
        Ok(())
    }
}

/// Returns the path before the trial: without random loss, frozen at its settings for time zero.
fn rehearsal(config: &Config, sabotage: &Sabotage) -> Result<ClockedPaths> {
    let path = &config.plan.path;
    let frozen = PathSpec { down: at_rest(&path.down), up: at_rest(&path.up) };
    ClockedPaths::new(&frozen, config.plan.seed, monotonic_ns(), REHEARSAL_IDS, sabotage)
}

/// More packets in a second than the emulator can handle: it bounds the packets in transit before a
/// bottleneck.
const MOST_ARRIVALS_PER_S: u64 = 250_000;

/// Returns room for all packets that the path of the plan can have inside. Memory is allocated as they
/// arrive: a deep queue costs its content; a plan that could need more than the machine has is refused.
fn slab(config: &Config, sabotage: &Sabotage) -> Result<Slab> {
    let path = &config.plan.path;
    let most = [("down", &path.down), ("up", &path.up)].map(|(direction, stages)| {
        let stages = sabotage.stages(stages.clone(), false);
        (most_packets(&stages, MOST_ARRIVALS_PER_S), direction)
    });
    let (_, deepest) = most.into_iter().max().expect("two directions");
    let most = most[0].0.saturating_add(most[1].0);
    let needed = most.saturating_mul(Slab::bytes_a_packet() as u64);
    let available = available_memory_bytes();
    if available.is_some_and(|available| needed > available) {
        let key = format!("plan.path.{deepest}");
        let what = format!(
            "its queues and delays can hold {most} small packets, which take {} MB; {} MB are available",
            needed / 1_000_000,
            available.unwrap_or(0) / 1_000_000
        );
        return Err(bad_field(&key, &what)
            .remedy("shorten the delay, give its queue a lower limit, or free some memory"));
    }
    Ok(Slab::new(config.slab_packets, most as usize))
}

/// Returns CLOCK_REALTIME, ns since 1970 UTC.
fn realtime_ns() -> u64 {
    clock_ns(nix::libc::CLOCK_REALTIME).max(0) as u64
}
