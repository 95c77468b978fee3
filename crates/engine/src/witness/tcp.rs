//! The state of the flows' TCP connections at the end that sends, at regular times.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Flow;
use super::diag::{Diag, State};
use crate::error::{EngineError, Result};
use crate::sys::{clock_ns, enter_netns, monotonic_ns};

/// Time to look for a connection after its SYN was seen.
const PATIENCE_NS: i64 = 60_000_000_000;
const SYN: u8 = 2;
const TCP: u8 = 6;

/// Which samples to take; see PROTOCOL.md.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Time between samples.
    every_ns: i64,
    /// Where to leave them.
    out: PathBuf,
}

/// A connection of a flow.
#[derive(Debug)]
struct Connection {
    flow: usize,
    server: SocketAddrV4,
    player: SocketAddrV4,
    /// When its SYN was seen.
    since_ns: i64,
    /// It has been found, and not been missed since.
    open: bool,
    over: bool,
    congestion_controls: BTreeSet<String>,
    ecn: bool,
    acked_bytes: u64,
    samples: Vec<(i64, State)>,
}

impl Connection {
    /// Asks how it is.
    fn ask(&mut self, diag: &mut Diag) -> Option<(i64, State)> {
        let asked = monotonic_ns();
        let Some(state) = diag.state(self.server, self.player) else {
            self.over = self.open || asked - self.since_ns > PATIENCE_NS;
            return None;
        };
        self.open = true;
        self.ecn |= state.ecn;
        self.acked_bytes = state.acked_bytes;
        if !self.congestion_controls.contains(&state.congestion_control) {
            self.congestion_controls.insert(state.congestion_control.clone());
        }
        Some((asked + (monotonic_ns() - asked) / 2, state))
    }
}

/// Finds connections by their SYNs and asks the kernel how they are.
#[derive(Debug)]
pub struct Sampler {
    every_ns: i64,
    out: PathBuf,
    /// One in each network namespace in which flows have their TCP.
    diags: Vec<Diag>,
    /// By flow, its place in `diags`.
    asked: Vec<usize>,
    /// CLOCK_MONOTONIC; `None` before the trial's start.
    next_ns: Option<i64>,
    connections: Vec<Connection>,
    cpu_ns: i64,
}

impl Sampler {
    /// Opens it in the namespace of the end that sends, which is `netns`.
    pub fn open(config: &Config, flows: &[Flow], netns: &str) -> Result<Self> {
        if config.every_ns <= 0 {
            return Err(EngineError::new("read the configuration", "tcp.every_ns: give more than 0").code(2));
        }
        let out = config.out.clone();
        let mut diags = vec![Diag::open()?];
        let mut asked = Vec::with_capacity(flows.len());
        for flow in flows {
            asked.push(if let Some(own) = &flow.netns {
                enter_netns(own)?;
                diags.push(Diag::open()?);
                diags.len() - 1
            } else {
                0
            });
        }
        if diags.len() > 1 {
            enter_netns(netns)?;
        }
        Ok(Sampler {
            every_ns: config.every_ns,
            out,
            diags,
            asked,
            next_ns: None,
            connections: Vec::new(),
            cpu_ns: 0,
        })
    }

    /// Starts the trial at `t0`.
    pub fn start(&mut self, t0_ns: i64) {
        self.next_ns = Some(t0_ns + self.every_ns);
    }

    /// Returns how long the next sample is away, ms, rounded up.
    pub fn due_ms(&self) -> Option<i32> {
        let away = (self.next_ns? - monotonic_ns()).max(0);
        i32::try_from((away + 999_999) / 1_000_000).ok()
    }

    /// Processes a frame of a flow that was seen at this end.
    pub fn frame(&mut self, flow: usize, server_ip: Ipv4Addr, player_ip: Ipv4Addr, frame: &[u8]) {
        let Some((source, destination)) = syn_ports(frame) else { return };
        // Whichever end opens it.
        let from_server = frame[26..30] == server_ip.octets();
        let (own, other) = if from_server { (source, destination) } else { (destination, source) };
        let (server, player) = (SocketAddrV4::new(server_ip, own), SocketAddrV4::new(player_ip, other));
        let known = |c: &Connection| !c.over && (c.server, c.player) == (server, player);
        if !self.connections.iter().any(known) {
            self.connections.push(Connection {
                flow,
                server,
                player,
                since_ns: monotonic_ns(),
                open: false,
                over: false,
                congestion_controls: BTreeSet::new(),
                ecn: false,
                acked_bytes: 0,
                samples: Vec::new(),
            });
        }
    }

    /// Takes samples if they are due.
    pub fn look(&mut self) {
        let now = monotonic_ns();
        let Some(next) = self.next_ns.filter(|&next| next <= now) else {
            // For a connection that will be over before the next sample, at least the congestion control is
            // known.
            for connection in self.connections.iter_mut().filter(|one| !one.open && !one.over) {
                connection.ask(&mut self.diags[self.asked[connection.flow]]);
            }
            return;
        };
        // A sample that was missed without a free processor is not made up for: it would reveal nothing of
        // its time.
        let missed = (now - next) / self.every_ns;
        self.next_ns = Some(next + (missed + 1) * self.every_ns);
        self.sample();
    }

