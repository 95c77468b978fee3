//! Short transfers, each on a connection of its own: the player opens it when the transfer arrives and asks by the
//! transfer's number, the server sends the bytes and finishes first.

use std::borrow::Cow;
use std::collections::BTreeMap;

use streamgauge_base::{Chunk, Event, Instant};
use streamgauge_plan::{TcpSpec, Transfer};

use super::{DATA, OFFER, PORT};
use crate::app::{App, ChannelId, CloseReason, Input, Io};
use crate::carrier::Carrier;
use crate::machines::{Channel, Machines};
use crate::outbox::{MEDIA_END, Outbox};

/// All bytes of a transfer have arrived; its value is the time since its connection was opened.
pub const COMPLETE: &str = "transfer_complete";
/// A transfer has ended before; likewise.
pub const FAILED: &str = "transfer_failed";

/// Handshakes that may wait: Linux's default (`net.core.somaxconn`).
const BACKLOG: u32 = 4096;

/// Bytes of a request: the transfer's place in the plan, in network order.
const REQUEST: usize = size_of::<u32>();

/// Returns both ends of a flow of these, in order of their times.
pub fn machines(transfers: &[Transfer], tcp: &TcpSpec) -> Machines {
    let listener = Carrier::Listener { port: PORT, settings: tcp.clone(), backlog: BACKLOG };
    Machines {
        channels: vec![Channel { id: DATA, carrier: listener }],
        server: Box::new(Server::new(transfers)),
        player: Box::new(Player::new(transfers, tcp)),
    }
}

/// The end that sends. Paused, it writes nothing more until it is resumed.
pub struct Server {
    sizes: Vec<u64>,
    /// Those under way.
    open: BTreeMap<ChannelId, Sending>,
    paused: bool,
}

enum Sending {
    /// The bytes of the request read so far.
    Asked(Vec<u8>),
    /// Bytes.
    Left(u64),
}

impl Server {
    pub fn new(transfers: &[Transfer]) -> Self {
        let sizes = transfers.iter().map(|transfer| transfer.bytes).collect();
        Server { sizes, open: BTreeMap::new(), paused: false }
    }

    fn read(&mut self, channel: ChannelId, io: &mut dyn Io) {
        while let Some(chunk) = io.read(channel, REQUEST) {
            let Some(Sending::Asked(asked)) = self.open.get_mut(&channel) else { continue };
            asked.extend(chunk.head());
            if let Some(number) = asked.first_chunk::<REQUEST>() {
                let size = self.sizes.get(u32::from_be_bytes(*number) as usize);
                self.open.insert(channel, Sending::Left(size.copied().unwrap_or(0)));
            }
        }
        self.fill(channel, io);
    }

    fn fill(&mut self, channel: ChannelId, io: &mut dyn Io) {
        let Some(Sending::Left(left)) = self.open.get_mut(&channel).filter(|_| !self.paused) else { return };
        while *left > 0 {
            let offer = OFFER.min(*left);
            let taken = io.write(channel, Chunk::filler(offer as u32)) as u64;
            *left -= taken;
            if taken < offer {
                return;
            }
        }
        io.close(channel);
        self.open.remove(&channel);
    }

    /// Handles a transfer that the player has ended before this end has, or that was cut off as its player was stopped.
    fn given_up(&mut self, channel: ChannelId, why: CloseReason, io: &mut dyn Io) {
        if self.open.remove(&channel).is_some() && why == CloseReason::Finished {
            io.close(channel);
        }
    }
}

