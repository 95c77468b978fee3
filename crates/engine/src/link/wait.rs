//! Waiting for the next thing to do.

use std::os::fd::RawFd;

use nix::libc;

use crate::sys::monotonic_ns;

/// Under SCHED_FIFO the last stretch before a departure is spun away, because a timer's own latency is tens of us.
const SPIN_NS: i64 = 100_000;

/// From this rate on (packets/s) nothing is spun away: it would starve senders on few cores.
const SPIN_BELOW_RATE: u64 = 5_000;

/// How often rings are looked at whose packets can wait, ns: 50 packets at 50,000 packets/s.
const LOOK_NS: i64 = 1_000_000;

/// Waits for descriptors and points in time.
pub struct Waiter {
    fds: Vec<libc::pollfd>,
    may_spin: bool,
    window_start: i64,
    window_packets: u64,
    rate: u64,
}

impl Waiter {
    /// For these descriptors; spins only if `may_spin`.
    pub fn new(fds: impl Iterator<Item = RawFd>, may_spin: bool) -> Self {
        let fds = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
        Waiter { fds, may_spin, window_start: monotonic_ns(), window_packets: 0, rate: 0 }
    }

    /// So many packets passed by `now`.
    #[inline]
    pub fn passed(&mut self, packets: u64, now: i64) {
        self.window_packets += packets;
        let length = now - self.window_start;
        if length >= 100_000_000 {
            self.rate = self.window_packets * 1_000_000_000 / length as u64;
            (self.window_start, self.window_packets) = (now, 0);
        }
    }

    /// Returns when CLOCK_MONOTONIC reads `until`, a descriptor is readable, or `ready` (asked while spinning) says
    /// so. `None` waits for descriptors alone. `patience` says how long (ns) what the first descriptors bring may
    /// wait: at high rates those that can are looked at by the clock, which saves a wake-up for every packet.
    pub fn wait(&mut self, until: Option<i64>, patience: impl Fn() -> [i64; 3], ready: impl Fn() -> bool) {
        let now = monotonic_ns();
        let busy = self.rate >= SPIN_BELOW_RATE;
        let spin = if self.may_spin && !busy { SPIN_NS } else { 0 };
        let mut wake = until;
        // The last descriptor brings commands.
        let ports = self.fds.len() - 1;
        for (fd, patience) in self.fds[..ports].iter_mut().zip(if busy { patience() } else { [0; 3] }) {
            let can_wait = patience >= 2 * LOOK_NS;
            fd.events = if can_wait { 0 } else { libc::POLLIN };
            if can_wait {
                wake = Some(wake.map_or(now + LOOK_NS, |at| at.min(now + LOOK_NS)));
            }
        }
        let left = wake.map(|at| at - now);
        if left.is_none_or(|left| left > spin) {
            let timeout = left.map(|left| {
                let left = left - spin;
                libc::timespec { tv_sec: left / 1_000_000_000, tv_nsec: left % 1_000_000_000 }
            });
            let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
            // SAFETY: `fds` is valid for its length, and `timeout` is null or points to a live value. An interrupted or
            // failed call only makes the caller look again.
            let woken = unsafe {
                libc::ppoll(self.fds.as_mut_ptr(), self.fds.len() as libc::nfds_t, timeout, std::ptr::null())
            };
            if woken != 0 {
                return;
            }
        }
        if let Some(at) = until
            && spin > 0
        {
            while monotonic_ns() < at && !ready() {
                std::hint::spin_loop();
            }
        }
    }
}
