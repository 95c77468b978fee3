//! Waiting for the next thing to do.
//!
//! Three ways, by how many packets pass. With few, the last stretch before a departure is spun away. With more, a
//! timer and the rings themselves wake the loop. With very many, it looks by the clock alone, because a wake-up
//! costs as much as two packets. The figures behind the thresholds are in docs/emulator.md.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::libc;
use nix::sys::epoll::{Epoll, EpollCreateFlags};
use serde::Serialize;

use crate::error::{EngineError, Result};
use crate::sys::{check, monotonic_ns};

/// Time before a departure at which waiting becomes spinning under SCHED_FIFO: twice a timer's lateness at
/// p99.
const SPIN_NS: i64 = 50_000;

/// From this rate on nothing is spun away: it would starve senders on few cores. Rates are in packets touched per
/// second: one that passes through is touched twice.
const SPIN_BELOW_RATE: u64 = 5_000;

/// Interval of polls of rings with packets that can wait, ns: 50 packets at 50,000 packets/s.
const LOOK_NS: i64 = 1_000_000;

/// From this rate on the loop does not wake for each packet, but at most once in `HOLD_NS`.
const HOLD_FROM_RATE: u64 = 60_000;

/// The longest that a packet is held back for the sake of those that come after it.
const HOLD_NS: i64 = 40_000;

/// Two readings of the clock in a row that lie further apart than this: something else ran on this CPU.
const STALL_NS: i64 = 20_000;

/// Ports to wait for, most urgent first.
const MAX_PORTS: usize = 3;

/// Waits for descriptors and points in time.
pub struct Waiter {
    epoll: Epoll,
    ports: Vec<RawFd>,
    /// Which ports wake the loop.
    listening: [bool; MAX_PORTS],
    has_pwait2: bool,
    may_spin: bool,
    pace: Pace,
    /// When commands were last looked for, CLOCK_MONOTONIC ns.
    looked: i64,
    /// Stalls seen while spinning.
    pub stalls: Stalls,
}

/// How many packets pass.
struct Pace {
    window_start: i64,
    window_packets: u64,
    /// Touched per second.
    rate: u64,
}

/// How often this thread, while it did nothing but read the clock, was not running: interrupts, the kernel, or the
/// hypervisor. No scheduling class helps against them, and they make up the tail of the lateness.
#[derive(Clone, Copy, Default, Debug, Serialize)]
pub struct Stalls {
    /// How many.
    pub count: u64,
    /// Together, ns.
    pub total_ns: i64,
    /// The longest, ns.
    pub max_ns: i64,
    /// Time spent looking, ns.
    pub watched_ns: i64,
}

impl Waiter {
    /// Returns a waiter for the descriptors of at most three ports, and one for commands; spins only if
    /// `may_spin`.
    pub fn new(ports: impl Iterator<Item = RawFd>, commands: RawFd, may_spin: bool) -> Result<Self> {
        let ports: Vec<RawFd> = ports.collect();
        let failed = |e: &io::Error| EngineError::io("make an epoll instance", e);
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(|e| failed(&e.into()))?;
        let waiter = Waiter {
            epoll,
            ports,
            listening: [false; MAX_PORTS],
            has_pwait2: true,
            may_spin,
            pace: Pace { window_start: monotonic_ns(), window_packets: 0, rate: 0 },
            looked: 0,
            stalls: Stalls::default(),
        };
        waiter.control(libc::EPOLL_CTL_ADD, commands, COMMANDS).map_err(|e| failed(&e))?;
        Ok(waiter)
    }

    /// Notes that this many packets were touched by `now`.
    #[inline]
    pub fn passed(&mut self, packets: u64, now: i64) {
        let pace = &mut self.pace;
        pace.window_packets += packets;
        let length = now - pace.window_start;
        if length >= 100_000_000 {
            pace.rate = pace.window_packets * 1_000_000_000 / length as u64;
            (pace.window_start, pace.window_packets) = (now, 0);
        }
    }

