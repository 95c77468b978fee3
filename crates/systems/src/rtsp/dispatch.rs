//! Requests carried out, for any server (RFC 2326 sections 10 and 11): the effect of each method on the one session of
//! a connection, and the status of an impossible request. A server supplies its own behaviour by [`RtspServer`] and
//! [`RtspSession`].

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::rtsp::{
    Method, Range, Request, Response, RtpInfo, Session, Speed, StatusCode, StreamInfo, Transport, Transports,
    Url, Version, names,
};

use super::server::{Answer, choose, header, refuse_options, status, target, with};
use crate::app::Io;
use crate::media::{Asset, OpenError, sdp};

/// Methods that a client may use.
const METHODS: &str = "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER";

/// A server's media, as it describes it.
pub trait Described {
    /// Returns how many tracks can be set up.
    fn tracks(&self) -> usize;

    /// Returns the description, which is served at `origin`.
    fn description(&self, origin: IpAddr) -> String;

    /// Returns the track that the last part of a URL names as the description has it.
    fn track_of(control: &str) -> Option<usize>;
}

impl Described for Asset {
    fn tracks(&self) -> usize {
        self.tracks.len().min(sdp::MOST_TRACKS)
    }

    fn description(&self, origin: IpAddr) -> String {
        sdp::describe(self, origin, 1)
    }

    fn track_of(control: &str) -> Option<usize> {
        sdp::track_of(control)
    }
}

/// A server of one connection.
pub trait RtspServer {
    /// The state that it keeps of its client.
    type Session: RtspSession;

    /// Returns the media at `path`.
    ///
    /// # Errors
    ///
    /// Why there is nothing.
    fn open(&self, path: &str) -> Result<Arc<MediaOf<Self>>, OpenError>;

    /// Returns the session of the connection, which has one at a time.
    fn session(&mut self) -> Option<&mut Self::Session>;

    /// Returns how long a client may be silent before its session ends.
    fn timeout(&self) -> Duration;

    /// Adds to the answer to DESCRIBE the server's features beyond RTSP.
    fn describe(&self, answer: &mut Answer) {
        let _ = answer;
    }

    /// Adds to the answer to OPTIONS the headers by which others recognise the server.
    fn options(&mut self, answer: &mut Answer) {
        let _ = answer;
    }

    /// Returns whether it supports the option of that name that a request demands (section 12.32).
    fn can(&self, option: &str) -> bool {
        let _ = option;
        false
    }

    /// Sets a track up, in a new session if there is none, and writes its transport into `answer`.
    ///
    /// # Errors
    ///
    /// The answer in place of that: nothing is set up.
    fn set_up(
        &mut self,
        wanted: TrackWanted<'_, MediaOf<Self>>,
        answer: &mut Answer,
        io: &mut dyn Io,
    ) -> Result<(), Answer>;

    /// Reads the body of SET_PARAMETER. Returns whether it understood it, and carried it out.
    fn take_parameters(&mut self, now: Instant, request: &Request<Vec<u8>>, io: &mut dyn Io) -> bool {
        let _ = (now, request, io);
        false
    }

    /// Ends the session.
    fn tear_down(&mut self, now: Instant, io: &mut dyn Io);
}

/// A server's media.
pub type MediaOf<S> = <<S as RtspServer>::Session as RtspSession>::Media;

/// The state that a server keeps of one client from SETUP to TEARDOWN.
pub trait RtspSession {
    /// Its media.
    type Media: Described;

    /// Returns the name of the session in requests.
    fn id(&self) -> &str;

    /// Returns its path, as the client asked for it.
    fn path(&self) -> &str;

    /// Returns the played media.
    fn media(&self) -> &Arc<Self::Media>;

    /// Returns whether the last request among PLAY and PAUSE was PLAY.
    fn is_playing(&self) -> bool;

    /// Returns the tracks that are set up, and the channels of those that are interleaved on the connection.
    fn tracks(&self) -> impl Iterator<Item = (usize, Option<(u8, u8)>)>;

    /// Applies headers of the server's own in PLAY and SET_PARAMETER. Returns whether it understood all of them.
    fn heed(&mut self, request: &Request<Vec<u8>>) -> bool {
        let _ = request;
        true
    }

    /// Begins to play, or to play elsewhere. `None` if there is nothing to play in that range. `answer` receives the
    /// server's additions to RTSP.
    fn play(
        &mut self,
        now: Instant,
        request: &Request<Vec<u8>>,
        wanted: RangeWanted,
        answer: &mut Answer,
    ) -> Option<RangePlayed>;

    /// Stops sending; PLAY continues from here.
    fn pause(&mut self);
}

