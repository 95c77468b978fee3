//! The end that asks.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, Duration, Event, Instant};

use super::ECHO;
use crate::app::{App, Input, Io};
use crate::outbox::Outbox;
use crate::ping::PingSpec;

/// A request unanswered for this long is called lost; a later reply is an `rtt` all the same.
pub const LOST_AFTER: Duration = Duration::from_secs(10);

/// Requests are remembered for this long after they were sent.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

struct Request {
    sent: Instant,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Waiting,
    Answered,
    Lost,
}

/// Sends a request at each interval. Events: `rtt` (s) for each reply, `probe_lost` (value: the request's
/// number, counting from 0) for each request given up.
pub struct PingServer {
    interval: Duration,
    payload_bytes: u32,

    requests: VecDeque<Request>,
    /// The number of the oldest request remembered.
    oldest: u64,
    /// The number of the oldest request that may still be waiting.
    waiting: u64,
    next: Option<Instant>,
    paused: bool,
    events: Outbox,
}

impl PingServer {
    /// Returns the server of `spec` as checked by [`crate::machines`].
    pub fn new(spec: &PingSpec) -> Self {
        PingServer {
            interval: spec.interval,
            payload_bytes: spec.payload_bytes,

            requests: VecDeque::new(),
            oldest: 0,
            waiting: 0,
            next: None,
            paused: false,
            events: Outbox::default(),
        }
    }

    fn request(&mut self, number: u64) -> Option<&mut Request> {
        self.requests.get_mut(number.checked_sub(self.oldest)? as usize)
    }

    fn send(&mut self, now: Instant, io: &mut dyn Io) {
        let number = self.oldest + self.requests.len() as u64;
        io.send(ECHO, Chunk::with_filler((number as u16).to_be_bytes(), self.payload_bytes));
        self.requests.push_back(Request { sent: now, state: State::Waiting });
    }

    fn give_up(&mut self, now: Instant) {
        while let Some(deadline) = self.deadline().filter(|deadline| *deadline <= now) {
            let number = self.waiting;
            self.waiting += 1;
            let request = self.request(number).expect("deadline() looked at it");
            if request.state == State::Waiting {
                request.state = State::Lost;
                let reason = "no reply within 10 s";
                self.events.say(deadline, "probe_lost", number as f64, "1", reason);
            }
        }
        while self.requests.front().is_some_and(|r| r.sent + FORGOTTEN_AFTER <= now) {
            self.requests.pop_front();
            self.oldest += 1;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let request = self.requests.get(self.waiting.checked_sub(self.oldest)? as usize)?;
        Some(request.sent + LOST_AFTER)
    }

    fn reply(&mut self, now: Instant, datagram: &Chunk) {
        let Some(&[high, low]) = datagram.head().first_chunk() else { return };
        let seq = u16::from_be_bytes([high, low]);
        // 60 s of requests at 1 ms are fewer than 2^16: the low 16 bits distinguish them.
        let number = self.oldest + u64::from(seq.wrapping_sub(self.oldest as u16));
        let Some(request) = self.request(number) else { return };
        if request.state != State::Answered {
            request.state = State::Answered;
            let rtt = now.saturating_since(request.sent).as_secs_f64();
            self.events.say(now, "rtt", rtt, "s", "");
        }
    }
}

impl App for PingServer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => {
                self.next = Some(now);
            }
            Input::Datagram { on: ECHO, bytes: datagram, .. } => self.reply(now, datagram),
            Input::Pause => self.paused = true,
            Input::Resume => self.paused = false,
            Input::Stop => self.next = None,
            _ => {}
        }
        if matches!(input, Input::Start | Input::Timeout) {
            while let Some(next) = self.next.filter(|next| *next <= now) {
                if !self.paused {
                    self.send(now, io);
                }
                self.next = Some(next + self.interval);
            }
            self.give_up(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match (self.next, self.deadline()) {
            (Some(next), Some(deadline)) => Some(next.min(deadline)),
            (next, deadline) => next.or(deadline),
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}
