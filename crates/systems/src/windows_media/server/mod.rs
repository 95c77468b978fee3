//! The server: RTSP, MMS and HTTP, each on a connection of its own, for one player.

mod header;
mod http;
mod http_requests;
mod mms;
mod mms_messages;
mod rtsp;
mod rtsp_connection;
mod selection;
mod session;
mod settings;
mod stream;
mod unknown;

pub use settings::{Preset, ServerSettings};

use std::sync::Arc;

use streamgauge_base::{Event, Instant, RandomStream};
use streamgauge_wire::asf::StreamProperties;

use self::http::HttpConnections;
use self::mms::MmsConnection;
use self::rtsp_connection::RtspConnection;
use self::session::{Line, Sent};
use self::unknown::{Spoken, UnknownConnection};
use super::object::Shelf;
use super::{HTTP_LISTENER, MMS_DATAGRAMS, MMS_LISTENER, RTSP, RTSP_LISTENER};
use crate::app::{App, ChannelId, Input, Io};
use crate::outbox::Outbox;
use crate::rtsp::Backlog;

/// The state that the connections of a server share.
struct Shared {
    shelf: Arc<dyn Shelf<StreamProperties>>,
    settings: Arc<ServerSettings>,
    draws: RandomStream,
    sent: Sent,
    events: Outbox,
}

impl Shared {
    /// Returns a session's way out beside a connection's.
    fn line<'a>(&'a mut self, backlog: &'a mut Backlog, io: &'a mut dyn Io) -> Line<'a> {
        Line { io, backlog, events: &mut self.events, sent: &mut self.sent }
    }

    /// Returns random bytes of that number.
    fn random(&mut self, bytes: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.draws.bits().to_be_bytes()).flatten().take(bytes).collect()
    }

    /// Records that the player has been silent since `heard`.
    fn say_silence(&mut self, now: Instant, heard: Instant) {
        let silence = now.saturating_since(heard).as_secs_f64();
        self.events.say(now, "session_timeout", silence, "s", "nothing came from the player");
    }
}

/// Serves one client: over one RTSP connection and the ports of its one session, or over connections that its player
/// opens, which may be RTSP, MMS and HTTP one after another. For each protocol the last connection counts; for HTTP a
/// few, which share one session.
///
/// The state that a client can make it keep is bounded: for each connection one message half read and 16 kB behind it,
/// 64 kB and a burst not yet written, and the packets sent within `resend_keep`, 4 MiB at most.
///
/// Events: those of a session (`level_sent`, `packet_resent`), and `session_timeout` (s of silence).
pub struct WmServer {
    shared: Shared,
    rtsp: Option<RtspConnection>,
    mms: Option<MmsConnection>,
    http: HttpConnections,
    /// MMS may send datagrams from it.
    datagrams: Option<ChannelId>,
    /// Whether the connection that it begins with may use any of the three.
    takes_any: bool,
    unknown: Option<UnknownConnection>,
    /// Whether its client was silent for too long.
    vanished: bool,
}

impl WmServer {
    /// Serves the objects of `shelf`. Session ids are drawn from `seed` and `flow`, so a server on a network needs a
    /// seed that cannot be guessed.
    pub fn new(
        shelf: Arc<dyn Shelf<StreamProperties>>,
        settings: ServerSettings,
        flow: &str,
        seed: u64,
    ) -> Self {
        let shared = Shared {
            shelf,
            settings: Arc::new(settings),
            draws: RandomStream::named(seed, flow, "windows_media_server"),
            sent: Sent::default(),
            events: Outbox::default(),
        };
        let (rtsp, mms, http) = (None, None, HttpConnections::default());
        let (datagrams, unknown) = (None, None);
        WmServer { shared, rtsp, mms, http, datagrams, takes_any: false, unknown, vanished: false }
    }

    /// Allows MMS's media over UDP, from [`MMS_DATAGRAMS`].
    pub(super) fn with_datagrams(mut self) -> Self {
        self.datagrams = Some(MMS_DATAGRAMS);
        self
    }

