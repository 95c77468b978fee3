//! One client: its machine and its channels.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use streamgauge_base::{Duration, Instant};
use streamgauge_systems::darwin::{Library, OpenError, RTSP};
use streamgauge_systems::media::Asset;
use streamgauge_systems::{App, ChannelId, CloseReason, Input};

use super::library::Folder;
use super::tell::Teller;
use crate::net::connection::{Connection, Face, Host};
use crate::net::stream::News;

/// Inputs of one channel that a session is given before the others get their turn.
const TURN: usize = 64;

/// How long a client has to take what was still to be sent and close.
const LINGER: Duration = Duration::from_secs(5);

/// The folder as one session sees it, which remembers what was last asked for.
pub struct Shown {
    folder: Arc<Folder>,
    last: Mutex<Option<String>>,
}

impl Shown {
    /// All of `folder`.
    pub fn new(folder: Arc<Folder>) -> Shown {
        Shown { folder, last: Mutex::default() }
    }

    /// What was opened last.
    fn last(&self) -> Option<String> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Library for Shown {
    fn open(&self, path: &str) -> Result<Arc<Asset>, OpenError> {
        let asset = self.folder.open(path)?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.to_owned());
        Ok(asset)
    }
}

/// One client.
pub struct Session {
    /// Counts from 1.
    pub number: u64,
    /// Where the client is.
    pub peer: SocketAddr,
    /// When it came.
    pub began: Instant,
    /// When it is looked at next, as the server has noted it.
    pub noted: Option<Instant>,
    /// What it watches.
    shown: Option<Arc<Shown>>,
    app: Box<dyn App>,
    connection: Connection,
    /// When it goes, whether the client has closed by then or not.
    leaves_at: Option<Instant>,
    playing: bool,
    /// The machine has given the client up.
    vanished: bool,
    over: Option<&'static str>,
}

impl Session {
    /// A client that has just come. Without `shown` it is one that is turned away, and has gone by `leaves_at`.
    pub fn new(
        number: u64,
        peer: SocketAddr,
        shown: Option<Arc<Shown>>,
        app: Box<dyn App>,
        connection: Connection,
        now: Instant,
        leaves_at: Option<Instant>,
    ) -> Session {
        Session {
            number,
            peer,
            began: now,
            noted: None,
            shown,
            app,
            connection,
            leaves_at,
            playing: false,
            vanished: false,
            over: None,
        }
    }

    /// True for a client that is served.
    pub fn is_served(&self) -> bool {
        self.shown.is_some()
    }

    /// The path that it plays and what carries the media, once: when the first packet has been sent.
    pub fn begins_to_play(&mut self) -> Option<(String, &'static str)> {
        if self.playing || self.connection.counts.rtp_packets_sent == 0 {
            return None;
        }
        self.playing = true;
        let path = self.shown.as_ref().and_then(|shown| shown.last()).unwrap_or_default();
        Some((path, if self.connection.has_ports() { "udp" } else { "tcp" }))
    }

    /// The channels.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Why it is over, if it is.
    pub fn is_over(&self) -> Option<&'static str> {
        self.over
    }

    /// When it must be looked at even if nothing arrives.
    pub fn wakes_at(&self) -> Instant {
        let own = self.app.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        own.min(self.leaves_at.unwrap_or(Instant::FAR_FUTURE))
    }

    /// Gives the machine the flow's start.
    pub fn start(&mut self, now: Instant, host: &mut Host, teller: &mut Teller) {
        self.give(now, Input::Start, host, teller);
        self.arrivals(now, RTSP, host, teller);
    }

    /// Takes what `channel` has, up to a turn's share; the kernel reports the rest again.
    pub fn arrivals(&mut self, now: Instant, channel: ChannelId, host: &mut Host, teller: &mut Teller) {
        self.connection.renew();
        for _ in 0..TURN {
            if self.over.is_some() {
                return;
            }
            if channel != RTSP {
                let Some(datagram) = self.connection.datagram(host, channel) else { break };
                self.give(now, Input::Datagram(channel, &datagram), host, teller);
                continue;
            }
            match self.connection.news() {
                None => break,
                Some(News::Opened) => self.give(now, Input::Opened(RTSP), host, teller),
                Some(News::Readable) => self.give(now, Input::Readable(RTSP), host, teller),
                Some(News::Writable) => self.give(now, Input::Writable(RTSP), host, teller),
                Some(News::Finished) => {
                    self.end(now, "client closed the connection", CloseReason::Finished, host, teller);
                }
                Some(News::Failed) => {
                    self.end(now, "connection failed", CloseReason::Failed, host, teller);
                }
            }
        }
    }

    /// Gives the machine its timeouts.
    pub fn timers(&mut self, now: Instant, host: &mut Host, teller: &mut Teller) {
        for _ in 0..TURN {
            if self.over.is_some() || self.app.poll_timeout().is_none_or(|at| at > now) {
                break;
            }
            self.give(now, Input::Timeout, host, teller);
        }
        if self.leaves_at.is_some_and(|at| at <= now) {
            self.over.get_or_insert("closed by the server");
        }
    }

    /// Ends it from our side: RTCP's BYE goes out.
    pub fn stop(&mut self, now: Instant, why: &'static str, host: &mut Host, teller: &mut Teller) {
        if self.over.is_none() {
            self.give(now, Input::Stop, host, teller);
            self.over = Some(why);
        }
    }

    /// Gives the ports back.
    pub fn release(&mut self, host: &mut Host) {
        self.connection.release(host);
    }

    /// Watches what the stream waits for now.
    pub fn watch(&mut self, host: &Host) {
        if self.over.is_none() && self.connection.watch(host).is_err() {
            self.over = Some("connection cannot be watched");
        }
    }

    fn end(
        &mut self,
        now: Instant,
        why: &'static str,
        reason: CloseReason,
        host: &mut Host,
        teller: &mut Teller,
    ) {
        // Of a connection that we have closed, the other end's close is no news.
        let why = if self.connection.is_finished() { "closed by the server" } else { why };
        self.give(now, Input::Closed(RTSP, reason), host, teller);
        self.over = Some(why);
    }

    fn give(&mut self, now: Instant, input: Input<'_>, host: &mut Host, teller: &mut Teller) {
        self.app.handle(now, input, &mut Face { connection: &mut self.connection, host });
        while let Some(event) = self.app.poll_event() {
            self.vanished |= event.name == "session_timeout";
            teller.event(self.number, &event);
        }
        if self.connection.is_finished() {
            if self.vanished {
                self.over.get_or_insert("client has vanished");
            }
            self.leaves_at.get_or_insert(now + LINGER);
        }
    }
}