/// The arguments of SETUP, and those of them found valid.
pub struct TrackWanted<'a, M> {
    /// The request.
    pub request: &'a Request<Vec<u8>>,
    /// The URL that it names.
    pub url: &'a Url,
    /// The path of the played media.
    pub path: String,
    /// Returns the played media.
    pub media: Arc<M>,
    /// Which of its tracks.
    pub track: usize,
    /// The channels of the connection that the session's other tracks have.
    pub taken: Vec<(u8, u8)>,
}

impl<M> TrackWanted<'_, M> {
    /// Returns the first of the client's transports of RTP that can be granted.
    ///
    /// # Errors
    ///
    /// The answer where there is none.
    pub fn transport(&self) -> Result<Transport, Answer> {
        let chosen = header::<Transports>(self.request).and_then(|offers| choose(&offers, &self.taken));
        chosen.ok_or_else(|| status(StatusCode::UnsupportedTransport))
    }
}

/// The range that PLAY asks for, in the media's time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RangeWanted {
    /// Its start; without it media continues where it was.
    pub from: Option<Duration>,
    /// Until where.
    pub to: Option<Duration>,
    /// How fast (section 12.35).
    pub speed: Option<f64>,
}

/// Returns the played media.
#[derive(Clone, PartialEq, Debug)]
pub struct RangePlayed {
    /// From where, in the media's time.
    pub from: Duration,
    /// Until where.
    pub to: Duration,
    /// How fast.
    pub speed: f64,
    /// The start of each track.
    pub streams: Vec<StreamInfo>,
}

/// Carries a request out, and answers it.
pub fn answer<S: RtspServer>(
    server: &mut S,
    now: Instant,
    request: &Request<Vec<u8>>,
    io: &mut dyn Io,
) -> Answer {
    let Some(cseq) = request.header(&names::CSEQ) else { return status(StatusCode::BadRequest) };
    let mut answer = carry_out(server, now, request, io).unwrap_or_else(|refused| refused);
    answer.insert_header(names::CSEQ, cseq.clone());
    answer
}

fn carry_out<S: RtspServer>(
    server: &mut S,
    now: Instant,
    request: &Request<Vec<u8>>,
    io: &mut dyn Io,
) -> Result<Answer, Answer> {
    refuse_options(request, |option| server.can(option))?;
    match request.method() {
        Method::Options => {
            let mut answer = with(status(StatusCode::Ok), names::PUBLIC, METHODS);
            server.options(&mut answer);
            Ok(answer)
        }
        Method::Describe => describe(server, request),
        Method::Setup => set_up(server, request, io),
        Method::Play => play(server, now, request),
        Method::Pause => {
            let session = session_of(server, request)?;
            session.pause();
            Ok(named(session))
        }
        Method::Teardown => {
            let answer = named(session_of(server, request)?);
            server.tear_down(now, io);
            Ok(answer)
        }
        Method::GetParameter => {
            // An empty one asks whether we are there; we have no parameters.
            let answer = named_or_not(server, request)?;
            if request.body().is_empty() {
                Ok(answer)
            } else {
                Err(status(StatusCode::ParameterNotUnderstood))
            }
        }
        Method::SetParameter => {
            let answer = named_or_not(server, request)?;
            let is_known = heed(server, request)
                && (request.body().is_empty() || server.take_parameters(now, request, io));
            if is_known { Ok(answer) } else { Err(status(StatusCode::ParameterNotUnderstood)) }
        }
        Method::Announce | Method::Record => {
            Err(with(status(StatusCode::MethodNotAllowed), names::ALLOW, METHODS))
        }
        Method::Redirect | Method::PlayNotify | Method::Extension(_) => {
            Err(status(StatusCode::NotImplemented))
        }
    }
}

fn open<S: RtspServer>(server: &S, path: &str) -> Result<Arc<MediaOf<S>>, Answer> {
    server.open(path).map_err(|error| match error {
        OpenError::NotFound => status(StatusCode::NotFound),
        OpenError::Unsupported(why) => Response::builder(Version::V1_0, StatusCode::UnsupportedMediaType)
            .header(names::CONTENT_TYPE, "text/plain;charset=utf-8")
            .build(format!("{why}\r\n").into_bytes()),
        OpenError::Failed(_) => status(StatusCode::InternalServerError),
    })
}

fn describe<S: RtspServer>(server: &S, request: &Request<Vec<u8>>) -> Result<Answer, Answer> {
    let url = request.request_uri().ok_or_else(|| status(StatusCode::BadRequest))?;
    if let Some(accept) = request.header(&names::ACCEPT) {
        let types = accept.as_str().to_ascii_lowercase();
        if !["application/sdp", "application/*", "*/*"].iter().any(|known| types.contains(known)) {
            return Err(status(StatusCode::NotAcceptable));
        }
    }
    let (path, _) = target(url, MediaOf::<S>::track_of);
    let media = open(server, &path)?;
    let origin = url.host_str().and_then(|host| host.trim_matches(['[', ']']).parse().ok());
    let origin = origin.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let text = media.description(origin);
    let base = url.as_str().split('?').next().unwrap_or_default().trim_end_matches('/');
    let mut answer = Response::builder(Version::V1_0, StatusCode::Ok)
        .header(names::CONTENT_TYPE, "application/sdp")
        .header(names::CONTENT_BASE, format!("{base}/"))
        .build(text.into_bytes());
    server.describe(&mut answer);
    Ok(answer)
}

