//! A link and a sender that obeys a controller to the letter, for tests: a packet of 1200 B each time that the target has one,
//! reports each 50 ms, 20 ms each way, a queue of 300 ms.

use std::collections::VecDeque;

use streamgauge_base::{BitRate, Duration, Ecn, Instant};

use super::{PacketResult, RateController, RateStart, rate_control};

const BYTES: u32 = 1200;
const WAY_NS: u64 = 20_000_000;
const QUEUE_NS: u64 = 300_000_000;
const REPORT_NS: u64 = 50_000_000;

#[derive(Debug)]
pub(super) struct Bed {
    pub controller: Box<dyn RateController>,
    capacity: u64,
    marks_ns: u64,
    now: u64,
    /// Time when the link is free.
    free: u64,
    next_send: u64,
    next_report: u64,
    probing: Option<(u64, u32, u64, u32)>,
    probes: u32,
    number: u64,
    /// Not yet reported: when its report can leave, and the result.
    waiting: VecDeque<(u64, PacketResult)>,
    flying: u64,
    /// When sent, and how long it waited, ns.
    delays: Vec<(u64, u64)>,
    arrived: Vec<u64>,
    targets: Vec<(u64, u64)>,
    pub lost: u64,
    /// No feedback arrives.
    pub is_silent: bool,
}

impl Bed {
    pub fn new(name: &str, capacity: u64) -> Self {
        let bps = BitRate::from_bps;
        let start = RateStart { start: bps(300_000), least: bps(30_000), most: bps(2_000_000), seed: 1 };
        Bed {
            controller: rate_control(name).unwrap().make(&start),
            capacity,
            marks_ns: u64::MAX,
            now: 0,
            free: 0,
            next_send: 0,
            next_report: REPORT_NS,
            probing: None,
            probes: 0,
            number: 0,
            waiting: VecDeque::new(),
            flying: 0,
            delays: Vec::new(),
            arrived: Vec::new(),
            targets: Vec::new(),
            lost: 0,
            is_silent: false,
        }
    }

    pub fn marks_beyond_ms(mut self, ms: f64) -> Self {
        self.marks_ns = (ms * 1e6) as u64;
        self
    }

    pub fn capacity(&mut self, bps: u64) {
        self.capacity = bps;
    }

    /// Runs for `seconds` more.
    pub fn run(&mut self, seconds: u64) {
        let end = self.now + seconds * 1_000_000_000;
        while self.now < end {
            let timer = self.controller.poll_timeout().map_or(u64::MAX, Instant::as_nanos);
            self.now = self.next_send.min(self.next_report).min(timer.max(self.now));
            let now = Instant::from_nanos(self.now);
            if timer <= self.now {
                self.controller.on_timeout(now);
            }
            if self.now >= self.next_report {
                self.report();
            }
            if self.now >= self.next_send {
                self.send();
            }
            self.targets.push((self.now, self.controller.target().as_bps()));
        }
    }

    fn report(&mut self) {
        self.next_report += REPORT_NS;
        let arrives = self.now;
        let mut due = Vec::new();
        while let Some(&(_, result)) = self.waiting.front().filter(|(at, _)| *at + WAY_NS <= arrives) {
            due.push(result);
            self.waiting.pop_front();
        }
        self.flying -= due.len() as u64 * u64::from(BYTES);
        if !due.is_empty() && !self.is_silent {
            self.controller.on_feedback(Instant::from_nanos(self.now), &due);
        }
    }

    fn send(&mut self) {
        let now = Instant::from_nanos(self.now);
        if self.probing.is_none()
            && let Some(probe) = self.controller.probe(now)
        {
            let until = self.now + probe.lasts.as_nanos();
            self.probing = Some((probe.rate.as_bps(), probe.packets, until, self.probes));
            self.probes += 1;
        }
        let may = self.controller.window().is_none_or(|window| self.flying + u64::from(BYTES) <= window);
        if !may {
            self.next_send = self.now + 1_000_000;
            return;
        }
        let (rate, probe) = match &mut self.probing {
            Some((rate, packets, until, number)) => {
                let found = (*rate, Some(*number));
                *packets = packets.saturating_sub(1);
                if *packets == 0 && self.now >= *until {
                    self.probing = None;
                }
                found
            }
            None => (self.controller.target().as_bps(), None),
        };
        let gap = BitRate::from_bps(rate).transmission_time(BYTES.into()).as_nanos();
        self.next_send = self.now + gap;
        self.cross(probe);
    }

    fn cross(&mut self, probe: Option<u32>) {
        let sent = Instant::from_nanos(self.now);
        let waits = self.free.saturating_sub(self.now);
        let is_lost = waits > QUEUE_NS;
        self.controller.on_sent(sent, self.number, BYTES);
        self.flying += u64::from(BYTES);
        let ecn = if waits > self.marks_ns { Ecn::Ce } else { self.controller.ecn() };
        if !is_lost {
            let service = BitRate::from_bps(self.capacity).transmission_time(BYTES.into()).as_nanos();
            self.free = self.now.max(self.free) + service;
            self.arrived.push(self.free);
            self.delays.push((self.now, waits));
        }
        self.lost += u64::from(is_lost);
        let arrives = self.free + WAY_NS;
        let arrived = (!is_lost).then(|| Instant::ZERO + Duration::from_nanos(arrives));
        let result = PacketResult { number: self.number, bytes: BYTES, sent, arrived, ecn, probe };
        self.waiting.push_back((arrives, result));
        self.number += 1;
    }

    /// Returns the share of the link that was used between two seconds.
    pub fn used(&self, from: u64, to: u64) -> f64 {
        let inside = |at: &&u64| (from * 1_000_000_000..to * 1_000_000_000).contains(*at);
        let bits = self.arrived.iter().filter(inside).count() as f64 * f64::from(BYTES) * 8.0;
        bits / (self.capacity as f64 * (to - from) as f64)
    }

    fn queue_ms(&self, from: u64, to: u64, share: f64) -> f64 {
        let inside = |at: u64| (from * 1_000_000_000..to * 1_000_000_000).contains(&at);
        let mut waits: Vec<u64> = self.delays.iter().filter(|one| inside(one.0)).map(|one| one.1).collect();
        waits.sort_unstable();
        waits[(share * (waits.len() - 1) as f64) as usize] as f64 / 1e6
    }

    pub fn queue_p50_ms(&self, from: u64, to: u64) -> f64 {
        self.queue_ms(from, to, 0.5)
    }

    pub fn queue_p95_ms(&self, from: u64, to: u64) -> f64 {
        self.queue_ms(from, to, 0.95)
    }

    /// Returns when the target first was that high, s.
    pub fn reaches(&self, bps: u64) -> Option<f64> {
        self.targets.iter().find(|(_, target)| *target >= bps).map(|(at, _)| *at as f64 / 1e9)
    }
}
