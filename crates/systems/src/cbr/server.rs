//! The end that sends.

use streamgauge_base::{Chunk, Duration, Event, Instant};

use super::DATA;
use crate::app::{App, Input, Io};
use crate::cbr::CbrSpec;

/// Sends `burst` packets at each tick of a clock that keeps its remainder, so that the long-run rate is exact.
pub struct CbrServer {
    payload_bytes: u32,
    burst: u32,
    /// Packets per 10^9 seconds.
    rate: u128,
    windows: Vec<(Instant, Instant)>,
    /// The window in force or next to come.
    window: usize,
    /// The next tick, counted from the window's start.
    tick: u64,
    next: Option<Instant>,
    paused: bool,
}

impl CbrServer {
    /// Returns the server of `spec` as checked by [`crate::machines`].
    pub fn new(spec: &CbrSpec) -> Self {
        let at = |d: Duration| Instant::ZERO + d;
        CbrServer {
            payload_bytes: spec.payload_bytes,
            burst: spec.burst,
            rate: (spec.packets_per_s * 1e9 + 0.5) as u128,
            windows: spec.windows.iter().map(|&(on, off)| (at(on), at(off))).collect(),
            window: 0,
            tick: 0,
            next: None,
            paused: false,
        }
    }

    fn start(&mut self, now: Instant) {
        if self.windows.is_empty() {
            self.windows.push((now, Instant::FAR_FUTURE));
        }
        // A flow that starts within a window sends from its start on.
        for window in &mut self.windows {
            window.0 = window.0.max(now);
        }
        self.windows.retain(|w| w.0 < w.1);
        self.schedule();
    }

    fn schedule(&mut self) {
        self.next = None;
        while let Some(&(on, off)) = self.windows.get(self.window) {
            let elapsed =
                u128::from(self.tick) * u128::from(self.burst) * 1_000_000_000_000_000_000 / self.rate;
            let at = on + Duration::from_nanos(u64::try_from(elapsed).unwrap_or(u64::MAX));
            if at < off {
                self.next = Some(at);
                return;
            }
            self.window += 1;
            self.tick = 0;
        }
    }
}

impl App for CbrServer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => self.start(now),
            Input::Timeout => {
                while self.next.is_some_and(|next| next <= now) {
                    if !self.paused {
                        for _ in 0..self.burst {
                            io.send(DATA, Chunk::filler(self.payload_bytes));
                        }
                    }
                    self.tick += 1;
                    self.schedule();
                }
            }
            Input::Pause => self.paused = true,
            Input::Resume => self.paused = false,
            Input::Stop => {
                self.windows.clear();
                self.next = None;
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
