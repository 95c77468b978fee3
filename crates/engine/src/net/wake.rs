//! Wake-ups of a loop besides its sockets: a timer, and the signals that end it.

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// A timer, as a descriptor that becomes readable.
pub struct Alarm {
    timer: TimerFd,
    at: Option<i64>,
}

impl Alarm {
    /// Returns an alarm that is not set.
    pub fn new() -> nix::Result<Alarm> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        Ok(Alarm { timer: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?, at: None })
    }

    /// Rings at `at`, CLOCK_MONOTONIC in ns, or never.
    pub fn set(&mut self, at: Option<i64>) {
        if at == self.at {
            return;
        }
        let done = match at {
            None => self.timer.unset(),
            Some(at) => {
                // Zero would unset it.
                let at = at.max(1);
                let at = TimeSpec::new(at / 1_000_000_000, at % 1_000_000_000);
                self.timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)
            }
        };
        self.at = done.ok().and(at);
    }

    /// Notes that it has rung.
    pub fn rang(&mut self) {
        let _ = self.timer.wait();
        self.at = None;
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

/// Returns SIGINT, SIGTERM and SIGHUP as a descriptor. Threads made later must not take them.
pub fn stop_signals() -> nix::Result<SignalFd> {
    let mut set = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        set.add(signal);
    }
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}
