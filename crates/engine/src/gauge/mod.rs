//! Measures from outside: offers a load at one end and notes the kernel's stamp of every packet at the other.
//!
//! It shares no clock reading, no queue and no record with the link, and can therefore check the link's own
//! figures.

mod load;

use std::io::Write;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::error::{EngineError, Result};
use crate::lines::{bad_field, say};
use crate::link::Clock;
use crate::packet::{Outgoing, Ring, RingOptions};
use crate::sys::{self, monotonic_ns};
use load::{Load, Sent, Source, panicked, sequence};

/// Frames in the receiver's ring: more than a second at the highest rate of 1 Gbit/s.
const RING_FRAMES: usize = 131_072;

/// How often the receiver looks at its ring. It is never woken by a packet: that would disturb the measured
/// load.
const LOOK: Duration = Duration::from_millis(10);

/// The configuration file; see PROTOCOL.md.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    sender: EndConfig,
    receiver: EndConfig,
    load: Load,
    /// CLOCK_MONOTONIC, ns; `None` for soon.
    #[serde(default)]
    start_monotonic_ns: Option<i64>,
    /// How long to wait for packets after the last has been sent, s.
    #[serde(default = "half_a_second")]
    linger_s: f64,
    /// Stamp packets by the kernel at the sender's interface too, on their way out; otherwise `sent` is the clock read
    /// before the system call. It costs the sender CPU time.
    #[serde(default)]
    stamp_sent: bool,
    /// One line a packet.
    #[serde(default)]
    out: Option<PathBuf>,
}

fn half_a_second() -> f64 {
    0.5
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndConfig {
    netns: String,
    interface: String,
    ip: Ipv4Addr,
    #[serde(default)]
    cpu: Option<usize>,
    #[serde(default)]
    fifo_priority: Option<i32>,
}

impl EndConfig {
    /// Moves the calling thread there.
    fn enter(&self) -> Result<()> {
        sys::enter_netns(&self.netns)?;
        if let Some(cpu) = self.cpu {
            sys::pin(cpu).map_err(|e| EngineError::io(format!("run on CPU {cpu}"), &e))?;
        }
        if self.fifo_priority.is_some() {
            sys::RealTime::enter(self.fifo_priority);
        }
        Ok(())
    }
}

/// The receiver's observations.
struct Received {
    /// Kernel stamp by sequence number, CLOCK_MONOTONIC, ns.
    at: Vec<Option<i64>>,
    again: u64,
    others: u64,
    ring_drops: u64,
    clock_steps: u64,
    cpu_s: f64,
}

/// Offers the load, gathers the stamps, prints the sums.
pub fn run(config: Config) -> Result<()> {
    if let Some((key, why)) = config.load.problem() {
        return Err(bad_field(key, &why));
    }
    if !(0.0..=60.0).contains(&config.linger_s) {
        return Err(bad_field("linger_s", &format!("{}; expected 0 to 60", config.linger_s)));
    }
    let (config, over) = (&config, &AtomicBool::new(false));
    let Config { sender, receiver, load, .. } = config;
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (sent, received, stamped) = std::thread::scope(|scope| {
        let watch = move |end: &EndConfig, outgoing, ready: Sender<()>| -> Result<Received> {
            end.enter()?;
            let ring = Ring::open(&end.interface, RingOptions::headers(RING_FRAMES, outgoing))?;
            let _ = ready.send(());
            drop(ready);
            Ok(receive(ring, outgoing, load.packets, over))
        };
        let own = config.stamp_sent.then(|| ready.clone());
        let stamping = own.map(|own| scope.spawn(move || watch(sender, Outgoing::Capture, own)));
        let receiving = scope.spawn(move || watch(receiver, Outgoing::Ignore, ready));
        let sending = scope.spawn(move || -> Result<Sent> {
            let source = sender.enter().and_then(|()| {
                Source::open(&sender.interface, sender.ip, receiver.ip, *load, config.stamp_sent)
            });
            // An error means that a tap could not be opened, which the tap reports itself.
            let taps = (0..1 + usize::from(config.stamp_sent)).try_for_each(|_| is_ready.recv());
            let sent = match (source, taps) {
                (Ok(source), Ok(())) => {
                    Ok(source.run(config.start_monotonic_ns.unwrap_or_else(|| monotonic_ns() + 10_000_000)))
                }
                (source, _) => source.map(|_| Sent::default()),
            };
            if sent.is_ok() {
                std::thread::sleep(Duration::from_secs_f64(config.linger_s));
            }
            over.store(true, Ordering::Release);
            sent
        });
        (sending.join(), receiving.join(), stamping.map(|tap| tap.join()))
    });
    let received = received.map_err(|_| panicked())??;
    let mut sent = sent.map_err(|_| panicked())??;
    let mut tap_drops = 0;
    if let Some(stamped) = stamped {
        let stamped = stamped.map_err(|_| panicked())??;
        tap_drops = stamped.ring_drops;
        // A frame that the kernel refused has no stamp either way.
        sent.at = stamped.at;
    }
    if let Some(out) = &config.out {
        write(out, &sent, &received).map_err(|e| EngineError::io("write", &e).at(out))?;
    }
    let arrived = received.at.iter().flatten();
    say(&json!({
        "event": "gauged", "offered": load.packets, "sent": sent.at.iter().flatten().count(),
        "received": arrived.clone().count(), "again": received.again, "others": received.others,
        "first_sent_monotonic_ns": sent.at.iter().flatten().min(), "last_sent_monotonic_ns": sent.at.iter().flatten().max(),
        "first_received_monotonic_ns": arrived.clone().min(), "last_received_monotonic_ns": arrived.max(),
        "ring_drops": received.ring_drops, "sender_ring_drops": tap_drops, "clock_steps": received.clock_steps,
        "cpu_s": {"sender": sent.cpu_s, "receiver": received.cpu_s},
    }));
    Ok(())
}

fn receive(mut ring: Ring, outgoing: Outgoing, packets: u32, over: &AtomicBool) -> Received {
    let mut clock = Clock::new();
    let mut at = vec![None; packets as usize];
    let (mut again, mut others) = (0, 0);
    loop {
        let last = over.load(Ordering::Acquire);
        clock.watch();
        while let Some(frame) = ring.peek() {
            if frame.outgoing != (outgoing == Outgoing::Capture) {
                ring.release();
                continue;
            }
            match sequence(frame.bytes).and_then(|seq| at.get_mut(seq as usize)) {
                Some(Some(_)) => again += 1,
                Some(place) => *place = Some(clock.monotonic(frame.stamp_ns)),
                None => others += 1,
            }
            ring.release();
        }
        if last {
            let (ring_drops, cpu_s) = (ring.drops(), sys::thread_cpu().0.total_s());
            return Received { at, again, others, ring_drops, clock_steps: clock.steps(), cpu_s };
        }
        std::thread::sleep(LOOK);
    }
}

fn write(path: &Path, sent: &Sent, received: &Received) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    writeln!(file, "seq,sent_monotonic_ns,received_monotonic_ns")?;
    let text = |at: Option<&Option<i64>>| at.copied().flatten().map_or(String::new(), |ns| ns.to_string());
    for seq in 0..received.at.len() {
        writeln!(file, "{seq},{},{}", text(sent.at.get(seq)), text(received.at.get(seq)))?;
    }
    file.flush()
}
