//! An independent count of packets at an end: another process, another socket, another namespace than the link's.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;

use nix::libc;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{EngineError, Result};
use crate::lines::{Command, Commands, say};
use crate::packet::{Outgoing, Ring, RingOptions};
use crate::sys;

/// The configuration file; see PROTOCOL.md.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    netns: String,
    interface: String,
    flows: Vec<Flow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flow {
    name: String,
    server_ip: Ipv4Addr,
    player_ip: Ipv4Addr,
}

/// What one flow sent and received at this interface; Ethernet bytes.
#[derive(Clone, Copy, Default, Debug, Serialize)]
struct Counts {
    rx_packets: u64,
    rx_bytes: u64,
    tx_packets: u64,
    tx_bytes: u64,
}

/// Counts until told to stop.
pub fn run(config: Config) -> Result<()> {
    let pairs: HashMap<(Ipv4Addr, Ipv4Addr), usize> = (config.flows.iter().enumerate())
        .flat_map(|(i, flow)| [((flow.server_ip, flow.player_ip), i), ((flow.player_ip, flow.server_ip), i)])
        .collect();
    sys::enter_netns(&config.netns)?;
    let mut ring =
        Ring::open(&config.interface, RingOptions { frames: 16_384, outgoing: Outgoing::Capture })?;
    let commands = Commands::from_stdin()?;
    let mut counts = vec![Counts::default(); config.flows.len() + 1];
    let mut drops_before = 0;
    say(&json!({"event": "ready"}));
    loop {
        let mut fds = [ring.fd().as_raw_fd(), commands.fd()].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        // SAFETY: two valid entries; a failed call only makes us look again.
        unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) };
        take(&mut ring, &pairs, &mut counts);
        while let Some(command) = commands.next()? {
            match command {
                Command::Reset => {
                    counts.fill(Counts::default());
                    drops_before = ring.drops();
                    say(&json!({"event": "reset"}));
                }
                Command::Stop => {
                    take(&mut ring, &pairs, &mut counts);
                    let flows: Vec<_> = (config.flows.iter().zip(&counts))
                        .map(|(flow, c)| {
                            json!({
                                "name": flow.name, "rx_packets": c.rx_packets, "rx_bytes": c.rx_bytes,
                                "tx_packets": c.tx_packets, "tx_bytes": c.tx_bytes,
                            })
                        })
                        .collect();
                    let lost = ring.drops() - drops_before;
                    let other = counts[config.flows.len()];
                    say(&json!({"event": "stopped", "ring_drops": lost, "flows": flows, "other": other}));
                    return Ok(());
                }
                Command::Preflight | Command::Start { .. } | Command::Status => {
                    let why = "a witness knows reset and stop";
                    return Err(EngineError::new("read a command", why).code(2));
                }
            }
        }
    }
}

fn take(ring: &mut Ring, pairs: &HashMap<(Ipv4Addr, Ipv4Addr), usize>, counts: &mut [Counts]) {
    let other = counts.len() - 1;
    while let Some(frame) = ring.peek() {
        let flow = addresses(frame.bytes).and_then(|pair| pairs.get(&pair)).copied().unwrap_or(other);
        let count = &mut counts[flow];
        let (packets, bytes) = if frame.outgoing {
            (&mut count.tx_packets, &mut count.tx_bytes)
        } else {
            (&mut count.rx_packets, &mut count.rx_bytes)
        };
        *packets += 1;
        *bytes += frame.wire_bytes as u64;
        ring.release();
    }
}

/// Source and destination of an IPv4 frame. Not the record's reader, on purpose: a witness shares no code with what it
/// is to confirm.
fn addresses(frame: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    let ip = frame.get(14..34).filter(|_| frame[12..14] == [0x08, 0x00])?;
    let at = |i: usize| Ipv4Addr::new(ip[i], ip[i + 1], ip[i + 2], ip[i + 3]);
    Some((at(12), at(16)))
}
