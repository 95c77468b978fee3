//! An independent count of packets at an end: another process, another socket, another namespace than the link's.

mod diag;
mod tcp;

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use nix::libc;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{EngineError, Result};
use crate::lines::{Command, Commands, say};
use crate::packet::{Outgoing, Ring, RingOptions};
use crate::sys;

/// How often the ring is looked at. Packets do not wake the witness: it shares the processors with the
/// observed programs. The ring holds 100 ms of 160,000 packets/s, about two directions of 1 Gbit/s.
const LOOK_MS: libc::c_int = 20;

/// The configuration file; see PROTOCOL.md.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    netns: String,
    interface: String,
    flows: Vec<Flow>,
    /// Where to leave a stamp of every packet of the flows, if anywhere.
    #[serde(default)]
    stamps: Option<PathBuf>,
    /// Samples of the flows' TCP connections at this end, if any.
    #[serde(default)]
    tcp: Option<tcp::Config>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flow {
    name: String,
    server_ip: Ipv4Addr,
    player_ip: Ipv4Addr,
    /// Where its TCP at this end is, if not in the witness's own network namespace.
    #[serde(default)]
    netns: Option<String>,
}

/// Bytes of a stamp in the file: the kernel's (CLOCK_REALTIME ns, i64), Ethernet bytes (u32), the flow's place in `flows`
/// (u16), 1 if this end sent it (u16); little-endian.
const STAMP_BYTES: usize = 16;

/// Traffic that one flow sent and received at this interface; Ethernet bytes.
#[derive(Clone, Copy, Default, Debug, Serialize)]
struct Counts {
    rx_packets: u64,
    rx_bytes: u64,
    tx_packets: u64,
    tx_bytes: u64,
}

/// Counts until it is stopped.
pub fn run(config: Config) -> Result<()> {
    let pairs: HashMap<(Ipv4Addr, Ipv4Addr), usize> = (config.flows.iter().enumerate())
        .flat_map(|(i, flow)| [((flow.server_ip, flow.player_ip), i), ((flow.player_ip, flow.server_ip), i)])
        .collect();
    sys::enter_netns(&config.netns)?;
    let mut ring = Ring::open(&config.interface, RingOptions::headers(16_384, Outgoing::Capture))?;
    let commands = Commands::from_stdin()?;
    let tcp =
        config.tcp.as_ref().map(|tcp| tcp::Sampler::open(tcp, &config.flows, &config.netns)).transpose()?;
    let mut seen = Seen { counts: vec![Counts::default(); config.flows.len() + 1], stamps: None, tcp };
    seen.stamps = config.stamps.as_ref().map(|_| Vec::with_capacity(1 << 16));
    let mut drops_before = 0;
    say(&json!({"event": "ready"}));
    loop {
        let mut fd = libc::pollfd { fd: commands.fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry; a failed call only makes us look again.
        unsafe { libc::poll(&mut fd, 1, seen.wait_ms()) };
        seen.take(&mut ring, &config.flows, &pairs);
        while let Some(command) = commands.next()? {
            match command {
                Command::Reset => {
                    seen.counts.fill(Counts::default());
                    seen.stamps.iter_mut().for_each(Vec::clear);
                    drops_before = ring.drops();
                    say(&json!({"event": "reset"}));
                }
                Command::Stop => {
                    seen.take(&mut ring, &config.flows, &pairs);
                    let tcp = seen.tcp.take().map(|tcp| tcp.finish(&config.flows)).transpose()?;
                    if let (Some(path), Some(stamps)) = (&config.stamps, &seen.stamps) {
                        std::fs::write(path, stamps)
                            .map_err(|e| EngineError::io("write the stamps", &e).at(path))?;
                    }
                    let counts = &seen.counts;
                    let flows: Vec<_> = (config.flows.iter().zip(counts))
                        .map(|(flow, c)| {
                            json!({
                                "name": flow.name, "rx_packets": c.rx_packets, "rx_bytes": c.rx_bytes,
                                "tx_packets": c.tx_packets, "tx_bytes": c.tx_bytes,
                            })
                        })
                        .collect();
                    let lost = ring.drops() - drops_before;
                    let other = counts[config.flows.len()];
                    say(&json!({
                        "event": "stopped", "ring_drops": lost, "flows": flows, "other": other, "tcp": tcp,
                    }));
                    return Ok(());
                }
                Command::Start { t0_monotonic_ns } => {
                    if let Some(tcp) = &mut seen.tcp {
                        tcp.start(t0_monotonic_ns.cast_signed());
                    }
                    say(&json!({"event": "started"}));
                }
                Command::Preflight | Command::Status => {
                    let why = "a witness knows start, reset and stop";
                    return Err(EngineError::new("read a command", why).code(2));
                }
            }
        }
    }
}

/// Observations so far.
struct Seen {
    /// One per flow, then other traffic.
    counts: Vec<Counts>,
    /// As in the file.
    stamps: Option<Vec<u8>>,
    tcp: Option<tcp::Sampler>,
}

impl Seen {
    /// Returns the time until the ring or TCP is to be read.
    fn wait_ms(&self) -> libc::c_int {
        self.tcp.as_ref().and_then(tcp::Sampler::due_ms).unwrap_or(LOOK_MS).min(LOOK_MS)
    }

    fn take(&mut self, ring: &mut Ring, flows: &[Flow], pairs: &HashMap<(Ipv4Addr, Ipv4Addr), usize>) {
        let other = self.counts.len() - 1;
        while let Some(frame) = ring.peek() {
            let flow = addresses(frame.bytes).and_then(|pair| pairs.get(&pair)).copied().unwrap_or(other);
            let count = &mut self.counts[flow];
            let (packets, bytes) = if frame.outgoing {
                (&mut count.tx_packets, &mut count.tx_bytes)
            } else {
                (&mut count.rx_packets, &mut count.rx_bytes)
            };
            *packets += 1;
            *bytes += frame.wire_bytes as u64;
            if let Some(stamps) = self.stamps.as_mut().filter(|_| flow != other) {
                let mut stamp = [0; STAMP_BYTES];
                stamp[..8].copy_from_slice(&frame.stamp_ns.to_le_bytes());
                stamp[8..12].copy_from_slice(&(frame.wire_bytes as u32).to_le_bytes());
                stamp[12..14].copy_from_slice(&(flow as u16).to_le_bytes());
                stamp[14..].copy_from_slice(&u16::from(frame.outgoing).to_le_bytes());
                stamps.extend_from_slice(&stamp);
            }
            if let Some(tcp) = &mut self.tcp
                && let Some(flow_of) = flows.get(flow)
            {
                tcp.frame(flow, flow_of.server_ip, flow_of.player_ip, frame.bytes);
            }
            ring.release();
        }
        if let Some(tcp) = &mut self.tcp {
            tcp.look();
        }
    }
}

/// Returns the source and destination of an IPv4 frame. Not the record's reader, on purpose: a witness shares
/// no code with the record that it confirms.
fn addresses(frame: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let ip = frame.get(14..34).filter(|_| frame[12..14] == [0x08, 0x00])?;
    let at = |i: usize| Ipv4Addr::new(ip[i], ip[i + 1], ip[i + 2], ip[i + 3]);
    Some((at(12), at(16)))
}
