//! Two machines that open, accept and end connections, for tests of the drivers of machines: the same in
//! virtual time, on sockets and on the pipe of the tests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_plan::TcpSpec;
use streamgauge_systems::{App, Carrier, ChannelId, CloseReason, Input, Io};

/// Bytes of a client's request; the first four identify its connection.
pub const REQUEST: usize = 64;

/// How an end ends its streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It finishes as soon as it has written everything.
    First,
    /// It finishes when the other end has.
    After,
    /// It resets the connection when it has read something.
    Reset,
}

/// The result of one of the client's connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub number: u32,
    /// Arrived bytes, each in its place.
    pub bytes: usize,
    pub end: String,
}

/// Observations of both ends.
#[derive(Default, Debug)]
pub struct Seen {
    pub outcomes: Vec<Outcome>,
    /// Most connections that the client had at a time.
    pub most_open: usize,
    pub accepted: usize,
    /// Connections of the server that are over, by how they ended.
    pub served: BTreeMap<String, usize>,
    /// Bytes of requests that arrived in their place.
    pub asked: usize,
}

pub type Shared = Arc<Mutex<Seen>>;

/// Returns byte `at` of the data on the connection `number`, in either direction.
fn byte(number: u32, at: usize) -> u8 {
    (number as usize * 31 + at * 7 + at / 251) as u8
}

fn bytes(number: u32, from: usize, to: usize) -> Chunk {
    Chunk::bytes((from..to).map(|at| byte(number, at)).collect::<Vec<u8>>())
}

fn ended(why: CloseReason) -> String {
    match why {
        CloseReason::Finished => "finished",
        CloseReason::Reset => "reset",
        CloseReason::TimedOut => "timed out",
    }
    .into()
}

/// Opens `count` connections, a limited number at once, and asks on each.
pub struct Client {
    pub count: u32,
    pub at_once: usize,
    pub carrier: Carrier,
    pub ending: Ending,
    pub seen: Shared,
    /// The wait before this connection.
    pub rest: Option<(u32, Duration)>,
    next: u32,
    again: Option<Instant>,
    streams: BTreeMap<ChannelId, (u32, usize)>,
}

impl Client {
    pub fn new(count: u32, at_once: usize, port: u16, ending: Ending, seen: &Shared) -> Client {
        let carrier = Carrier::Tcp { port, settings: TcpSpec::default() };
        let (again, streams) = (None, BTreeMap::new());
        Client { count, at_once, carrier, ending, seen: seen.clone(), rest: None, next: 0, again, streams }
    }

    fn open(&mut self, now: Instant, io: &mut dyn Io) {
        while self.next < self.count && self.streams.len() < self.at_once {
            if let Some((_, pause)) = self.rest.take_if(|(before, _)| *before == self.next) {
                self.again = Some(now + pause);
            }
            if self.again.is_some() {
                break;
            }
            let channel = io.open(&self.carrier);
            assert!(self.streams.insert(channel, (self.next, 0)).is_none(), "{channel:?} is used twice");
            self.next += 1;
        }
        let mut seen = self.seen.lock().unwrap();
        seen.most_open = seen.most_open.max(self.streams.len());
    }

    fn over(&mut self, channel: ChannelId, end: String) {
        let (number, bytes) = self.streams.remove(&channel).expect("it is told of its own, and of each once");
        self.seen.lock().unwrap().outcomes.push(Outcome { number, bytes, end });
    }
}

