//! Drives machines on real sockets, for a trial's node, a server and a player alike: one thread, one epoll, a
//! timer, signals.

mod channels;

pub use channels::{Arrival, Channels, Ends, Room, SharedPorts};

use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signalfd::SignalFd;
use streamgauge_systems::ChannelId;

use crate::error::{EngineError, Result};
use crate::net::wake::{Alarm, stop_signals};

/// Events taken from the kernel at a time.
const EVENTS: usize = 256;

/// The place in a token of descriptors that are no machine's.
const NOBODY: u32 = u32::MAX;
/// Among those, the timer and the signals; the caller's own descriptors count from 0.
const ALARM: u32 = u32::MAX;
const SIGNALS: u32 = u32::MAX - 1;

/// Events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ready {
    /// SIGINT, SIGTERM or SIGHUP has come.
    Signal,
    /// A descriptor of the caller's own has something.
    Own(u32),
    /// A channel of the machine at `place` has something.
    Channel {
        /// The machine's place.
        place: u32,
        /// Which of its channels.
        channel: ChannelId,
    },
}

/// The loop's waiting.
pub struct Reactor {
    epoll: Epoll,
    alarm: Alarm,
    signals: Option<SignalFd>,
    found: Box<[EpollEvent]>,
}

impl Reactor {
    /// Returns a reactor with nothing to wait for.
    pub fn new() -> Result<Reactor> {
        let failed = |e: nix::Error| EngineError::io("make an epoll and its timer", &e.into());
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
        let alarm = Alarm::new().map_err(failed)?;
        let reactor =
            Reactor { epoll, alarm, signals: None, found: vec![EpollEvent::empty(); EVENTS].into() };
        reactor.add(reactor.alarm.as_fd(), ALARM)?;
        Ok(reactor)
    }

    /// Takes the signals that end a program from here on.
    pub fn heed_signals(&mut self) -> Result<&SignalFd> {
        let signals = stop_signals().map_err(|e| EngineError::io("wait for signals", &e.into()))?;
        self.add(signals.as_fd(), SIGNALS)?;
        Ok(self.signals.insert(signals))
    }

    /// Waits for a descriptor of the caller's own, identified by `number`.
    pub fn watch(&self, fd: BorrowedFd<'_>, number: u32) -> Result<()> {
        self.add(fd, number)
    }

    /// Waits for it no longer.
    pub fn forget(&self, fd: BorrowedFd<'_>) {
        let _ = self.epoll.delete(fd);
    }

    fn add(&self, fd: BorrowedFd<'_>, number: u32) -> Result<()> {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, token(NOBODY, number));
        self.epoll.add(fd, event).map_err(|e| EngineError::io("watch a descriptor", &e.into()))
    }

    /// Waits for events, or until CLOCK_MONOTONIC reads `until` ns, and returns the events in `ready`. A
    /// signal is reported once.
    pub fn wait(&mut self, until: Option<i64>, ready: &mut Vec<Ready>) -> Result<()> {
        ready.clear();
        // Never is not a time that the kernel could wait for.
        let timeout = match until.filter(|&at| at < i64::MAX / 2) {
            // A time in the past needs no timer.
            Some(at) if at <= crate::sys::monotonic_ns() => EpollTimeout::ZERO,
            until => {
                self.alarm.set(until);
                EpollTimeout::NONE
            }
        };
        let count = match self.epoll.wait(&mut self.found, timeout) {
            Ok(count) => count,
            Err(nix::Error::EINTR) => 0,
            Err(e) => return Err(EngineError::io("wait for sockets", &e.into())),
        };
        for event in &self.found[..count] {
            let (place, number) = ((event.data() >> 32) as u32, event.data() as u32);
            match (place, number) {
                (NOBODY, ALARM) => self.alarm.rang(),
                (NOBODY, SIGNALS) => {
                    if let Some(signals) = &self.signals {
                        let _ = signals.read_signal();
                    }
                    ready.push(Ready::Signal);
                }
                (NOBODY, own) => ready.push(Ready::Own(own)),
                (place, channel) => ready.push(Ready::Channel { place, channel: ChannelId(channel) }),
            }
        }
        Ok(())
    }
}

fn token(place: u32, number: u32) -> u64 {
    u64::from(place) << 32 | u64::from(number)
}
