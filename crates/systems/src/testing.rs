//! Two machines joined by a simple pipe, for tests of the machines alone.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, Duration, Event, Instant};

use crate::app::{App, ChannelId, CloseReason, Input, Io};

/// What lies between the two.
#[derive(Clone)]
pub struct Pipe {
    /// One-way delay of a datagram.
    pub delay: Duration,
    /// Which of the server's datagrams, counted from 0, are lost.
    pub drop: fn(u64) -> bool,
    /// The player's host answers every datagram with itself.
    pub echo: bool,
    /// There is a stream, and it moves so much from server to player.
    pub stream_bytes_per_s: Option<u64>,
    /// The stream moves nothing between these times.
    pub outage: (Duration, Duration),
}

impl Default for Pipe {
    fn default() -> Self {
        let never = (Duration::ZERO, Duration::ZERO);
        Pipe {
            delay: Duration::from_millis(10),
            drop: |_| false,
            echo: false,
            stream_bytes_per_s: None,
            outage: never,
        }
    }
}

/// A datagram on its way.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Instant,
    pub channel: ChannelId,
    pub datagram: Chunk,
}

const SEND_BUFFER: usize = 64 * 1024;
const STEP: Duration = Duration::from_millis(1);

/// One end of the stream, as its machine sees it.
#[derive(Default)]
struct Half {
    outgoing: VecDeque<Chunk>,
    incoming: VecDeque<Chunk>,
    short_write: bool,
    closing: bool,
    closed: bool,
    aborted: bool,
    read: u64,
}

impl Half {
    fn buffered(&self) -> usize {
        self.outgoing.iter().map(Chunk::len).sum()
    }
}

struct PipeIo<'a> {
    now: Instant,
    sent: &'a mut Vec<Sent>,
    half: &'a mut Half,
}

impl Io for PipeIo<'_> {
    fn send(&mut self, channel: ChannelId, datagram: Chunk) {
        self.sent.push(Sent { at: self.now, channel, datagram });
    }

    fn write(&mut self, _: ChannelId, mut chunk: Chunk) -> usize {
        assert!(!self.half.closing, "written after close");
        let taken = chunk.len().min(SEND_BUFFER - self.half.buffered());
        self.half.short_write = taken < chunk.len();
        let _ = chunk.split_off(taken);
        if taken > 0 {
            self.half.outgoing.push_back(chunk);
        }
        taken
    }

    fn read(&mut self, _: ChannelId, max: usize) -> Option<Chunk> {
        let mut chunk = self.half.incoming.pop_front()?;
        let rest = chunk.split_off(max);
        if !rest.is_empty() {
            self.half.incoming.push_front(rest);
        }
        self.half.read += chunk.len() as u64;
        Some(chunk)
    }

    fn close(&mut self, _: ChannelId) {
        self.half.closing = true;
    }

    fn abort(&mut self, _: ChannelId) {
        self.half.aborted = true;
    }

    fn bind_pair(&mut self, rtp: ChannelId) -> Option<u16> {
        // As a trial's flow has them: the first pair at 6970.
        Some(6969 + u16::from(rtp.0))
    }

    fn direct(&mut self, _: ChannelId, _: u16) {}
}

/// Runs a server and a player against each other.
pub struct Pair {
    server: Box<dyn App + Send>,
    player: Box<dyn App + Send>,
    pipe: Pipe,
    halves: [Half; 2],
    actions: VecDeque<(Instant, Input<'static>)>,
    /// Every datagram that the server sent.
    pub sent: Vec<Sent>,
    /// Every datagram that the player sent.
    pub sent_by_player: Vec<Sent>,
    taken: [usize; 2],
    /// What both said, in the order said.
    pub events: Vec<Event>,
    now: Instant,
}

impl Pair {
    pub fn new(server: Box<dyn App + Send>, player: Box<dyn App + Send>, pipe: Pipe) -> Self {
        Pair {
            server,
            player,
            pipe,
            halves: Default::default(),
            actions: VecDeque::new(),
            sent: Vec::new(),
            sent_by_player: Vec::new(),
            taken: [0, 0],
            events: Vec::new(),
            now: Instant::ZERO,
        }
    }

    /// Does `input` to both machines at a time; call in order of time.
    pub fn at(&mut self, time: Duration, input: Input<'static>) {
        self.actions.push_back((Instant::ZERO + time, input));
    }

    pub fn stream_bytes_read(&self) -> u64 {
        self.halves[1].read
    }

