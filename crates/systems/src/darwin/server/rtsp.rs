//! Requests and their responses.

use std::net::{IpAddr, Ipv4Addr};

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::rtsp::{
    self, DynamicRate, HeaderName, Lower, Method, Mode, Prebuffer, Range, Request, Response, Retransmit,
    RtpInfo, Speed, StatusCode, StreamInfo, Transport, TransportOptions, Transports, TypedHeader, Url,
    Version, names,
};

use super::library::OpenError;
use super::session::{Ask, Session};
use super::stream::{Beginnings, Stream, Way, rtp_channel};
use super::{DarwinServer, Probe, millis};
use crate::app::{ChannelId, Io};
use crate::media::sdp;

const METHODS: &str = "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER";

type Answer = Response<Vec<u8>>;

impl DarwinServer {
    /// Carries a request out. `None` if its response has to wait for the round trip to be measured.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        request: &Request<Vec<u8>>,
        io: &mut dyn Io,
    ) -> Option<Answer> {
        let Some(cseq) = request.header(&names::CSEQ) else { return Some(status(StatusCode::BadRequest)) };
        let mut response = self.carry_out(now, request, io).unwrap_or_else(|refused| refused);
        response.insert_header(names::CSEQ, cseq.clone());
        if response.status() == StatusCode::Ok
            && *request.method() == Method::Setup
            && matches!(self.probe, Probe::Due)
        {
            self.probe = Probe::Sent { at: now, response: Box::new(response) };
            return None;
        }
        Some(response)
    }

    fn carry_out(
        &mut self,
        now: Instant,
        request: &Request<Vec<u8>>,
        io: &mut dyn Io,
    ) -> Result<Answer, Answer> {
        if let Some(options) = request.header(&names::REQUIRE) {
            // None of RFC 2326's options is known to us.
            let mut response = status(StatusCode::OptionNotSupported);
            response.insert_header(names::UNSUPPORTED, options.clone());
            return Err(response);
        }
        match request.method() {
            Method::Options => Ok(with(status(StatusCode::Ok), names::PUBLIC, METHODS)),
            Method::Describe => self.describe(request),
            Method::Setup => self.setup(request, io),
            Method::Play => self.play(now, request),
            Method::Pause => {
                let session = self.session_of(request)?;
                session.pause();
                Ok(named(session))
            }
            Method::Teardown => {
                let response = named(self.session_of(request)?);
                self.end_session(now, io);
                Ok(response)
            }
            Method::GetParameter => {
                let response = self.optional_session(request)?;
                // An empty one asks whether we are there; we have no parameters to give.
                if request.body().is_empty() {
                    Ok(response)
                } else {
                    Err(status(StatusCode::ParameterNotUnderstood))
                }
            }
            Method::SetParameter => {
                let response = self.optional_session(request)?;
                if !request.body().is_empty() {
                    return Err(status(StatusCode::ParameterNotUnderstood));
                }
                self.take_tolerance(request);
                Ok(response)
            }
            Method::Announce | Method::Record => {
                Err(with(status(StatusCode::MethodNotAllowed), names::ALLOW, METHODS))
            }
            Method::Redirect | Method::PlayNotify | Method::Extension(_) => {
                Err(status(StatusCode::NotImplemented))
            }
        }
    }

    fn describe(&mut self, request: &Request<Vec<u8>>) -> Result<Answer, Answer> {
        let url = request.request_uri().ok_or_else(|| status(StatusCode::BadRequest))?;
        if let Some(accept) = request.header(&names::ACCEPT) {
            let types = accept.as_str().to_ascii_lowercase();
            if !["application/sdp", "application/*", "*/*"].iter().any(|known| types.contains(known)) {
                return Err(status(StatusCode::NotAcceptable));
            }
        }
        let (path, _) = target(url);
        let asset = self.open(&path)?;
        let origin = url.host_str().and_then(|host| host.trim_matches(['[', ']']).parse().ok());
        let origin = origin.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let text = sdp::describe(&asset, origin, 1);
        let base = url.as_str().split('?').next().unwrap_or_default().trim_end_matches('/');
        let response = Response::builder(Version::V1_0, StatusCode::Ok)
            .header(names::CONTENT_TYPE, "application/sdp")
            .header(names::CONTENT_BASE, format!("{base}/"))
            .header(rtsp::name(rtsp::X_ACCEPT_RETRANSMIT), "our-retransmit")
            .header(rtsp::name(rtsp::X_ACCEPT_DYNAMIC_RATE), "1")
            .build(text.into_bytes());
        Ok(response)
    }

    fn open(&self, path: &str) -> Result<std::sync::Arc<crate::media::Asset>, Answer> {
        self.library.open(path).map_err(|error| {
            status(match error {
                OpenError::NotFound => StatusCode::NotFound,
                OpenError::Unsupported(_) => StatusCode::UnsupportedMediaType,
                OpenError::Failed(_) => StatusCode::InternalServerError,
            })
        })
    }

    fn setup(&mut self, request: &Request<Vec<u8>>, io: &mut dyn Io) -> Result<Answer, Answer> {
        let url = request.request_uri().ok_or_else(|| status(StatusCode::BadRequest))?;
        let (path, track) = target(url);
        if request.header(&names::SESSION).is_some() {
            let session = self.session_of(request)?;
            if session.path != path {
                return Err(status(StatusCode::AggregateOperationNotAllowed));
            }
            if session.is_playing() {
                return Err(status(StatusCode::MethodNotValidInThisState));
            }
        } else if self.session.is_some() {
            // A connection has one session at a time.
            return Err(status(StatusCode::MethodNotValidInThisState));
        }
        let asset = match &self.session {
            Some(session) => session.asset.clone(),
            None => self.open(&path)?,
        };
        let track = match track {
            Some(track) => track,
            None if asset.tracks.len() == 1 => 0,
            None => return Err(status(StatusCode::AggregateOperationNotAllowed)),
        };
        if track >= asset.tracks.len().min(sdp::MOST_TRACKS) {
            return Err(status(StatusCode::NotFound));
        }
        let used = self.session.iter().flat_map(|session| &session.streams);
        if used.clone().any(|stream| stream.track == track) {
            return Err(status(StatusCode::MethodNotValidInThisState));
        }
        let offers: Transports = header(request).ok_or_else(|| status(StatusCode::UnsupportedTransport))?;
        let used: Vec<Way> = used.map(|stream| stream.way).collect();
        let (mut transport, way) =
            choose(&offers, &used).ok_or_else(|| status(StatusCode::UnsupportedTransport))?;

        let mut response = status(StatusCode::Ok);
        let retransmit: Option<Retransmit> = header(request);
        let granted =
            retransmit.filter(|ask| way == Way::Plain && ask.reliable_udp && self.settings.reliable_udp);
        let way = if granted.is_some() { Way::Reliable } else { way };
        let beginnings = Beginnings {
            ssrc: self.draws.bits() as u32,
            sequence: self.draws.bits() as u16,
            timestamp: self.draws.bits() as u32,
        };
        if let Some((rtp, rtcp)) = transport.client_port {
            let (media, control) = (rtp_channel(track), ChannelId(rtp_channel(track).0 + 1));
            let port = io.bind_pair(media).ok_or_else(|| status(StatusCode::ServiceUnavailable))?;
            transport.server_port = Some((port, port.saturating_add(1)));
            io.direct(media, rtp);
            io.direct(control, rtcp);
        }
        transport.ssrc = Some(beginnings.ssrc);
        response.insert_typed_header(&Transports(vec![transport]));
        if let Some(granted) = &granted {
            response.insert_typed_header(granted);
        }

        let tracked = (track, &asset.tracks[track]);
        let mut stream = Stream::new(tracked, way, url.to_string(), beginnings, &self.settings);
        if let Some(options) = header::<TransportOptions>(request) {
            if let Some(tolerance) = options.late_tolerance {
                stream.lateness.tolerate(millis(tolerance));
            }
            response.insert_typed_header(&options);
        }
        if self.session.is_none() {
            let id = self.draws.bits().to_string();
            self.session = Some(Session::new(id, path, asset, self.settings.clone()));
        }
        let session = self.session.as_mut().expect("it was just made if there was none");
        session.streams.push(stream);

        let dynamic: Option<DynamicRate> = header(request);
        if way == Way::Plain || dynamic.is_some_and(|dynamic| !dynamic.wanted) {
            session.overbuffer.disable();
        }
        if let Some(dynamic) = dynamic {
            let wanted = session.overbuffer.is_enabled();
            if dynamic.wanted && matches!(self.probe, Probe::None) && self.settings.probe_bytes > 0 {
                self.probe = Probe::Due;
            }
            let rtt_ms =
                if let Probe::Measured(rtt_ms) = self.probe { Some(rtt_ms).filter(|_| wanted) } else { None };
            response.insert_typed_header(&DynamicRate { wanted, rtt_ms });
        }
        let timeout_s = (millis(self.settings.rtp_timeout) / 1000).unsigned_abs();
        response.insert_typed_header(&rtsp::Session(session.id.clone(), Some(timeout_s)));
        Ok(response)
    }

    fn play(&mut self, now: Instant, request: &Request<Vec<u8>>) -> Result<Answer, Answer> {
        self.take_tolerance(request);
        let range = match request.typed_header::<Range>() {
            Ok(range) => range.unwrap_or(Range { from: None, to: None }),
            Err(_) => return Err(status(StatusCode::InvalidRange)),
        };
        let max_speed = self.settings.max_speed;
        let session = self.session_of(request)?;
        let ask = Ask {
            from: range.from,
            to: range.to,
            speed: header::<Speed>(request).map(|speed| speed.0.min(max_speed)),
            max_back: header::<Prebuffer>(request).and_then(|prebuffer| prebuffer.most),
        };
        let play = session.play(now, ask).ok_or_else(|| status(StatusCode::InvalidRange))?;
        let mut response = named(session);
        response.insert_typed_header(&Range { from: Some(play.from), to: Some(play.to) });
        if play.speed != 1.0 {
            response.insert_typed_header(&Speed(play.speed));
        }
        if play.back > Duration::ZERO {
            response.insert_typed_header(&Prebuffer { most: None, used: Some(play.back) });
        }
        let info = session.streams.iter().map(|stream| StreamInfo {
            url: stream.url.clone(),
            seq: Some(stream.next_sequence()),
            rtptime: Some(stream.timestamp(&session.asset.tracks[stream.track], play.from)),
        });
        response.insert_typed_header(&RtpInfo(info.collect()));
        Ok(response)
    }

    /// How late media may be: in PLAY and SET_PARAMETER it is said for all tracks at once.
    fn take_tolerance(&mut self, request: &Request<Vec<u8>>) {
        let tolerance = header::<TransportOptions>(request).and_then(|options| options.late_tolerance);
        if let (Some(tolerance), Ok(session)) = (tolerance, self.session_of(request)) {
            for stream in &mut session.streams {
                stream.lateness.tolerate(millis(tolerance));
            }
        }
    }

    /// The session that the request names.
    fn session_of(&mut self, request: &Request<Vec<u8>>) -> Result<&mut Session, Answer> {
        let id = header::<rtsp::Session>(request).map(|session| session.0);
        let session = self.session.as_mut().filter(|session| id.is_some_and(|id| id.trim() == session.id));
        let session = session.ok_or_else(|| status(StatusCode::SessionNotFound))?;
        let of_track = request.request_uri().is_some_and(|url| target(url).1.is_some());
        if of_track && session.streams.len() > 1 && matches!(request.method(), Method::Play | Method::Pause) {
            return Err(status(StatusCode::OnlyAggregateOperationAllowed));
        }
        Ok(session)
    }

    /// Of a request that need not name a session: 200, unless it names one that is not there.
    fn optional_session(&mut self, request: &Request<Vec<u8>>) -> Result<Answer, Answer> {
        if request.header(&names::SESSION).is_none() {
            return Ok(status(StatusCode::Ok));
        }
        self.session_of(request).map(|session| named(session))
    }
}