    fn sample(&mut self) {
        let before = clock_ns(nix::libc::CLOCK_THREAD_CPUTIME_ID);
        for connection in self.connections.iter_mut().filter(|one| !one.over) {
            let sample = connection.ask(&mut self.diags[self.asked[connection.flow]]);
            connection.samples.extend(sample);
        }
        self.cpu_ns += clock_ns(nix::libc::CLOCK_THREAD_CPUTIME_ID) - before;
    }

    /// Takes a last sample, then writes the file; returns the cost of sampling.
    pub fn finish(mut self, flows: &[Flow]) -> Result<Value> {
        self.sample();
        let seen = self.connections.iter().filter(|one| !one.congestion_controls.is_empty());
        let connections: Vec<Value> = seen.map(|connection| words(connection, flows)).collect();
        let samples: usize = self.connections.iter().map(|connection| connection.samples.len()).sum();
        let text = serde_json::to_vec(&json!({"connections": connections})).expect("plain values");
        std::fs::write(&self.out, text)
            .map_err(|e| EngineError::io("write the samples of TCP", &e).at(&self.out))?;
        Ok(json!({"samples": samples, "cpu_s": self.cpu_ns as f64 / 1e9}))
    }
}

fn words(connection: &Connection, flows: &[Flow]) -> Value {
    let samples = connection.samples.iter().map(|(at, s)| {
        json!([
            at,
            s.congestion_control,
            s.cwnd_bytes,
            s.ssthresh_bytes,
            s.srtt_us,
            s.retransmits,
            s.pacing_bytes_s,
            s.in_flight_bytes
        ])
    });
    json!({
        "flow": flows[connection.flow].name,
        "server_port": connection.server.port(),
        "player_port": connection.player.port(),
        "congestion_controls": connection.congestion_controls,
        "ecn": connection.ecn,
        "acked_bytes": connection.acked_bytes,
        "samples": samples.collect::<Vec<_>>(),
    })
}

/// Returns the source and destination port of a TCP segment with SYN.
fn syn_ports(frame: &[u8]) -> Option<(u16, u16)> {
    let header_words = usize::from(frame.get(14)? & 0x0f);
    if *frame.get(23)? != TCP || frame[20] & 0x1f != 0 || frame[21] != 0 {
        return None; // another protocol, or not the first fragment
    }
    let tcp = frame.get(14 + 4 * header_words..)?;
    let port = |at: usize| Some(u16::from_be_bytes(tcp.get(at..at + 2)?.try_into().ok()?));
    (tcp.get(13)? & SYN != 0).then_some((port(0)?, port(2)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(protocol: u8, flags: u8) -> Vec<u8> {
        let mut frame = vec![0; 54];
        frame[12] = 8;
        frame[14] = 0x45;
        frame[23] = protocol;
        frame[26..34].copy_from_slice(&[10, 2, 0, 1, 10, 1, 0, 1]);
        frame[34..38].copy_from_slice(&[0x9c, 0x40, 0x17, 0x70]);
        frame[47] = flags;
        frame
    }

    #[test]
    fn a_connection_is_known_by_its_syn_from_either_end_and_once() {
        let out = PathBuf::from("/nonexistent");
        let mut sampler = Sampler::open(&Config { every_ns: 1_000_000, out }, &[], "").unwrap();
        let (server, player) = ([10, 1, 0, 1].into(), [10, 2, 0, 1].into());
        sampler.frame(0, server, player, &frame(TCP, 0x10));
        sampler.frame(0, server, player, &frame(17, SYN));
        assert!(sampler.connections.is_empty());
        sampler.frame(0, server, player, &frame(TCP, SYN));
        sampler.frame(0, server, player, &frame(TCP, SYN));
        let mut answer = frame(TCP, SYN | 0x10);
        answer[26..34].rotate_left(4);
        answer[34..38].rotate_left(2);
        sampler.frame(0, server, player, &answer);
        let ports: Vec<_> = sampler.connections.iter().map(|c| (c.server.port(), c.player.port())).collect();
        assert_eq!(ports, [(6000, 40_000)]);
    }

    #[test]
    fn no_sample_is_due_before_the_start_nor_made_up_for_later() {
        let out = PathBuf::from("/nonexistent");
        let mut sampler = Sampler::open(&Config { every_ns: 10_000_000, out }, &[], "").unwrap();
        assert_eq!(sampler.due_ms(), None);
        let t0 = monotonic_ns() - 35_000_000;
        sampler.start(t0);
        assert_eq!(sampler.due_ms(), Some(0));
        sampler.look();
        let next = sampler.next_ns.unwrap();
        assert!(next > monotonic_ns() - 10_000_000 && (next - t0) % 10_000_000 == 0);
    }

    #[test]
    fn an_interval_of_nothing_is_refused() {
        let error = Sampler::open(&Config { every_ns: 0, out: "x".into() }, &[], "").unwrap_err();
        assert!(error.to_string().contains("tcp.every_ns"), "{error}");
    }
}
