//! A described load, offered to one interface.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};

use nix::libc;
use serde::Deserialize;

use crate::error::{EngineError, Result};
use crate::packet::{MAX_BATCH, Parts, Sender, raw_socket};
use crate::sys::{self, monotonic_ns};

/// Ethernet, IPv4 without options, UDP, and ours: a mark and a sequence number.
pub const LEAST_FRAME: usize = 14 + 20 + 8 + 8;

/// The longest Ethernet frame without its check sequence.
pub const LONGEST_FRAME: usize = 1514;

/// Where our own part begins, with its mark.
const PAYLOAD: usize = 14 + 20 + 8;
const MARK: [u8; 4] = *b"SGGA";

/// How many packets are offered, and when.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Packets per second, on average.
    pub packets_per_s: f64,
    /// Ethernet bytes of each.
    pub frame_bytes: usize,
    /// Frames in a burst.
    #[serde(default = "one")]
    pub burst: u32,
    /// How many in all.
    pub packets: u32,
}

fn one() -> u32 {
    1
}

impl Load {
    /// Returns its fault, if any: the key and the reason.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let Load { packets_per_s, frame_bytes, burst, packets } = *self;
        if !(LEAST_FRAME..=LONGEST_FRAME).contains(&frame_bytes) {
            let why = format!("{frame_bytes} B; a frame has {LEAST_FRAME} to {LONGEST_FRAME} B");
            return Some(("load.frame_bytes", why));
        }
        if !(packets_per_s.is_finite() && packets_per_s > 0.0) {
            return Some(("load.packets_per_s", format!("{packets_per_s}; expected a positive number")));
        }
        if burst == 0 || packets == 0 {
            let key = if burst == 0 { "load.burst" } else { "load.packets" };
            return Some((key, "0; expected at least 1".into()));
        }
        None
    }

    /// Returns when packet `seq` is to be offered, ns after the first.
    fn due(&self, seq: u32) -> i64 {
        let burst = seq / self.burst * self.burst;
        (f64::from(burst) * 1e9 / self.packets_per_s) as i64
    }
}

/// The result of sending.
#[derive(Default, Debug)]
pub struct Sent {
    /// CLOCK_MONOTONIC, ns, read before the system call that sent each packet; `None` if the kernel refused it.
    pub at: Vec<Option<i64>>,
    /// CPU time of the sending thread, s.
    pub cpu_s: f64,
}

/// Returns a frame of the load. No host has its destination address: the receiver's kernel drops it as soon
/// as its taps have seen it, without a socket or ICMP.
fn frame(source: Ipv4Addr, destination: Ipv4Addr, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    frame[..6].copy_from_slice(&[0x02, 0x53, 0x47, 0, 0, 2]);
    frame[6..12].copy_from_slice(&[0x02, 0x53, 0x47, 0, 0, 1]);
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let ip = &mut frame[14..];
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&((bytes - 14) as u16).to_be_bytes());
    // Don't fragment; 64 hops; UDP.
    (ip[6], ip[8], ip[9]) = (0x40, 64, 17);
    ip[12..16].copy_from_slice(&source.octets());
    ip[16..20].copy_from_slice(&destination.octets());
    let sum: u32 = ip[..20].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    ip[20..24].copy_from_slice(&[0x13, 0x88, 0x13, 0x88]);
    ip[24..26].copy_from_slice(&((bytes - 34) as u16).to_be_bytes());
    frame[PAYLOAD..PAYLOAD + 4].copy_from_slice(&MARK);
    frame
}

/// Returns the sequence number of one of our frames.
pub fn sequence(frame: &[u8]) -> Option<u32> {
    let payload: &[u8; 8] = frame.get(PAYLOAD..PAYLOAD + 8)?.try_into().ok()?;
    let seq = u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]);
    (payload[..4] == MARK).then_some(seq)
}

/// Sends a load from one interface.
pub struct Source {
    socket: OwnedFd,
    load: Load,
    frames: Vec<Vec<u8>>,
}

impl Source {
    /// Opens the source on `interface` of the calling thread's network namespace.
    ///
    /// `seen` by the interface's own taps, it takes the way of ordinary packets, and a little longer.
    pub fn open(interface: &str, from: Ipv4Addr, to: Ipv4Addr, load: Load, seen: bool) -> Result<Source> {
        let socket = raw_socket(interface)?;
        if seen {
            let off: libc::c_int = 0;
            sys::set_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &off)
                .map_err(|e| EngineError::io("let taps see what is sent", &e))?;
        }
        let most = (load.burst as usize).clamp(1, MAX_BATCH);
        Ok(Source { socket, load, frames: vec![frame(from, to, load.frame_bytes); most] })
    }

    /// Offers the load from `start` (CLOCK_MONOTONIC, ns) on. A late sender catches up, a burst at a time.
    pub fn run(mut self, start: i64) -> Sent {
        // SAFETY: plain integers.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
        let mut sent = Sent { at: Vec::with_capacity(self.load.packets as usize), cpu_s: 0.0 };
        let mut sender = Sender::new();
        let mut seq = 0;
        while seq < self.load.packets {
            sys::sleep_until(start + self.load.due(seq));
            let most = (self.load.packets - seq).min(self.frames.len() as u32);
            // A burst longer than a batch is sent in several.
            let count = most.min(self.load.burst - seq % self.load.burst);
            for (frame, seq) in self.frames.iter_mut().zip(seq..seq + count) {
                frame[PAYLOAD + 4..PAYLOAD + 8].copy_from_slice(&seq.to_be_bytes());
            }
            let at = monotonic_ns();
            let frames = self.frames[..count as usize].iter().map(|frame| Parts::whole(frame));
            sender.send(self.socket.as_fd(), frames, |_, done| sent.at.push(done.is_ok().then_some(at)));
            seq += count;
        }
        sent.cpu_s = sys::thread_cpu().0.total_s();
        sent
    }
}

/// Returns a panic as an error of this program.
pub fn panicked() -> EngineError {
    EngineError::new("measure", "a thread panicked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_valid_and_numbered() {
        let mut bytes = frame(Ipv4Addr::new(10, 1, 0, 1), Ipv4Addr::new(10, 2, 0, 1), 1514);
        let parsed = streamgauge_record::parse_frame(&bytes);
        assert_eq!((parsed.ip_bytes, parsed.source), (1500, Some(Ipv4Addr::new(10, 1, 0, 1))));
        let sum: u32 = bytes[14..34].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        bytes[PAYLOAD + 4..PAYLOAD + 8].copy_from_slice(&77u32.to_be_bytes());
        assert_eq!(sequence(&bytes), Some(77));
        assert_eq!(sequence(&bytes[..PAYLOAD + 7]), None);
    }

    #[test]
    fn bursts_are_due_together() {
        let load = Load { packets_per_s: 1000.0, frame_bytes: 100, burst: 4, packets: 10 };
        let due: Vec<i64> = (0..6).map(|seq| load.due(seq) / 1_000_000).collect();
        assert_eq!(due, [0, 0, 0, 0, 4, 4]);
        assert!(load.problem().is_none());
        let problem = Load { frame_bytes: 20, ..load }.problem();
        assert!(problem.is_some_and(|(key, why)| key == "load.frame_bytes" && why.contains("20 B")));
    }
}
