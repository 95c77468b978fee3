//! One client: its machine and its channels.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_systems::media::{Asset, Library, NamedFile, OpenError, StoredFile};
use streamgauge_systems::standalone::Served;
use streamgauge_systems::{App, ChannelId, CloseReason, Input, Io};

use super::library::Folder;
use super::patience::Patience;
use super::tell::Teller;
use crate::reactor::{Arrival, Channels, Reactor, Room};

/// The client's connection, or its datagrams.
const FIRST: ChannelId = ChannelId(0);

/// Inputs of one channel that a session is given before the others get their turn.
const TURN: usize = 64;

/// Bytes of unwanted data that are read at once.
const AT_ONCE: usize = 16 << 10;

/// Time for a client to receive the rest and close.
const LINGER: Duration = Duration::from_secs(5);

/// The folder as one client sees it, with the last requested file.
pub struct Shown {
    folder: Arc<Folder>,
    last: Mutex<Option<String>>,
}

impl Shown {
    /// Returns all of `folder`.
    pub fn new(folder: Arc<Folder>) -> Shown {
        Shown { folder, last: Mutex::default() }
    }

    fn remember(&self, path: &str) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.to_owned());
    }

    /// Returns the last opened name.
    fn last(&self) -> Option<String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Library for Shown {
    fn open(&self, path: &str) -> Result<Arc<Asset>, OpenError> {
        let asset = self.folder.open(path)?;
        self.remember(path);
        Ok(asset)
    }

    fn file(&self, path: &str) -> Result<Arc<dyn StoredFile>, OpenError> {
        let file = self.folder.file(path)?;
        self.remember(path);
        Ok(file)
    }

    fn plain(&self, path: &str) -> Result<Arc<dyn StoredFile>, OpenError> {
        self.folder.plain(path)
    }

    fn alone(&self) -> Result<Option<NamedFile>, OpenError> {
        self.folder.alone()
    }

    fn names(&self, path: &str) -> Result<Vec<String>, OpenError> {
        self.folder.names(path)
    }

    fn plays(&self, path: &str) {
        self.remember(path);
    }
}

/// The machine for a client.
pub enum Host {
    /// The server, and the client's view of the folder.
    Server(Box<dyn Served>, Arc<Shown>),
    /// The machine that reports a full server.
    TurnAway(Box<dyn App>),
}

impl Host {
    fn app(&mut self) -> &mut dyn App {
        match self {
            Host::Server(server, _) => &mut **server,
            Host::TurnAway(app) => &mut **app,
        }
    }

    fn wakes_at(&self) -> Option<Instant> {
        match self {
            Host::Server(server, _) => server.poll_timeout(),
            Host::TurnAway(app) => app.poll_timeout(),
        }
    }
}

/// One client.
pub struct ServedClient {
    /// Counts from 1.
    pub number: u64,
    /// Where the client is.
    pub peer: SocketAddr,
    /// Its arrival.
    pub began: Instant,
    /// When it is looked at next, as the server has noted it.
    pub noted: Option<Instant>,
    host: Host,
    channels: Channels,
    /// Time at which it is removed, even if the client has not closed by then.
    leaves_at: Option<Instant>,
    /// Its requests and its progress.
    patience: Patience,
    /// In which time a request has to be whole.
    request_within: Duration,
    playing: bool,
    /// The client has finished, and its earlier requests are still answered: the reason of the end.
    ends_as: Option<&'static str>,
    over: Option<&'static str>,
}

impl ServedClient {
    /// Returns a client that has just come. One that is turned away is removed by `leaves_at`; each request
    /// of one that is served has to be whole within `request_within`.
    pub fn new(
        number: u64,
        peer: SocketAddr,
        host: Host,
        channels: Channels,
        now: Instant,
        (leaves_at, request_within): (Option<Instant>, Duration),
    ) -> ServedClient {
        ServedClient {
            number,
            peer,
            began: now,
            noted: None,
            host,
            channels,
            leaves_at,
            patience: Patience::new(now),
            request_within,
            playing: false,
            ends_as: None,
            over: None,
        }
    }

    /// Returns true for a client that is served.
    pub fn is_served(&self) -> bool {
        matches!(self.host, Host::Server(..))
    }

