//! Two connections joined by a scripted link, run from wake-up to wake-up.

#![allow(dead_code)]

pub mod script;

use std::collections::{BTreeMap, VecDeque};

use streamgauge_base::{Chunk, Duration, Ecn, Instant};
use streamgauge_transport::tcp::{Config, CongestionControl, Connection, ConnectionEvent, Segment, flags};

pub const MSS: u32 = 1448;

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

/// The sender of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Client = 0,
    Server = 1,
}

use Side::{Client, Server};

impl Side {
    pub fn peer(self) -> Side {
        match self {
            Client => Server,
            Server => Client,
        }
    }
}

/// The link's treatment of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Deliver,
    Drop,
    /// Delivered later than usual, past others.
    Late(Duration),
    /// Delivered twice, the copy later.
    Twice(Duration),
    /// Delivered with congestion experienced.
    Mark,
}

/// A segment as the link saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Instant,
    pub from: Side,
    pub segment: Segment,
    pub dropped: bool,
}

impl Seen {
    pub fn len(&self) -> u32 {
        self.segment.payload.len() as u32
    }
}

/// One end with the application on it.
pub struct End {
    pub tcp: Connection,
    pub events: Vec<(Instant, ConnectionEvent)>,
    /// Data that the application has still to write.
    pub outbox: VecDeque<Chunk>,
    pub close_after: bool,
    /// Whether the application reads everything that arrives.
    pub reads: bool,
    /// The data that it has read; kept as bytes only if `keep`.
    pub inbox: Vec<u8>,
    pub keep: bool,
    pub received: u64,
    pub written: u64,
    /// Right edge of the peer's last announced window, and the highest acknowledgement received.
    edge: Option<u32>,
    acked: Option<u32>,
    first: Option<u32>,
    send_buffer: Option<u64>,
    mss: u32,
    closed: bool,
    /// Whether a write was cut short and no `Writable` has followed yet.
    blocked: bool,
}

impl End {
    fn new(tcp: Connection, config: &Config) -> Self {
        End {
            tcp,
            events: Vec::new(),
            outbox: VecDeque::new(),
            close_after: false,
            reads: true,
            inbox: Vec::new(),
            keep: false,
            received: 0,
            written: 0,
            edge: None,
            acked: None,
            first: None,
            send_buffer: config.send_buffer,
            mss: config.mss,
            closed: false,
            blocked: false,
        }
    }

    pub fn saw(&self, event: ConnectionEvent) -> bool {
        self.events.iter().any(|&(_, e)| e == event)
    }

    fn write(&mut self) {
        while !self.blocked {
            let Some(chunk) = self.outbox.pop_front() else { break };
            let mut rest = chunk.clone();
            let taken = self.tcp.write(chunk);
            self.written += taken as u64;
            if taken < rest.len() {
                self.outbox.push_front(rest.split_off(taken));
                self.blocked = true;
            }
        }
        if self.outbox.is_empty() && self.close_after && !self.closed {
            self.closed = true;
            self.tcp.close();
        }
    }

    pub fn read(&mut self) {
        while let Some(chunk) = self.tcp.read(100_000) {
            self.received += chunk.len() as u64;
            if self.keep {
                let end = self.inbox.len() + chunk.len();
                self.inbox.extend_from_slice(chunk.head());
                self.inbox.resize(end, 0);
            }
        }
    }
}

type Script = Box<dyn FnMut(&Seen) -> Verdict>;

pub struct Pair {
    pub now: Instant,
    pub ends: [End; 2],
    /// One-way delay.
    pub delay: Duration,
    pub script: Script,
    pub log: Vec<Seen>,
    pub keep_log: bool,
    wire: BTreeMap<(Instant, u64), (Side, Segment)>,
    order: u64,
    pub steps: u64,
    /// Payload bytes over the link: sent, dropped, added by duplication, arrived.
    pub bytes: [u64; 4],
}