    fn input(&mut self, end: usize, input: Input<'_>) {
        let sent = if end == 0 { &mut self.sent } else { &mut self.sent_by_player };
        let app = if end == 0 { &mut self.server } else { &mut self.player };
        app.handle(self.now, input, &mut PipeIo { now: self.now, sent, half: &mut self.halves[end] });
        while let Some(event) = app.poll_event() {
            self.events.push(event);
        }
    }

    fn stream_step(&mut self) {
        const STREAM: ChannelId = ChannelId(0);
        let rate = self.pipe.stream_bytes_per_s.expect("only called where there is a stream");
        let (from, to) = self.pipe.outage;
        let out = Instant::ZERO + from <= self.now && self.now < Instant::ZERO + to;
        if self.halves.iter().any(|half| half.aborted) {
            for end in 0..2 {
                let half = &mut self.halves[end];
                let told = !half.aborted && !half.closed;
                *half = Half { closing: true, closed: true, read: half.read, ..Half::default() };
                if told {
                    self.input(end, Input::Closed(STREAM, CloseReason::Failed));
                }
            }
        }
        let step_bytes = (rate * STEP.as_nanos() / 1_000_000_000) as usize;
        for end in 0..2 {
            let mut budget = if out { 0 } else { step_bytes };
            let mut moved = false;
            while budget > 0 {
                let Some(mut chunk) = self.halves[end].outgoing.pop_front() else { break };
                let rest = chunk.split_off(budget);
                budget -= chunk.len();
                if !rest.is_empty() {
                    self.halves[end].outgoing.push_front(rest);
                }
                self.halves[1 - end].incoming.push_back(chunk);
                moved = true;
            }
            if moved {
                self.input(1 - end, Input::Readable(STREAM));
            }
            let half = &mut self.halves[end];
            if half.short_write && half.buffered() < SEND_BUFFER {
                half.short_write = false;
                self.input(end, Input::Writable(STREAM));
            }
            let half = &mut self.halves[end];
            if half.closing && half.outgoing.is_empty() && !half.closed {
                half.closed = true;
                self.input(1 - end, Input::Closed(STREAM, CloseReason::Finished));
            }
        }
    }

    /// From the start until `end`.
    pub fn run(&mut self, end: Instant) {
        self.input(0, Input::Start);
        self.input(1, Input::Start);
        let mut step = Instant::FAR_FUTURE;
        if self.pipe.stream_bytes_per_s.is_some() {
            self.input(0, Input::Opened(ChannelId(0)));
            self.input(1, Input::Opened(ChannelId(0)));
            step = Instant::ZERO + STEP;
        }
        loop {
            while self.sent.get(self.taken[0]).is_some() && (self.pipe.drop)(self.taken[0] as u64) {
                self.taken[0] += 1;
            }
            let down = self.sent.get(self.taken[0]).map(|s| s.at + self.pipe.delay);
            let up = self.sent_by_player.get(self.taken[1]).map(|s| s.at + self.pipe.delay);
            let action = self.actions.front().map(|a| a.0);
            let timers =
                [self.server.poll_timeout(), self.player.poll_timeout()].map(|t| t.map(|t| t.max(self.now)));
            let candidates = [down, up, action, timers[0], timers[1], Some(step)];
            let (which, at) = candidates
                .into_iter()
                .enumerate()
                .filter_map(|(i, at)| Some((i, at?)))
                .min_by_key(|(_, at)| *at)
                .expect("the stream's step is always there");
            if at > end {
                return;
            }
            assert!(at >= self.now);
            self.now = at;
            match which {
                0 => {
                    let sent = self.sent[self.taken[0]].clone();
                    self.taken[0] += 1;
                    if self.pipe.echo {
                        self.sent_by_player.push(Sent { at, ..sent });
                    } else {
                        self.input(1, Input::Datagram(sent.channel, &sent.datagram));
                    }
                }
                1 => {
                    let sent = self.sent_by_player[self.taken[1]].clone();
                    self.taken[1] += 1;
                    self.input(0, Input::Datagram(sent.channel, &sent.datagram));
                }
                2 => {
                    let (_, input) = self.actions.pop_front().expect("its time was just looked at");
                    self.input(0, input);
                    self.input(1, input);
                }
                3 => self.input(0, Input::Timeout),
                4 => self.input(1, Input::Timeout),
                _ => {
                    step = at + STEP;
                    self.stream_step();
                }
            }
        }
    }
}