    /// Returns the path that it plays and the transport of the media, once: when the first of it has been
    /// sent.
    pub fn begins_to_play(&mut self) -> Option<(String, &'static str)> {
        let Host::Server(server, shown) = &self.host else { return None };
        let over = server.plays_over().filter(|_| !self.playing)?;
        self.playing = true;
        Some((shown.last().unwrap_or_default(), over))
    }

    /// Returns the traffic: each count by its name, and the server's words.
    pub fn counts(&self) -> (serde_json::Map<String, Value>, String) {
        let mut counts = match serde_json::to_value(self.channels.counts()) {
            Ok(Value::Object(counts)) => counts,
            _ => serde_json::Map::new(),
        };
        let Host::Server(server, _) = &self.host else { return (counts, String::new()) };
        counts.extend(server.counts().into_iter().map(|(name, count)| (name.to_owned(), count.into())));
        (counts, server.in_words())
    }

    /// Returns why it is over, if it is.
    pub fn is_over(&self) -> Option<&'static str> {
        self.over
    }

    /// Returns when it must be looked at even if nothing arrives.
    pub fn wakes_at(&self) -> Instant {
        if self.channels.has_news() {
            return Instant::ZERO;
        }
        let own = self.host.wakes_at().into_iter().chain(self.leaves_at);
        own.chain(self.patience.ends_at(self.request_within)).min().unwrap_or(Instant::FAR_FUTURE)
    }

    /// Notifies the machine of its client.
    pub fn start(&mut self, now: Instant, room: &mut Room, teller: &mut Teller) {
        self.give(now, Input::Start, teller);
        self.arrivals(now, FIRST, room, teller);
        self.look(now);
    }

    /// Processes the arrivals of `channel`, up to a turn's share; the kernel reports the rest again.
    pub fn arrivals(&mut self, now: Instant, channel: ChannelId, room: &mut Room, teller: &mut Teller) {
        self.channels.renew();
        for _ in 0..TURN {
            if self.over.is_some() {
                return;
            }
            match self.channels.arrival(channel, room) {
                None => break,
                Some(Arrival::Datagram(on, came)) => {
                    let (at, ecn) = (came.at(now), came.ecn);
                    self.give(now, Input::Datagram { on, bytes: &came.bytes, ecn, at }, teller);
                }
                Some(Arrival::Input(Input::Closed(FIRST, reason))) => self.end(now, reason, teller),
                Some(Arrival::Input(input)) => {
                    self.give(now, input, teller);
                    // After the machine has closed a connection, only this loop reads on to the client's end.
                    while self.channels.is_finished(FIRST) && self.channels.read(FIRST, AT_ONCE).is_some() {}
                }
                Some(Arrival::Refused(error)) => self.give(now, Input::Refused(channel, &error), teller),
            }
        }
        self.look(now);
    }

    /// Processes a datagram of the client's that arrived before it had a socket of its own.
    pub fn datagram(&mut self, now: Instant, datagram: &Chunk, teller: &mut Teller) {
        if self.over.is_none() {
            self.channels.note_datagram(datagram);
            self.give(now, Input::datagram(FIRST, datagram, now), teller);
        }
    }

    /// Gives the machine its timeouts, and events that no socket reports.
    pub fn timers(&mut self, now: Instant, room: &mut Room, teller: &mut Teller) {
        for (id, error) in self.channels.take_refused() {
            self.give(now, Input::Refused(id, &error), teller);
        }
        for channel in self.channels.take_ready() {
            self.arrivals(now, channel, room, teller);
        }
        for _ in 0..TURN {
            if self.over.is_some() || self.host.wakes_at().is_none_or(|at| at > now) {
                break;
            }
            self.give(now, Input::Timeout, teller);
        }
        if self.leaves_at.is_some_and(|at| at <= now) {
            self.over.get_or_insert("closed by the server");
        }
        self.look(now);
        if self.patience.ends_at(self.request_within).is_some_and(|at| at <= now) {
            self.over.get_or_insert("its request was not whole in time");
        }
    }

    /// Notes its requests and its progress.
    fn look(&mut self, now: Instant) {
        let Host::Server(server, _) = &self.host else { return };
        let counts = self.channels.counts();
        let sent = counts.stream_bytes_sent + counts.datagram_bytes_sent;
        let must_ask = sent == 0 && !server.may_wait_to_ask();
        let is_awaited = (must_ask || server.awaits_rest()) && !self.channels.is_finished(FIRST);
        self.patience.look(now, sent, is_awaited);
    }

    /// Returns why it may be removed for another client of a full server, if it may.
    pub fn gives_way(&self, now: Instant) -> Option<&'static str> {
        let Host::Server(server, _) = &self.host else { return None };
        // A sender with forged addresses has any number of them: there is no wait for proof of ownership.
        let is_proven = server.is_proven();
        let may_ask = is_proven && !(self.patience.has_not_asked() && self.patience.had_time(now));
        let gives_way = self.over.is_none() && !may_ask;
        gives_way.then_some("made room for another: it asked for nothing")
    }

    /// Returns since when it has had its answers and asked for nothing more, if it may go for that. A client
    /// that is shown something on time may have all of it already.
    pub fn quiet_since(&self, now: Instant) -> Option<Instant> {
        let Host::Server(server, _) = &self.host else { return None };
        let since =
            self.patience.quiet_since(now).filter(|_| self.over.is_none() && server.may_be_quiet())?;
        (self.channels.unacknowledged_bytes() == 0).then_some(since)
    }

    /// Returns the same for a client that receives its media too slowly.
    pub fn is_slow(&mut self, now: Instant) -> Option<&'static str> {
        let is_slow = self.is_served()
            && self.over.is_none()
            && self.patience.is_slow(now, self.channels.unacknowledged_bytes());
        is_slow.then_some("made room for another: it took less than 100 bytes in a second")
    }

    /// Ends it from our side, with a goodbye to a player.
    pub fn stop(&mut self, now: Instant, why: &'static str, teller: &mut Teller) {
        if self.over.is_none() {
            self.give(now, Input::Stop, teller);
            self.over = Some(why);
        }
    }

    /// Gives the ports back.
    pub fn release(&mut self) {
        self.channels.release();
    }

    /// Watches the awaited events of the channels, as those of this place.
    pub fn watch(&mut self, reactor: &Reactor, place: u32) {
        if self.over.is_none() && self.channels.settle(reactor, place).is_err() {
            self.over = Some("connection cannot be watched");
        }
    }

    fn end(&mut self, now: Instant, reason: CloseReason, teller: &mut Teller) {
        let why = match reason {
            // After we have closed a connection, the other end's close is no news.
            _ if self.channels.is_finished(FIRST) => "closed by the server",
            CloseReason::Finished => "client closed the connection",
            CloseReason::Reset | CloseReason::TimedOut => "connection failed",
        };
        self.give(now, Input::Closed(FIRST, reason), teller);
        if reason == CloseReason::Finished && self.still_answers() {
            self.ends_as = Some(why);
        } else {
            self.over = Some(why);
        }
    }

    fn still_answers(&self) -> bool {
        matches!(&self.host, Host::Server(server, _) if server.still_answers())
    }

    fn give(&mut self, now: Instant, input: Input<'_>, teller: &mut Teller) {
        let app = self.host.app();
        app.handle(now, input, &mut self.channels);
        while let Some(event) = app.poll_event() {
            teller.event(Some(self.number), &event);
        }
        if let Some(why) = self.ends_as
            && !self.still_answers()
        {
            self.over.get_or_insert(why);
        }
        if self.channels.is_finished(FIRST) {
            if matches!(&self.host, Host::Server(server, _) if server.has_lost_its_client()) {
                self.over.get_or_insert("client has vanished");
            }
            self.leaves_at.get_or_insert(now + LINGER);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use nix::libc;
    use streamgauge_base::Event;

    use super::*;
    use crate::net::stream::TcpSocket;
    use crate::reactor::SharedPorts;
    use crate::sys;

    /// Reads, and with `answers` echoes it at its timeout, when it closes; with `greets` it does not wait for
    /// that.
    #[derive(Default)]
    struct Echo {
        answers: bool,
        greets: bool,
        asked: Vec<u8>,
        is_open: bool,
    }

    impl App for Echo {
        fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
            match input {
                Input::Opened(FIRST) => self.is_open = true,
                Input::Readable(FIRST) => {
                    while let Some(chunk) = io.read(FIRST, 64) {
                        self.asked.extend(chunk.head());
                    }
                }
                _ => {}
            }
            if self.is_open && (self.greets || input == Input::Timeout) {
                self.is_open = false;
                let said = if self.greets { b"full".to_vec() } else { self.asked.clone() };
                assert_eq!(io.write(FIRST, Chunk::bytes(said.clone())), said.len());
                io.close(FIRST);
            }
        }
        fn poll_timeout(&self) -> Option<Instant> {
            (self.answers && self.is_open).then(|| Instant::from_nanos(1_000_000_000))
        }
        fn poll_event(&mut self) -> Option<Event> {
            None
        }
    }

    impl Served for Echo {
        fn plays_over(&self) -> Option<&'static str> {
            None
        }
        fn counts(&self) -> Vec<(&'static str, u64)> {
            Vec::new()
        }
        fn in_words(&self) -> String {
            String::new()
        }
        fn has_lost_its_client(&self) -> bool {
            false
        }
        fn awaits_rest(&self) -> bool {
            false
        }
        fn still_answers(&self) -> bool {
            self.answers && self.is_open
        }
    }

    /// Returns a client that has sent a question, and its server.
    fn served(machine: Echo) -> (TcpStream, ServedClient, Room, Teller) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.write_all(b"what?").unwrap();
        let (socket, peer) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        let own = socket.local_addr().unwrap();
        let ports = SharedPorts::new("28982-28983".parse().unwrap(), 0);
        let channels = Channels::with_stranger(TcpSocket::accepted(socket.into(), peer), own, &ports, true);
        let folder = Arc::new(Folder::open(&std::env::temp_dir(), 0).unwrap());
        let host = Host::Server(Box::new(machine), Arc::new(Shown::new(folder)));
        let mut client =
            ServedClient::new(1, peer, host, channels, Instant::ZERO, (None, Duration::from_secs(30)));
        let (mut room, mut teller) = (Room::new(), Teller::new(true, None, 0).unwrap());
        client.start(Instant::ZERO, &mut room, &mut teller);
        (stream, client, room, teller)
    }

    /// Processes arrivals until they change the reason of its end, as they must: the timing is the kernel's
    /// on loopback.
    fn heard(client: &mut ServedClient, room: &mut Room, teller: &mut Teller) -> Option<&'static str> {
        while client.over.is_none() && client.ends_as.is_none() {
            client.arrivals(Instant::ZERO, FIRST, room, teller);
        }
        client.is_over()
    }

    #[test]
    fn a_client_that_finishes_is_over_once_what_it_asked_is_answered() {
        let (mut stream, mut client, mut room, mut teller) =
            served(Echo { answers: true, ..Echo::default() });
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(heard(&mut client, &mut room, &mut teller), None, "it is still to be answered");
        client.timers(Instant::from_nanos(1_000_000_000), &mut room, &mut teller);
        assert_eq!(client.is_over(), Some("client closed the connection"));
        client.release();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "what?");
    }

    #[test]
    fn why_a_client_is_over_is_told_apart() {
        let (stream, mut client, mut room, mut teller) = served(Echo::default());
        drop(stream);
        assert_eq!(heard(&mut client, &mut room, &mut teller), Some("client closed the connection"));

        let (stream, mut client, mut room, mut teller) = served(Echo { answers: true, ..Echo::default() });
        // Closed in this way, it is reset: there is no peer to answer.
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        sys::set_option(stream.as_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &linger).unwrap();
        drop(stream);
        assert_eq!(heard(&mut client, &mut room, &mut teller), Some("connection failed"));

        let (mut stream, mut client, mut room, mut teller) = served(Echo { greets: true, ..Echo::default() });
        let mut said = [0; 4];
        stream.read_exact(&mut said).unwrap();
        drop(stream);
        assert_eq!(heard(&mut client, &mut room, &mut teller), Some("closed by the server"));
    }
}