    /// Returns when CLOCK_MONOTONIC reads `until` (later by the hold at very high rates), a port is readable,
    /// or `ready` (asked while spinning) returns true; returns true if commands should be read. `None` waits
    /// for descriptors alone. `patience` is the time (ns) that each port's packets may wait: at high rates,
    /// ports that can wait are polled by the clock, which saves a wake-up for every packet.
    pub fn wait(
        &mut self,
        until: Option<i64>,
        patience: impl Fn() -> [i64; MAX_PORTS],
        ready: impl Fn() -> bool,
    ) -> bool {
        let now = monotonic_ns();
        let busy = self.pace.rate >= SPIN_BELOW_RATE;
        let hold = self.pace.rate >= HOLD_FROM_RATE;
        let spin = if self.may_spin && !busy { SPIN_NS } else { 0 };
        let mut wake = until.unwrap_or(i64::MAX);
        let patience = if busy { patience() } else { [0; MAX_PORTS] };
        for (port, patience) in patience.into_iter().enumerate().take(self.ports.len()) {
            let can_wait = patience >= 2 * LOOK_NS;
            self.listen(port, !can_wait && !hold);
            if can_wait {
                wake = wake.min(now + LOOK_NS);
            } else if hold {
                wake = wake.min(now + HOLD_NS);
            }
        }
        if hold {
            wake = wake.max(now + HOLD_NS);
        }
        if wake - now > spin {
            self.looked = now;
            let timeout = (wake < i64::MAX).then(|| wake - now - spin);
            if let Some(commands) = self.sleep(timeout) {
                return commands;
            }
        }
        if spin > 0 && wake < i64::MAX {
            self.spin(wake, ready);
        }
        // A loop that never sleeps must read commands too.
        let overdue = now - self.looked > LOOK_NS;
        if overdue {
            self.looked = now;
        }
        overdue
    }

    fn spin(&mut self, until: i64, ready: impl Fn() -> bool) {
        let start = monotonic_ns();
        let mut last = start;
        while last < until && !ready() {
            std::hint::spin_loop();
            let now = monotonic_ns();
            if now - last > STALL_NS {
                self.stalls.count += 1;
                self.stalls.total_ns += now - last;
                self.stalls.max_ns = self.stalls.max_ns.max(now - last);
            }
            last = now;
        }
        self.stalls.watched_ns += last - start;
    }

    /// Sets whether a frame at `port` is to wake the loop.
    #[inline]
    fn listen(&mut self, port: usize, listen: bool) {
        if self.listening[port] != listen {
            let operation = if listen { libc::EPOLL_CTL_ADD } else { libc::EPOLL_CTL_DEL };
            // It fails only without memory for the entry; tried again then at the next wait, which a port that is not
            // listened to ends within a millisecond or at the next departure.
            if self.control(operation, self.ports[port], port as u64).is_ok() {
                self.listening[port] = listen;
            }
        }
    }

    fn control(&self, operation: i32, fd: RawFd, data: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: data };
        // SAFETY: a valid structure; the descriptors outlive the waiter, or the call fails.
        check(unsafe { libc::epoll_ctl(self.epoll_fd(), operation, fd, &mut event) }).map(drop)
    }

    fn epoll_fd(&self) -> RawFd {
        let fd: &OwnedFd = &self.epoll.0;
        fd.as_raw_fd()
    }

    /// Sleeps until a descriptor is readable (then whether it is that of commands) or `timeout` ns are over (`None`).
    /// An interrupted or failed call only makes the caller look again.
    fn sleep(&mut self, timeout: Option<i64>) -> Option<bool> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; MAX_PORTS + 1];
        let timeout =
            timeout.map(|ns| libc::timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 });
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let epoll = self.epoll_fd();
        let room = events.len() as libc::c_int;
        if self.has_pwait2 {
            // By number: the C library's own face of it is newer than the call.
            // SAFETY: room for `room` events; the timeout is null or valid; no signal mask.
            let found = unsafe {
                let no_mask = std::ptr::null::<libc::sigset_t>();
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    epoll,
                    events.as_mut_ptr(),
                    room,
                    timeout,
                    no_mask,
                    0usize,
                )
            };
            if found < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
                self.has_pwait2 = false;
                return Some(true);
            }
            return (found > 0).then(|| has_commands(&events[..found as usize]));
        }
        // Before Linux 5.11: an epoll instance can itself be polled, with a timeout in ns.
        let mut fd = libc::pollfd { fd: epoll, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid entry and a valid timeout, then room for `room` events.
        let found = unsafe {
            if libc::ppoll(&mut fd, 1, timeout, std::ptr::null()) <= 0 {
                return None;
            }
            libc::epoll_wait(epoll, events.as_mut_ptr(), room, 0)
        };
        (found > 0).then(|| has_commands(&events[..found as usize]))
    }
}

/// The number that distinguishes the commands' descriptor from a port's.
const COMMANDS: u64 = u64::MAX;

fn has_commands(events: &[libc::epoll_event]) -> bool {
    events.iter().any(|event| event.u64 == COMMANDS)
}