impl Pair {
    pub fn new(client: Config, server: Config, delay: Duration) -> Self {
        let now = Instant::ZERO;
        let client_end = End::new(Connection::connect(client.clone(), now), &client);
        let server_end = End::new(Connection::listen(server.clone()), &server);
        Pair {
            now,
            ends: [client_end, server_end],
            delay,
            script: Box::new(|_| Verdict::Deliver),
            log: Vec::new(),
            keep_log: true,
            wire: BTreeMap::new(),
            order: 0,
            steps: 0,
            bytes: [0; 4],
        }
    }

    pub fn with_script(mut self, script: impl FnMut(&Seen) -> Verdict + 'static) -> Self {
        self.script = Box::new(script);
        self
    }

    pub fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side as usize]
    }

    pub fn tcp(&self, side: Side) -> &Connection {
        &self.ends[side as usize].tcp
    }

    /// Queues `bytes` of filler at the server, as bulk data flows in this project.
    pub fn serve(&mut self, bytes: u32) {
        self.end(Server).outbox.push_back(Chunk::filler(bytes));
    }

    /// Runs the applications and puts all segments of both ends on the wire.
    pub fn settle(&mut self) {
        for side in [Client, Server] {
            loop {
                let end = &mut self.ends[side as usize];
                end.write();
                if end.reads {
                    end.read();
                }
                let mut quiet = true;
                while let Some(segment) = self.ends[side as usize].tcp.poll_transmit(self.now) {
                    quiet = false;
                    self.carry(side, segment);
                }
                let end = &mut self.ends[side as usize];
                while let Some(event) = end.tcp.poll_event() {
                    quiet = false;
                    end.blocked &= event != ConnectionEvent::Writable;
                    end.events.push((self.now, event));
                }
                if quiet {
                    break;
                }
            }
        }
    }

    fn carry(&mut self, from: Side, segment: Segment) {
        self.audit(from, &segment);
        let mut seen = Seen { at: self.now, from, segment, dropped: false };
        let verdict = (self.script)(&seen);
        let mut carried = seen.segment.clone();
        if verdict == Verdict::Mark {
            carried.ecn = Ecn::Ce;
        }
        let payload = seen.segment.payload.len() as u64;
        self.bytes[0] += payload;
        let usual = self.now + self.delay;
        let arrivals = match verdict {
            Verdict::Deliver | Verdict::Mark => [Some(usual), None],
            Verdict::Drop => [None, None],
            Verdict::Late(extra) => [Some(usual + extra), None],
            Verdict::Twice(extra) => [Some(usual), Some(usual + extra)],
        };
        for arrival in arrivals.into_iter().flatten() {
            self.order += 1;
            self.wire.insert((arrival, self.order), (from.peer(), carried.clone()));
        }
        seen.dropped = verdict == Verdict::Drop;
        self.bytes[1] += if seen.dropped { payload } else { 0 };
        self.bytes[2] += if matches!(verdict, Verdict::Twice(_)) { payload } else { 0 };
        if self.keep_log {
            self.log.push(seen);
        }
    }

    /// Checks the rules that every segment must obey on any link.
    fn audit(&mut self, from: Side, segment: &Segment) {
        let end = &mut self.ends[from as usize];
        assert!(segment.ip_bytes() <= end.mss + 52, "{segment:?}");
        if segment.has(flags::SYN) {
            end.first = Some(segment.seq.wrapping_add(1));
            return;
        }
        if let Some(edge) = end.edge.filter(|_| !segment.payload.is_empty()) {
            let past = segment.seq.wrapping_add(segment.payload.len() as u32).wrapping_sub(edge) as i32;
            assert!(past <= 0, "{past} bytes past the peer's window: {segment:?}");
        }
        if let (Some(first), Some(acked)) = (end.first, end.acked) {
            let unacked = end.written as i64 - i64::from(acked.wrapping_sub(first) as i32);
            // For a tuned one: its memory, and the block that was begun below that.
            let most = end.send_buffer.unwrap_or((4 << 20) + 65_536);
            assert!(unacked <= most as i64 + 1, "{unacked} bytes in the send buffer");
        }
    }

    /// Returns the next time at which anything happens.
    pub fn next_wakeup(&self) -> Option<Instant> {
        let arrival = self.wire.keys().next().map(|&(at, _)| at);
        let timers = self.ends.iter().filter_map(|end| end.tcp.poll_timeout());
        arrival.into_iter().chain(timers).min()
    }

    /// Runs up to the next wake-up; false if nothing will ever happen again.
    pub fn step(&mut self) -> bool {
        self.settle();
        let Some(next) = self.next_wakeup() else { return false };
        assert!(next >= self.now, "a timer in the past: {next:?} < {:?}", self.now);
        self.now = next;
        self.steps += 1;
        if self.wire.keys().next().is_some_and(|&(at, _)| at == next) {
            let (_, (to, segment)) = self.wire.pop_first().unwrap();
            self.bytes[3] += segment.payload.len() as u64;
            let end = &mut self.ends[to as usize];
            let (edge, ack) = (segment.ack.wrapping_add(segment.window), segment.ack);
            let newer = |old: Option<u32>, new: u32| match old {
                Some(old) if new.wrapping_sub(old) as i32 <= 0 => Some(old),
                _ => Some(new),
            };
            if segment.has(flags::ACK) {
                end.edge = newer(end.edge, edge);
                end.acked = newer(end.acked, ack);
            }
            end.tcp.handle(self.now, &segment);
        } else {
            for end in &mut self.ends {
                if end.tcp.poll_timeout().is_some_and(|at| at <= next) {
                    end.tcp.handle_timeout(next);
                }
            }
        }
        self.settle();
        true
    }

    /// Runs until `until`, or until nothing will ever happen again.
    pub fn run_until(&mut self, until: Instant) {
        self.settle();
        while self.next_wakeup().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// Runs until nothing will ever happen again.
    pub fn run(&mut self) {
        let limit = 5_000_000;
        while self.step() {
            assert!(self.steps < limit, "no end in sight at {:?}", self.now);
        }
    }

    /// Runs the handshake only.
    pub fn open(&mut self) {
        while !(self.tcp(Client).is_open() && self.tcp(Server).is_open()) {
            assert!(self.step());
        }
    }

    /// Returns the segments with payload that `side` sent.
    pub fn data(&self, side: Side) -> Vec<&Seen> {
        self.log.iter().filter(|seen| seen.from == side && !seen.segment.payload.is_empty()).collect()
    }

    /// Returns the pure acknowledgements that `side` sent.
    pub fn acks(&self, side: Side) -> Vec<&Seen> {
        let pure = |seen: &&Seen| seen.segment.payload.is_empty() && seen.segment.flags == flags::ACK;
        self.log.iter().filter(|seen| seen.from == side).filter(pure).collect()
    }
}