fn set_up<S: RtspServer>(
    server: &mut S,
    request: &Request<Vec<u8>>,
    io: &mut dyn Io,
) -> Result<Answer, Answer> {
    let url = request.request_uri().ok_or_else(|| status(StatusCode::BadRequest))?;
    let (path, track) = target(url, MediaOf::<S>::track_of);
    if request.header(&names::SESSION).is_some() {
        let session = session_of(server, request)?;
        if session.path() != path {
            return Err(status(StatusCode::AggregateOperationNotAllowed));
        }
        if session.is_playing() {
            return Err(status(StatusCode::MethodNotValidInThisState));
        }
    } else if server.session().is_some() {
        // A connection has one session at a time.
        return Err(status(StatusCode::MethodNotValidInThisState));
    }
    let (media, used): (_, Vec<_>) = match server.session() {
        Some(session) => (session.media().clone(), session.tracks().collect()),
        None => (open(server, &path)?, Vec::new()),
    };
    let track = match track {
        Some(track) => track,
        None if media.tracks() == 1 => 0,
        None => return Err(status(StatusCode::AggregateOperationNotAllowed)),
    };
    if track >= media.tracks() {
        return Err(status(StatusCode::NotFound));
    }
    if used.iter().any(|(used, _)| *used == track) {
        return Err(status(StatusCode::MethodNotValidInThisState));
    }
    let taken: Vec<_> = used.into_iter().filter_map(|(_, interleaved)| interleaved).collect();

    let mut answer = status(StatusCode::Ok);
    let wanted = TrackWanted { request, url, path, media, track, taken };
    server.set_up(wanted, &mut answer, io)?;
    let timeout_s = server.timeout().as_nanos() / 1_000_000_000;
    if let Some(session) = server.session() {
        answer.insert_typed_header(&Session(session.id().to_owned(), Some(timeout_s)));
    }
    Ok(answer)
}

fn play<S: RtspServer>(server: &mut S, now: Instant, request: &Request<Vec<u8>>) -> Result<Answer, Answer> {
    heed(server, request);
    let Range { from, to } = match request.typed_header::<Range>() {
        Ok(range) => range.unwrap_or(Range { from: None, to: None }),
        Err(_) => return Err(status(StatusCode::InvalidRange)),
    };
    let session = session_of(server, request)?;
    let mut answer = named(session);
    let wanted = RangeWanted { from, to, speed: header::<Speed>(request).map(|speed| speed.0) };
    let played = session.play(now, request, wanted, &mut answer);
    let played = played.ok_or_else(|| status(StatusCode::InvalidRange))?;
    answer.insert_typed_header(&Range { from: Some(played.from), to: Some(played.to) });
    if played.speed != 1.0 {
        answer.insert_typed_header(&Speed(played.speed));
    }
    answer.insert_typed_header(&RtpInfo(played.streams));
    Ok(answer)
}

/// Returns the answer to GET_PARAMETER and SET_PARAMETER, which need no session.
fn named_or_not<S: RtspServer>(server: &mut S, request: &Request<Vec<u8>>) -> Result<Answer, Answer> {
    Ok(match request.header(&names::SESSION) {
        None => status(StatusCode::Ok),
        Some(_) => named(session_of(server, request)?),
    })
}

fn heed<S: RtspServer>(server: &mut S, request: &Request<Vec<u8>>) -> bool {
    session_of(server, request).map_or(true, |session| session.heed(request))
}

/// Returns the session that the request names.
fn session_of<'a, S: RtspServer>(
    server: &'a mut S,
    request: &Request<Vec<u8>>,
) -> Result<&'a mut S::Session, Answer> {
    let id = header::<Session>(request).map(|session| session.0);
    let session = server.session().filter(|session| id.is_some_and(|id| id.trim() == session.id()));
    let session = session.ok_or_else(|| status(StatusCode::SessionNotFound))?;
    let of_track = request.request_uri().is_some_and(|url| target(url, MediaOf::<S>::track_of).1.is_some());
    let is_shared = session.tracks().count() > 1;
    if of_track && is_shared && matches!(request.method(), Method::Play | Method::Pause) {
        return Err(status(StatusCode::OnlyAggregateOperationAllowed));
    }
    Ok(session)
}

fn named(session: &impl RtspSession) -> Answer {
    with(status(StatusCode::Ok), names::SESSION, session.id())
}

#[cfg(test)]
mod tests;
