//! Sending and seeing packets at both ends.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use nix::libc;

use crate::error::{EngineError, Result};
use crate::packet::{Outgoing, Ring, RingOptions};
use crate::sys;

/// Where both ends send from and to.
const PORT: u16 = 47_107;

/// Begins every payload: "SGPF", a run's number, a sequence number.
const MAGIC: [u8; 4] = *b"SGPF";

/// Ethernet, IPv4 without options, UDP.
const HEADERS: usize = 14 + 20 + 8;

/// One end: a tap on its interface and a UDP socket.
pub struct End {
    ring: Ring,
    socket: UdpSocket,
    run: u32,
    buffer: [u8; 2048],
}

/// Both ends.
pub struct Pair {
    /// The source of `down`.
    pub server: End,
    /// The destination of `down`.
    pub client: End,
}

/// One packet's stamps, CLOCK_REALTIME ns.
#[derive(Clone, Copy, Default, Debug)]
pub struct Seen {
    /// It left the sender's interface.
    pub sent: Option<i64>,
    /// It reached the receiver's.
    pub received: Option<i64>,
    /// Its Ethernet bytes.
    pub frame: usize,
}

/// The packets of one direction and run, by sequence number.
#[derive(Clone, Default, Debug)]
pub struct Flight {
    /// Observations of each packet.
    pub packets: BTreeMap<u32, Seen>,
    /// Number of the first packets that were sent at once.
    pub burst: u32,
}

impl Flight {
    /// Returns how many arrived.
    pub fn received(&self) -> usize {
        self.packets.values().filter(|seen| seen.received.is_some()).count()
    }
}

impl End {
    /// Opens the end that has address `own` on `interface` of namespace `netns`.
    pub fn open(netns: &str, interface: &str, own: Ipv4Addr, peer: Ipv4Addr) -> Result<End> {
        // Sockets stay in the namespace they were made in; a thread can go there and end.
        let opened = std::thread::scope(|scope| {
            scope
                .spawn(|| -> Result<(Ring, UdpSocket)> {
                    sys::enter_netns(netns)?;
                    let ring = Ring::open(interface, RingOptions::headers(8192, Outgoing::Capture))?;
                    let failed = |e: &std::io::Error| {
                        EngineError::io(format!("use {own} towards {peer} in namespace {netns}"), e).remedy(
                            "give the pair its addresses, routes and neighbours before the pre-flight",
                        )
                    };
                    let socket = UdpSocket::bind((own, PORT)).map_err(|e| failed(&e))?;
                    socket.connect((peer, PORT)).map_err(|e| failed(&e))?;
                    socket.set_nonblocking(true).map_err(|e| failed(&e))?;
                    // The burst must not wait for the sender's own buffer.
                    let room: libc::c_int = 8 << 20;
                    sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, &room)
                        .or_else(|_| {
                            sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, &room)
                        })
                        .map_err(|e| failed(&e))?;
                    Ok((ring, socket))
                })
                .join()
        });
        let (ring, socket) = opened.map_err(|_| EngineError::new("open an end", "its thread panicked"))??;
        Ok(End { ring, socket, run: 0, buffer: [0; 2048] })
    }

    /// Sends packet `seq` of this run as `frame` Ethernet bytes.
    pub fn send(&mut self, seq: u32, frame: usize) -> Result<()> {
        let length = frame.saturating_sub(HEADERS).max(12);
        self.buffer[..4].copy_from_slice(&MAGIC);
        self.buffer[4..8].copy_from_slice(&self.run.to_be_bytes());
        self.buffer[8..12].copy_from_slice(&seq.to_be_bytes());
        match self.socket.send(&self.buffer[..length]) {
            Ok(_) => Ok(()),
            // Not sent: it will be missing from the sender's own tap too, and so counts for nothing.
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => Ok(()),
            Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => Ok(()),
            Err(e) => Err(EngineError::io("send a pre-flight packet", &e)),
        }
    }

    /// Notes the observations of its tap; returns the number of packets of the run that arrived.
    fn look(&mut self, sent: &mut Flight, received: &mut Flight) -> usize {
        let mut arrived = 0;
        while let Some(frame) = self.ring.peek() {
            if let Some(seq) = sequence(frame.bytes, self.run) {
                let flight = if frame.outgoing { &mut *sent } else { &mut *received };
                let seen = flight.packets.entry(seq).or_default();
                seen.frame = frame.wire_bytes;
                let stamp = if frame.outgoing { &mut seen.sent } else { &mut seen.received };
                *stamp = Some(frame.stamp_ns);
                arrived += usize::from(!frame.outgoing);
            }
            self.ring.release();
        }
        // Only the tap reads arrivals; a full buffer would show in the kernel's counters.
        let mut scrap = [0; 2048];
        while self.socket.recv(&mut scrap).is_ok() {}
        arrived
    }
}

fn sequence(frame: &[u8], run: u32) -> Option<u32> {
    let payload = frame.get(HEADERS..HEADERS + 12)?;
    let number =
        |at: usize| u32::from_be_bytes([payload[at], payload[at + 1], payload[at + 2], payload[at + 3]]);
    (payload[..4] == MAGIC && number(4) == run).then(|| number(8))
}

impl Pair {
    /// Looks at both taps for `time`, at least once; `flights` are down's and up's.
    pub fn collect(&mut self, time: Duration, flights: &mut [Flight; 2]) {
        let end = Instant::now() + time;
        loop {
            self.look(flights);
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.wait(left);
        }
    }

    /// Looks at both taps until nothing has arrived for `quiet`.
    pub fn collect_until_quiet(&mut self, quiet: Duration, flights: &mut [Flight; 2]) {
        let mut last = Instant::now();
        while last.elapsed() < quiet {
            if self.look(flights) > 0 {
                last = Instant::now();
            }
            self.wait(quiet.saturating_sub(last.elapsed()));
        }
    }

    /// Packets on their way no longer count.
    pub fn next_run(&mut self) {
        for end in [&mut self.server, &mut self.client] {
            end.run += 1;
        }
    }

    fn look(&mut self, [down, up]: &mut [Flight; 2]) -> usize {
        self.server.look(down, up) + self.client.look(up, down)
    }

    fn wait(&self, at_most: Duration) {
        let fd = |end: &End| libc::pollfd { fd: end.ring.fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut fds = [fd(&self.server), fd(&self.client)];
        let timeout = libc::timespec {
            tv_sec: at_most.as_secs() as libc::time_t,
            tv_nsec: at_most.subsec_nanos().into(),
        };
        // SAFETY: two valid entries and a valid timeout; a failed call only makes the caller look again.
        unsafe { libc::ppoll(fds.as_mut_ptr(), 2, &timeout, std::ptr::null()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packets_of_the_run_count() {
        let mut frame = vec![0; HEADERS];
        frame.extend(MAGIC);
        frame.extend(7u32.to_be_bytes());
        frame.extend(42u32.to_be_bytes());
        assert_eq!(sequence(&frame, 7), Some(42));
        assert_eq!(sequence(&frame, 8), None);
        assert_eq!(sequence(&frame[..frame.len() - 1], 7), None);
    }
}