/// Drops the `n`th (from 0) segments with payload that the server sends, counting retransmissions.
pub fn drop_data(numbers: &'static [usize]) -> impl FnMut(&Seen) -> Verdict {
    let mut count = 0;
    move |seen| {
        if seen.from != Server || seen.segment.payload.is_empty() {
            return Verdict::Deliver;
        }
        count += 1;
        if numbers.contains(&(count - 1)) { Verdict::Drop } else { Verdict::Deliver }
    }
}

/// Returns a configuration of Reno on exact timers.
pub fn reno() -> Config {
    Config { congestion: CongestionControl::RENO, coarse_timers: false, ..Config::default() }
}

/// Returns a configuration of Reno without these mechanisms.
pub fn without(names: &[&str]) -> Config {
    let mut config = reno();
    assert!(names.iter().all(|name| config.mechanisms.switch_off(name)));
    config
}

/// Makes two ends of `config`, 10 ms apart.
pub fn pair(config: Config) -> Pair {
    Pair::new(config.clone(), config, ms(10))
}

/// Returns the segments' numbers within the stream, counted in MSS.
pub fn numbers<'a>(seen: impl IntoIterator<Item = &'a &'a Seen>) -> Vec<u32> {
    seen.into_iter().map(|seen| (seen.segment.seq - 1) / MSS).collect()
}

/// Returns the data the server sent at `millis`, by number.
pub fn sent_at(pair: &Pair, millis: u64) -> Vec<u32> {
    numbers(pair.data(Server).iter().filter(|seen| seen.at == at(millis)))
}