/// A response without anything but its status.
pub(super) fn status(status: StatusCode) -> Answer {
    Response::builder(Version::V1_0, status).build(Vec::new())
}

fn with(mut response: Answer, name: HeaderName, value: &str) -> Answer {
    response.insert_header(name, value);
    response
}

fn named(session: &Session) -> Answer {
    with(status(StatusCode::Ok), names::SESSION, &session.id)
}

/// A header that may be missing; one that cannot be read is as good as missing.
fn header<H: TypedHeader>(request: &Request<Vec<u8>>) -> Option<H> {
    request.typed_header().ok().flatten()
}

/// The asset's path and the track that a URL names.
fn target(url: &Url) -> (String, Option<usize>) {
    let path = url.path();
    let track = path.rsplit_once('/').and_then(|(asset, last)| Some((asset, sdp::track_of(last)?)));
    let (path, track) = track.map_or((path, None), |(asset, track)| (asset, Some(track)));
    (decoded(path.trim_end_matches('/')), track)
}

/// Percent-decoded (RFC 3986 section 2.1); what is not UTF-8 then names nothing.
fn decoded(path: &str) -> String {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = |byte: u8| char::from(byte).to_digit(16);
        let escaped = match after {
            [high, low, ..] if first == b'%' => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The first of a player's offers that can be granted, beside the ways of the session's other tracks.
fn choose(offers: &Transports, used: &[Way]) -> Option<(Transport, Way)> {
    offers.0.iter().find_map(|offer| {
        if !offer.unicast || offer.mode == Some(Mode::Record) {
            return None;
        }
        match offer.lower {
            Lower::Udp => {
                let ports = offer.client_port.filter(|(rtp, rtcp)| *rtp > 0 && *rtcp > 0)?;
                Some((Transport::udp(ports), Way::Plain))
            }
            Lower::Tcp => {
                let is_taken = |channel: u8| {
                    let has = |way: &Way| matches!(*way, Way::Interleaved(rtp, rtcp) if channel == rtp || channel == rtcp);
                    used.iter().any(has)
                };
                let is_free = |&(rtp, rtcp): &(u8, u8)| rtp != rtcp && !is_taken(rtp) && !is_taken(rtcp);
                let mut pairs = (0..=u8::MAX / 2).map(|pair| (2 * pair, 2 * pair + 1));
                let (rtp, rtcp) = offer.interleaved.or_else(|| pairs.find(is_free)).filter(is_free)?;
                Some((Transport::tcp((rtp, rtcp)), Way::Interleaved(rtp, rtcp)))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_an_asset_and_maybe_a_track() {
        let of = |url: &str| target(&Url::parse(url).unwrap());
        assert_eq!(of("rtsp://h/a/b.mov"), ("/a/b.mov".into(), None));
        assert_eq!(of("rtsp://h:8554/a%20b.mov/trackID=2"), ("/a b.mov".into(), Some(1)));
        assert_eq!(of("rtsp://h/a.mov/?x=1"), ("/a.mov".into(), None));
        assert_eq!(of("rtsp://h/a.mov/trackID=0"), ("/a.mov/trackID=0".into(), None));
        assert_eq!(of("rtsp://h/%zz%4"), ("/%zz%4".into(), None));
    }

    #[test]
    fn the_first_offer_that_can_be_granted_is() {
        let chosen = |offers: &str, used: &[Way]| choose(&offers.parse().unwrap(), used).map(|(_, way)| way);
        assert_eq!(chosen("RTP/AVP;multicast,RTP/AVP/TCP;unicast", &[]), Some(Way::Interleaved(0, 1)));
        assert_eq!(chosen("RTP/AVP;unicast;client_port=5000-5001", &[]), Some(Way::Plain));
        assert_eq!(chosen("RTP/AVP;unicast", &[]), None);
        assert_eq!(chosen("RTP/AVP;unicast;client_port=0-0", &[]), None);
        let used = [Way::Interleaved(0, 1)];
        assert_eq!(chosen("RTP/AVP/TCP;unicast", &used), Some(Way::Interleaved(2, 3)));
        assert_eq!(chosen("RTP/AVP/TCP;interleaved=1-2", &used), None);
        let used = [Way::Interleaved(2, 3), Way::Interleaved(0, 9)];
        assert_eq!(
            chosen("RTP/AVP/TCP;unicast", &used),
            Some(Way::Interleaved(4, 5)),
            "the first that are free"
        );
        assert_eq!(chosen("RTP/AVP;unicast;client_port=5000-5001;mode=record", &[]), None);
    }
}