    /// Makes the initial connection accept RTSP, MMS or HTTP, which its first bytes identify.
    pub(super) fn taking_any(mut self) -> Self {
        self.takes_any = true;
        self
    }

    /// Returns the counts of sent packets.
    pub(super) fn sent(&self) -> &Sent {
        &self.shared.sent
    }

    /// Returns whether its client was silent for too long.
    pub(super) fn has_lost_its_client(&self) -> bool {
        self.vanished
    }

    /// Returns whether part of a request has arrived, and the rest of it is awaited. A connection of unknown protocol
    /// counts as well.
    pub(super) fn awaits_rest(&self) -> bool {
        self.unknown.is_some()
            || self.rtsp.as_ref().is_some_and(RtspConnection::awaits_rest)
            || self.mms.as_ref().is_some_and(MmsConnection::awaits_rest)
            || self.http.await_rest()
    }

    /// Reads from connections of unknown protocol; once that is known, each is a connection like others.
    fn find_out(&mut self, now: Instant, io: &mut dyn Io) {
        let Some(unknown) = &mut self.unknown else { return };
        let channel = unknown.channel;
        let Some((spoken, came)) = unknown.read(io) else { return };
        self.unknown = None;
        match spoken {
            Spoken::Rtsp => {
                let connection = self.rtsp.insert(RtspConnection::new(channel, now));
                connection.push(came);
            }
            Spoken::Mms => {
                let connection = self.mms.insert(MmsConnection::new(channel, self.datagrams, now));
                connection.push(came);
            }
            Spoken::Http => {
                self.http.accept(now, channel, io);
                self.http.push(channel, came);
            }
        }
    }

    fn work(&mut self, now: Instant, io: &mut dyn Io) {
        if self.unknown.as_ref().is_some_and(|one| one.since + self.shared.settings.timeout <= now)
            && let Some(unknown) = self.unknown.take()
        {
            self.shared.say_silence(now, unknown.since);
            self.vanished = true;
            io.close(unknown.channel);
        }
        let WmServer { shared, rtsp, mms, http, .. } = self;
        let vanished = [
            rtsp.as_mut().is_some_and(|connection| connection.work(now, shared, io)),
            mms.as_mut().is_some_and(|connection| connection.work(now, shared, io)),
            http.work(now, shared, io),
        ];
        self.vanished |= vanished.contains(&true);
    }
}

impl App for WmServer {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Readable(_) => self.find_out(now, io),
            Input::Closed(..) | Input::Stop => {
                self.unknown.take().into_iter().for_each(|unknown| io.close(unknown.channel));
            }
            _ => {}
        }
        let WmServer { shared, rtsp, mms, http, datagrams, .. } = self;
        match input {
            Input::Opened(RTSP) if self.takes_any => self.unknown = Some(UnknownConnection::new(RTSP, now)),
            Input::Opened(RTSP) => *rtsp = Some(RtspConnection::new(RTSP, now)),
            Input::Accepted { channel, on: RTSP_LISTENER } => {
                rtsp.iter_mut().for_each(|before| before.disconnect(io));
                *rtsp = Some(RtspConnection::new(channel, now));
            }
            Input::Accepted { channel, on: MMS_LISTENER } => {
                mms.iter_mut().for_each(|before| before.disconnect(io));
                *mms = Some(MmsConnection::new(channel, *datagrams, now));
            }
            Input::Accepted { channel, on: HTTP_LISTENER } => http.accept(now, channel, io),
            input => {
                rtsp.iter_mut().for_each(|connection| connection.handle(now, &input, shared, io));
                mms.iter_mut().for_each(|connection| connection.handle(now, &input, shared, io));
                http.handle(now, &input, shared, io);
            }
        }
        self.work(now, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let timeout = self.shared.settings.timeout;
        let rtsp = self.rtsp.as_ref().and_then(|connection| connection.wake(timeout));
        let mms = self.mms.as_ref().and_then(|connection| connection.wake(timeout));
        let unknown = self.unknown.as_ref().map(|unknown| unknown.since + timeout);
        [rtsp, mms, self.http.wake(timeout), unknown].into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.shared.events.next()
    }
}