#[cfg(test)]
mod tests {
    use nix::sys::eventfd::EventFd;

    use super::*;

    const IMPATIENT: [i64; MAX_PORTS] = [0; MAX_PORTS];
    const PATIENT: [i64; MAX_PORTS] = [i64::MAX; MAX_PORTS];
    /// Longer than the busiest machine keeps a thread waiting, and no wait here lasts to its end.
    const SOON_NS: i64 = 60_000_000_000;
    const FAR_NS: i64 = 2 * SOON_NS;

    /// Returns a waiter for one port and commands, and the descriptors that make those readable.
    fn waiter(may_spin: bool) -> (Waiter, EventFd, EventFd) {
        let flags = nix::sys::eventfd::EfdFlags::EFD_NONBLOCK;
        let [port, commands] = [0, 0].map(|_| EventFd::from_value_and_flags(0, flags).unwrap());
        let waiter = Waiter::new([port.as_raw_fd()].into_iter(), commands.as_raw_fd(), may_spin).unwrap();
        (waiter, port, commands)
    }

    /// Returns how long it waited at `rate` for a time `ahead` ns from now.
    fn waited(waiter: &mut Waiter, rate: u64, ahead: i64, patience: [i64; MAX_PORTS]) -> i64 {
        waiter.pace.rate = rate;
        let start = monotonic_ns();
        waiter.wait(Some(start + ahead), || patience, || false);
        monotonic_ns() - start
    }

    #[test]
    fn nothing_leaves_early_at_any_rate() {
        for may_spin in [true, false] {
            let (mut waiter, _port, _commands) = waiter(may_spin);
            for has_pwait2 in [true, false] {
                waiter.has_pwait2 = has_pwait2;
                for rate in [0, SPIN_BELOW_RATE, HOLD_FROM_RATE] {
                    for ahead in [10_000, 300_000, 900_000] {
                        let took = waited(&mut waiter, rate, ahead, PATIENT);
                        assert!(took >= ahead, "{took} ns for {ahead} ns at {rate}/s");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_due_at_a_very_high_rate_waits_for_the_next() {
        let (mut waiter, _port, _commands) = waiter(true);
        assert!(waited(&mut waiter, HOLD_FROM_RATE, 1_000, PATIENT) >= HOLD_NS);
        // A port with packets that cannot wait is polled after the same time.
        let took = waited(&mut waiter, HOLD_FROM_RATE, FAR_NS, IMPATIENT);
        assert!((HOLD_NS..SOON_NS).contains(&took), "{took}");
    }

    #[test]
    fn a_port_wakes_unless_its_packets_can_wait() {
        let (mut waiter, port, _commands) = waiter(false);
        port.write(1).unwrap();
        for has_pwait2 in [true, false] {
            waiter.has_pwait2 = has_pwait2;
            let took = waited(&mut waiter, SPIN_BELOW_RATE, FAR_NS, IMPATIENT);
            assert!(took < SOON_NS, "{took}");
            let took = waited(&mut waiter, SPIN_BELOW_RATE, FAR_NS, PATIENT);
            assert!((LOOK_NS..SOON_NS).contains(&took), "{took}");
        }
    }

    #[test]
    fn commands_are_heard_asleep_and_by_a_loop_that_never_sleeps() {
        let (mut waiter, _port, commands) = waiter(true);
        commands.write(1).unwrap();
        for has_pwait2 in [true, false] {
            waiter.has_pwait2 = has_pwait2;
            assert!(waiter.wait(None, || IMPATIENT, || false));
        }
        let (mut heard, mut asked) = (0, 0);
        let start = monotonic_ns();
        while heard < 5 && monotonic_ns() - start < SOON_NS {
            heard += i64::from(waiter.wait(Some(0), || IMPATIENT, || false));
            asked += 1;
        }
        // Once in a while, not every time.
        let took = monotonic_ns() - start;
        assert!(heard == 5 && asked > 5 && took >= 4 * LOOK_NS, "{heard} of {asked} in {took} ns");
    }

    #[test]
    fn a_stall_while_spinning_is_counted() {
        let (mut waiter, _port, _commands) = waiter(true);
        let slept = std::cell::Cell::new(false);
        waiter.spin(monotonic_ns() + FAR_NS, || {
            let has_slept = slept.replace(true);
            if !has_slept {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            has_slept
        });
        assert!(waiter.stalls.count >= 1 && waiter.stalls.max_ns >= 1_000_000, "{:?}", waiter.stalls);
        assert!(waiter.stalls.watched_ns >= waiter.stalls.total_ns);
    }
}
