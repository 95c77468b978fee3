//! Two ends of a call, joined by a drop-tail link.

use std::collections::VecDeque;

use streamgauge_base::{BitRate, Chunk, Duration, Ecn, Instant};
use streamgauge_hosted::datagram::Arrival;
use streamgauge_hosted::webrtc::{Call, CallEnd, CallPeer, FrameHead, Gathered, Told};

const FRAME_EVERY: Duration = Duration::from_nanos(33_333_333);
const DELAY: Duration = Duration::from_millis(20);
const QUEUE: Duration = Duration::from_millis(300);
const SHARE: f64 = 0.75;

/// The course of a call.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Course {
    /// When the sender's datagrams left, and their bytes.
    pub sent: Vec<(Instant, Chunk)>,
    pub dropped: u64,
    pub estimates: Vec<(Instant, BitRate)>,
    pub frames: Vec<(Instant, Gathered)>,
    pub requests: u64,
    pub keys_asked: u64,
    pub trips: Vec<Duration>,
    pub closed: u64,
    pub failed: Vec<String>,
}

/// The conditions of a call.
#[derive(Clone)]
pub struct Conditions {
    pub call: Call,
    pub turns: u32,
    pub lasts: Duration,
    /// Bit/s by time.
    pub rate: fn(Instant) -> u64,
    /// Which of the sender's datagrams are lost.
    pub drop: fn(usize) -> bool,
    /// Further datagrams for both ends, at each frame.
    pub noise: &'static [&'static [u8]],
    /// When the sender closes the call.
    pub close: Option<Instant>,
}

impl Conditions {
    pub fn usual(seed: u64, lasts: Duration) -> Self {
        let rate = BitRate::from_bps;
        Conditions {
            call: Call {
                seed,
                phase: Duration::ZERO,
                start: rate(300_000),
                desired: rate(2_000_000),
                datagram_bytes: 1150,
            },
            turns: 0,
            lasts,
            rate: |_| 10_000_000,
            drop: |_| false,
            noise: &[],
            close: None,
        }
    }

    pub fn run(&self) -> Course {
        Pair::new(self).run()
    }
}

struct Pair<'a> {
    conditions: &'a Conditions,
    ends: [CallPeer; 2],
    /// To the receiver, and to the sender.
    on_their_way: [VecDeque<(Instant, Chunk)>; 2],
    /// When the link is free.
    free: Instant,
    /// When the next frame is due, once connected.
    next_frame: Option<Instant>,
    frames: u32,
    asked: bool,
    estimate: BitRate,
    course: Course,
}

impl<'a> Pair<'a> {
    fn new(conditions: &'a Conditions) -> Self {
        let end = |end| CallPeer::in_epoch(end, &conditions.call, Instant::ZERO, conditions.turns).unwrap();
        Pair {
            conditions,
            ends: [end(CallEnd::Sender), end(CallEnd::Receiver)],
            on_their_way: Default::default(),
            free: Instant::ZERO,
            next_frame: None,
            frames: 0,
            asked: true,
            estimate: conditions.call.start,
            course: Course::default(),
        }
    }

    fn run(mut self) -> Course {
        let mut now = Instant::ZERO;
        loop {
            self.act(now);
            let ways = self.on_their_way.iter().filter_map(|way| way.front().map(|(at, _)| *at));
            let timers = self.ends.iter().filter_map(CallPeer::poll_timeout);
            let next = ways.chain(timers).chain(self.next_frame).min().filter(|at| *at >= now);
            match next {
                Some(at) if at <= Instant::ZERO + self.conditions.lasts => now = at,
                _ => return self.course,
            }
        }
    }

    fn act(&mut self, now: Instant) {
        for end in [0, 1] {
            // Those on their way to the receiver, which is end 1, are in place 0.
            let way = 1 - end;
            while self.on_their_way[way].front().is_some_and(|(at, _)| *at <= now) {
                let Some((at, bytes)) = self.on_their_way[way].pop_front() else { break };
                self.ends[end].datagram(Arrival { bytes: &bytes, ecn: Ecn::NotEct, at });
            }
            if self.ends[end].poll_timeout().is_some_and(|at| at <= now) {
                self.ends[end].timeout(now);
            }
        }
        self.listen(now);
        if self.conditions.close == Some(now)
            || self.conditions.close.is_some_and(|at| at <= now && self.next_frame.take().is_some())
        {
            self.ends[0].close();
        }
        if let Some(due) = self.next_frame.filter(|due| *due <= now) {
            self.next_frame = Some(due + FRAME_EVERY);
            let head =
                FrameHead { number: self.frames, is_key: std::mem::take(&mut self.asked), captured: due };
            self.frames += 1;
            let bytes = SHARE * self.estimate.as_bps().min(1_500_000) as f64 / 30.0 / 8.0;
            self.ends[0].frame(now, head, bytes as u32);
            for noise in self.conditions.noise {
                let bytes = Chunk::bytes(*noise);
                for end in &mut self.ends {
                    end.datagram(Arrival { bytes: &bytes, ecn: Ecn::Ce, at: now });
                }
            }
        }
        self.listen(now);
    }

    fn listen(&mut self, now: Instant) {
        for end in [0, 1] {
            while let Some(told) = self.ends[end].poll() {
                self.told(now, end, told);
            }
        }
    }

    fn told(&mut self, now: Instant, end: usize, told: Told) {
        match told {
            Told::Send(sent) if end == 0 => self.send(now, sent.bytes),
            Told::Send(sent) => self.on_their_way[1].push_back((now + DELAY, sent.bytes)),
            Told::Connected if end == 0 => self.next_frame = Some(now),
            Told::Connected => {}
            Told::Estimate(rate) => {
                self.estimate = rate;
                self.course.estimates.push((now, rate));
            }
            Told::KeyAsked => (self.asked, self.course.keys_asked) = (true, self.course.keys_asked + 1),
            Told::RoundTrip(trip) => self.course.trips.push(trip),
            Told::Requests(more) => self.course.requests += more,
            Told::Frame(frame) => {
                self.course.frames.push((now, frame));
                if !frame.is_contiguous && !frame.head.is_key {
                    self.ends[1].ask_for_key(now);
                }
            }
            Told::Closed => self.course.closed += 1,
            Told::Failed(what) => self.course.failed.push(what),
        }
    }

    fn send(&mut self, now: Instant, bytes: Chunk) {
        let number = self.course.sent.len();
        let takes =
            Duration::from_nanos((bytes.len() as u64 + 42) * 8_000_000_000 / (self.conditions.rate)(now));
        self.course.sent.push((now, bytes.clone()));
        if (self.conditions.drop)(number) || self.free.saturating_since(now) > QUEUE {
            self.course.dropped += 1;
            return;
        }
        self.free = self.free.max(now) + takes;
        self.on_their_way[0].push_back((self.free + DELAY, bytes));
    }
}
