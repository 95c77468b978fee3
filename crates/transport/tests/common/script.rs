//! One sender with the script as its peer: the script's segments with their times, and those sent to it (in the manner
//! of packetdrill).

#![allow(dead_code)]

use streamgauge_base::{Chunk, Instant};
use streamgauge_transport::tcp::{
    Config, Connection, EcnMode, SackBlocks, Segment, Stats, Timestamps, flags,
};

use super::{MSS, at};

/// The window that the peer offers.
const WINDOW: u32 = 1 << 24;

/// A server that has just been opened by a peer 20 ms away, at 20 ms.
pub struct Script {
    pub tcp: Connection,
    pub now: Instant,
    /// Sent segments: time and number; numbers count from 0, in MSS.
    pub log: Vec<(u64, u32)>,
    heard: usize,
    /// Whether acknowledgements echo that congestion was experienced.
    pub marked: bool,
}

impl Script {
    pub fn open(config: Config) -> Self {
        let asks = if config.ecn != EcnMode::Off { flags::ECE | flags::CWR } else { 0 };
        let tcp = Connection::listen(Config { initial_sequence: 0, send_buffer: Some(4 << 20), ..config });
        let mut script = Script { tcp, now: at(0), log: Vec::new(), heard: 0, marked: false };
        script.say(Segment { flags: flags::SYN | asks, window: WINDOW, ..Segment::default() });
        script.until(20);
        script.say(Segment { seq: 1, ack: 1, flags: flags::ACK, window: WINDOW, ..Segment::default() });
        assert!(script.tcp.is_open());
        script
    }

    /// Writes `segments` full segments from the application.
    pub fn write(&mut self, segments: u32) {
        assert_eq!(self.tcp.write(Chunk::filler(segments * MSS)), (segments * MSS) as usize);
        self.listen();
    }

    /// Lets time pass, and timers expire, until `millis`.
    pub fn until(&mut self, millis: u64) {
        while let Some(timer) = self.tcp.poll_timeout().filter(|&timer| timer <= at(millis)) {
            self.now = timer;
            self.tcp.handle_timeout(timer);
            self.listen();
        }
        self.now = at(millis);
    }

    /// Acknowledges at `millis` everything before segment `number`, with the segments of `blocks` too, and echoes the
    /// clock of `echo` ms.
    pub fn ack(&mut self, millis: u64, number: u32, blocks: &[(u32, u32)], echo: u32) {
        self.until(millis);
        let mut sack = SackBlocks::default();
        blocks.iter().for_each(|&(left, right)| sack.push(1 + left * MSS, 1 + right * MSS));
        self.say(Segment {
            seq: 1,
            ack: 1 + number * MSS,
            flags: flags::ACK | if self.marked { flags::ECE } else { 0 },
            window: WINDOW,
            sack,
            timestamps: Timestamps { value: millis as u32, echo },
            ..Segment::default()
        });
    }

    fn say(&mut self, segment: Segment) {
        self.tcp.handle(self.now, &segment);
        self.listen();
    }

    fn listen(&mut self) {
        while let Some(segment) = self.tcp.poll_transmit(self.now) {
            if !segment.payload.is_empty() {
                self.log.push((self.now.as_nanos() / 1_000_000, (segment.seq - 1) / MSS));
            }
        }
    }

    /// Returns the segments sent since the last call: times and numbers.
    pub fn sent(&mut self) -> Vec<(u64, u32)> {
        let new = self.log[self.heard..].to_vec();
        self.heard = self.log.len();
        new
    }

    pub fn stats(&self) -> Stats {
        self.tcp.stats()
    }
    /// Returns the congestion window in segments.
    pub fn cwnd(&self) -> u64 {
        self.stats().cwnd / u64::from(MSS)
    }
    /// Returns the slow start threshold in segments.
    pub fn ssthresh(&self) -> u64 {
        self.stats().ssthresh / u64::from(MSS)
    }
}

/// A sent acknowledgement: its time, in us; the segment it expects; its SACK blocks.
pub type Acked = (u64, u32, Vec<(u32, u32)>);

/// One receiver of the script's segments; its peer is 20 ms away, and it reads everything that arrives, at once.
pub struct Hearer {
    pub tcp: Connection,
    now: Instant,
    acks: Vec<Acked>,
    end: u32,
    pub reads: bool,
}

impl Hearer {
    /// Makes a script that is opened at 20 ms.
    pub fn open(config: Config) -> Self {
        let tcp = Connection::listen(Config { initial_sequence: 0, ..config });
        let mut hearer = Hearer { tcp, now: at(0), acks: Vec::new(), end: 0, reads: true };
        hearer.say(Segment { flags: flags::SYN, window: WINDOW, ..Segment::default() });
        hearer.until(20_000);
        hearer.say(Segment { seq: 1, ack: 1, flags: flags::ACK, window: WINDOW, ..Segment::default() });
        hearer.acks.clear();
        hearer
    }

    /// Delivers segment `number`, of `len` bytes, at `us`, if all are full.
    pub fn data(&mut self, us: u64, number: u32, len: u32, push: bool) {
        self.bytes(us, number * MSS, len, push);
    }

    /// Delivers the next `len` bytes at `us`.
    pub fn append(&mut self, us: u64, len: u32, push: bool) {
        self.bytes(us, self.end, len, push);
    }

    fn bytes(&mut self, us: u64, start: u32, len: u32, push: bool) {
        self.until(us);
        self.end = self.end.max(start + len);
        self.say(Segment {
            seq: 1 + start,
            ack: 1,
            flags: flags::ACK | if push { flags::PSH } else { 0 },
            window: WINDOW,
            payload: Chunk::filler(len),
            ..Segment::default()
        });
    }

    pub fn until(&mut self, us: u64) {
        let end = Instant::from_nanos(us * 1_000);
        while let Some(timer) = self.tcp.poll_timeout().filter(|&timer| timer <= end) {
            self.now = timer;
            self.tcp.handle_timeout(timer);
            self.listen();
        }
        self.now = end;
    }

    fn say(&mut self, segment: Segment) {
        self.tcp.handle(self.now, &segment);
        self.listen();
        if self.reads {
            while self.tcp.read(usize::MAX).is_some() {}
            self.listen();
        }
    }

    fn listen(&mut self) {
        while let Some(segment) = self.tcp.poll_transmit(self.now) {
            let number = |seq: u32| (seq - 1) / MSS;
            let blocks = segment.sack.as_slice().iter().map(|&(left, right)| (number(left), number(right)));
            self.acks.push((self.now.as_nanos() / 1_000, number(segment.ack), blocks.collect()));
        }
    }

    /// Acknowledgements since the last question.
    pub fn acked(&mut self) -> Vec<Acked> {
        std::mem::take(&mut self.acks)
    }
}