impl App for Server {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Accepted { channel, .. } => {
                self.open.insert(channel, Sending::Asked(Vec::with_capacity(REQUEST)));
            }
            Input::Readable(channel) => self.read(channel, io),
            Input::Writable(channel) => self.fill(channel, io),
            Input::Closed(channel, why) => self.given_up(channel, why, io),
            Input::Pause => self.paused = true,
            Input::Resume => {
                self.paused = false;
                let held: Vec<ChannelId> = self.open.keys().copied().collect();
                held.into_iter().for_each(|channel| self.fill(channel, io));
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

/// The end that opens and reads. While it is paused no transfer arrives: those due in that time are left out.
/// Stopped, it resets those under way.
pub struct Player {
    transfers: Vec<Transfer>,
    to_server: Carrier,
    /// The next to arrive.
    next: usize,
    /// Those under way.
    open: BTreeMap<ChannelId, Receiving>,
    received: u64,
    paused: bool,
    ended: bool,
    events: Outbox,
}

struct Receiving {
    number: usize,
    since: Instant,
    bytes: u64,
}

impl Player {
    pub fn new(transfers: &[Transfer], tcp: &TcpSpec) -> Self {
        Player {
            transfers: transfers.to_vec(),
            to_server: Carrier::Tcp { port: PORT, settings: tcp.clone() },
            next: 0,
            open: BTreeMap::new(),
            received: 0,
            paused: false,
            ended: false,
            events: Outbox::default(),
        }
    }

    /// Opens transfers that are due.
    fn arrive(&mut self, now: Instant, io: &mut dyn Io) {
        while self.due().is_some_and(|at| at <= now) {
            let number = self.next;
            self.next += 1;
            if !self.paused {
                let channel = io.open(&self.to_server);
                self.open.insert(channel, Receiving { number, since: now, bytes: 0 });
            }
        }
        self.end_if_over(now);
    }

    fn due(&self) -> Option<Instant> {
        let next = self.transfers.get(self.next).filter(|_| !self.ended)?;
        Some(Instant::ZERO + next.at)
    }

    fn read(&mut self, channel: ChannelId, io: &mut dyn Io) {
        let Some(one) = self.open.get_mut(&channel) else { return };
        while let Some(chunk) = io.read(channel, usize::MAX) {
            one.bytes += chunk.len() as u64;
            self.received += chunk.len() as u64;
        }
    }

    /// Ends a transfer; `why` it has failed, if its bytes have not all arrived.
    fn over(&mut self, now: Instant, channel: ChannelId, why: &str, io: &dyn Io) {
        let Some(Receiving { number, since, bytes }) = self.open.remove(&channel) else { return };
        let asked = self.transfers[number].bytes;
        let took_s = now.saturating_since(since).as_secs_f64();
        if bytes == asked {
            let ports = io.port(channel).map_or_else(String::new, |own| format!(" on {PORT}:{own}"));
            self.events.say(now, COMPLETE, took_s, "s", format!("transfer {number}: {asked} B{ports}"));
        } else {
            let said = format!("transfer {number}: {why}; {bytes} of {asked} B");
            self.events.say(now, FAILED, took_s, "s", said);
        }
        self.end_if_over(now);
    }

    fn end_if_over(&mut self, now: Instant) {
        if self.next == self.transfers.len() && self.open.is_empty() {
            self.end(now, "every transfer is over");
        }
    }

    fn end(&mut self, now: Instant, why: impl Into<Cow<'static, str>>) {
        if !std::mem::replace(&mut self.ended, true) {
            self.events.say(now, MEDIA_END, self.received as f64, "B", why);
        }
    }
}

impl App for Player {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start | Input::Timeout => self.arrive(now, io),
            Input::Opened(channel) => {
                if let Some(one) = self.open.get(&channel) {
                    // This few bytes fit any send buffer.
                    io.write(channel, Chunk::bytes((one.number as u32).to_be_bytes()));
                }
            }
            Input::Readable(channel) => self.read(channel, io),
            Input::Closed(channel, CloseReason::Finished) => {
                self.read(channel, io);
                self.over(now, channel, "the server finished before its end", io);
                io.close(channel);
            }
            Input::Closed(channel, CloseReason::Reset) => self.over(now, channel, "reset by the server", io),
            Input::Closed(channel, CloseReason::TimedOut) => {
                self.over(now, channel, "the server answers no more", io);
            }
            Input::Refused(channel, error) => self.over(now, channel, &error.to_string(), io),
            Input::Pause => self.paused = true,
            Input::Resume => self.paused = false,
            Input::Stop => {
                self.end(now, "stopped");
                for (channel, _) in std::mem::take(&mut self.open) {
                    io.abort(channel);
                }
            }
            _ => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.next()
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_base::Duration;

    use super::*;
    use crate::testing::{Pair, Pipe};

    fn arrivals(count: u64) -> Vec<Transfer> {
        (0..count).map(|n| Transfer { at: Duration::from_millis(50 * n), bytes: 1 + 997 * n }).collect()
    }

    fn pair(transfers: &[Transfer]) -> Pair {
        let pipe = Pipe { stream_bytes_per_s: Some(1_000_000), begins_with_stream: false, ..Pipe::default() };
        let tcp = TcpSpec::default();
        // The pipe's server declares nothing: its listener is opened in the test below.
        Pair::new(Box::new(Listening(Server::new(transfers))), Box::new(Player::new(transfers, &tcp)), pipe)
    }

    /// A server that begins with its listener, as hosts do for it.
    struct Listening(Server);

    impl App for Listening {
        fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
            if input == Input::Start {
                io.open(&Carrier::Listener { port: PORT, settings: TcpSpec::default(), backlog: BACKLOG });
            }
            self.0.handle(now, input, io);
        }
        fn poll_timeout(&self) -> Option<Instant> {
            self.0.poll_timeout()
        }
        fn poll_event(&mut self) -> Option<Event> {
            self.0.poll_event()
        }
    }

    fn named<'a>(pair: &'a Pair, name: &str) -> Vec<&'a Event> {
        pair.events.iter().filter(|event| event.name == name).collect()
    }

    const LONG: Instant = Instant::from_nanos(100_000_000_000);

    #[test]
    fn each_transfer_moves_its_bytes_on_a_connection_of_its_own() {
        let transfers = arrivals(100);
        let mut pair = pair(&transfers);
        pair.run(LONG);
        let complete = named(&pair, COMPLETE);
        assert_eq!((complete.len(), named(&pair, FAILED).len()), (100, 0));
        for (number, transfer) in transfers.iter().enumerate() {
            let said = format!("transfer {number}: {} B", transfer.bytes);
            let found = complete.iter().filter(|event| event.reason.starts_with(&said)).count();
            assert_eq!(found, 1, "{said}");
        }
        let ends = named(&pair, MEDIA_END);
        let total: u64 = transfers.iter().map(|transfer| transfer.bytes).sum();
        assert_eq!(ends.iter().map(|end| end.value).collect::<Vec<_>>(), [Some(total as f64)]);
    }

    #[test]
    fn a_pause_holds_what_is_under_way_and_leaves_out_what_would_arrive() {
        // 1 MB takes a second; the pipe's send buffer drains into the pause.
        let long = Transfer { at: Duration::ZERO, bytes: 1_000_000 };
        let during = Transfer { at: Duration::from_millis(1_000), bytes: 1_000 };
        let after = Transfer { at: Duration::from_millis(3_000), bytes: 1_000 };
        let mut pair = pair(&[long, during, after]);
        pair.at(Duration::from_millis(500), Input::Pause);
        pair.at(Duration::from_millis(2_500), Input::Resume);
        pair.run(LONG);
        let complete = named(&pair, COMPLETE);
        assert_eq!(complete.len(), 2);
        assert!(complete[1].reason.starts_with("transfer 2:"), "{complete:?}");
        let took = complete[0].value.unwrap();
        assert!((2.9..3.1).contains(&took), "{took}");
        assert_eq!(named(&pair, MEDIA_END)[0].value, Some(1_001_000.0));
    }

    #[test]
    fn stopped_no_more_arrive_and_those_under_way_are_reset() {
        let transfers = arrivals(100);
        let mut pair = pair(&transfers);
        pair.at(Duration::from_millis(2_049), Input::Stop);
        pair.run(LONG);
        let ends = named(&pair, MEDIA_END);
        assert_eq!((ends.len(), ends[0].reason.as_ref()), (1, "stopped"));
        let complete = named(&pair, COMPLETE);
        assert!((30..=41).contains(&complete.len()), "{}", complete.len());
        assert!(complete.iter().all(|event| event.at <= ends[0].at));
    }

    #[test]
    fn a_transfer_that_nobody_answers_has_failed_and_says_why() {
        let transfers = arrivals(3);
        let pipe = Pipe { stream_bytes_per_s: Some(1_000_000), begins_with_stream: false, ..Pipe::default() };
        let player = Player::new(&transfers, &TcpSpec::default());
        let mut pair = Pair::new(Box::new(Server::new(&transfers)), Box::new(player), pipe);
        pair.run(LONG);
        let failed = named(&pair, FAILED);
        assert_eq!((failed.len(), named(&pair, COMPLETE).len()), (3, 0));
        assert!(failed[1].reason.starts_with("transfer 1: no listener on port 5201"), "{failed:?}");
        assert!(failed[1].reason.ends_with("; 0 of 998 B"), "{failed:?}");
        assert_eq!(named(&pair, MEDIA_END).len(), 1);
    }
}