impl App for Client {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => self.open(now, io),
            Input::Opened(channel) => {
                let (number, _) = self.streams[&channel];
                let request = [&number.to_be_bytes()[..], bytes(number, 4, REQUEST).head()].concat();
                assert_eq!(io.write(channel, Chunk::bytes(request)), REQUEST);
                if self.ending == Ending::First {
                    io.close(channel);
                }
            }
            Input::Readable(channel) => {
                let (number, at) = self.streams.get_mut(&channel).expect("it is told of its own");
                while let Some(chunk) = io.read(channel, 10_000) {
                    for read in chunk.head() {
                        assert_eq!(*read, byte(*number, *at), "byte {at} of connection {number}");
                        *at += 1;
                    }
                }
                if self.ending == Ending::Reset && *at > 0 {
                    io.abort(channel);
                    self.over(channel, "aborted".into());
                    self.open(now, io);
                }
            }
            Input::Closed(channel, why) => {
                io.close(channel);
                self.over(channel, ended(why));
                self.open(now, io);
            }
            Input::Refused(channel, error) => {
                self.over(channel, error.to_string());
                self.again = Some(now + Duration::from_millis(10));
            }
            Input::Timeout if self.again.is_some_and(|at| at <= now) => {
                self.again = None;
                self.open(now, io);
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.again
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

/// Answers each connection with this many bytes.
pub struct Server {
    /// Opened at the start, unless the flow begins with it.
    pub listener: Option<Carrier>,
    pub answer: usize,
    pub ending: Ending,
    pub seen: Shared,
    streams: BTreeMap<ChannelId, Stream>,
}

#[derive(Default)]
struct Stream {
    asked: Vec<u8>,
    written: usize,
    /// The other end has finished.
    finished: bool,
}

impl Server {
    pub fn new(listener: Option<Carrier>, answer: usize, ending: Ending, seen: &Shared) -> Server {
        Server { listener, answer, ending, seen: seen.clone(), streams: BTreeMap::new() }
    }

    fn go_on(&mut self, channel: ChannelId, io: &mut dyn Io) {
        let stream = self.streams.get_mut(&channel).expect("it is told of its own");
        let Some(number) = stream.asked.first_chunk().filter(|_| stream.asked.len() == REQUEST) else {
            return;
        };
        let number = u32::from_be_bytes(*number);
        if self.ending == Ending::Reset {
            io.abort(channel);
            return self.over(channel, "aborted".into());
        }
        while stream.written < self.answer {
            let to = self.answer.min(stream.written + 20_000);
            let taken = io.write(channel, bytes(number, stream.written, to));
            stream.written += taken;
            if stream.written < to {
                return;
            }
        }
        if self.ending == Ending::First || stream.finished {
            io.close(channel);
        }
        if stream.finished {
            self.over(channel, ended(CloseReason::Finished));
        }
    }

    fn over(&mut self, channel: ChannelId, end: String) {
        let stream = self.streams.remove(&channel).expect("it is told of its own, and of each once");
        let mut seen = self.seen.lock().unwrap();
        let number = stream.asked.first_chunk().map_or(0, |number| u32::from_be_bytes(*number));
        let asked = stream.asked.iter().enumerate().skip(4);
        seen.asked += asked.filter(|(at, read)| **read == byte(number, *at)).count();
        *seen.served.entry(end).or_default() += 1;
    }
}

impl App for Server {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start => {
                if let Some(listener) = &self.listener {
                    io.open(listener);
                }
            }
            Input::Accepted { channel, .. } => {
                assert!(self.streams.insert(channel, Stream::default()).is_none());
                self.seen.lock().unwrap().accepted += 1;
            }
            Input::Readable(channel) => {
                while let Some(chunk) = io.read(channel, 1_000) {
                    let stream = self.streams.get_mut(&channel).expect("it is told of its own");
                    stream.asked.extend(chunk.head());
                }
                self.go_on(channel, io);
            }
            Input::Writable(channel) => self.go_on(channel, io),
            Input::Closed(channel, CloseReason::Finished) => {
                if let Some(stream) = self.streams.get_mut(&channel) {
                    stream.finished = true;
                    self.go_on(channel, io);
                }
            }
            Input::Closed(channel, why) => self.over(channel, ended(why)),
            Input::Refused(_, error) => {
                *self.seen.lock().unwrap().served.entry(error.to_string()).or_default() += 1;
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

/// Returns a listener on `port`.
pub fn listener(port: u16, backlog: u32) -> Carrier {
    Carrier::Listener { port, settings: TcpSpec::default(), backlog }
}
