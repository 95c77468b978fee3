//! Requests and their responses, with Apple's headers.

use std::net::{IpAddr, Ipv4Addr};

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::rtsp::{
    self, DynamicRate, Method, Prebuffer, Range, Request, Response, Retransmit, RtpInfo, Speed, StatusCode,
    StreamInfo, TransportOptions, Transports, Version, names,
};

use super::session::{Ask, Session};
use super::stream::{Beginnings, RtpStream, Way};
use super::{DarwinServer, Probe, millis};
use crate::app::{ChannelId, Io};
use crate::carrier::Carrier;
use crate::media::{OpenError, sdp};
use crate::rtsp::{Answer, choose, header, refuse_options, status, target, with};

const METHODS: &str = "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER";

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
        refuse_options(request)?;
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

    /// The channel of RTP of `track` and its port, opened if they are not; `None` if the host has no pair left.
    fn pair(&mut self, track: usize, io: &mut dyn Io) -> Option<(ChannelId, u16)> {
        if let Some(&(_, channel)) = self.pairs.iter().find(|(of, _)| *of == track) {
            return Some((channel, io.port(channel)?));
        }
        let channel = io.open(&Carrier::RtpPair);
        let port = io.port(channel)?;
        self.pairs.push((track, channel));
        Some((channel, port))
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
        let taken: Vec<_> = used.filter_map(|stream| stream.way.interleaved()).collect();
        let mut transport =
            choose(&offers, &taken).ok_or_else(|| status(StatusCode::UnsupportedTransport))?;
        let way = transport.interleaved.map_or(Way::Plain, |(rtp, rtcp)| Way::Interleaved(rtp, rtcp));

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
        let mut media = None;
        if let Some((rtp, rtcp)) = transport.client_port {
            let (channel, port) =
                self.pair(track, io).ok_or_else(|| status(StatusCode::ServiceUnavailable))?;
            transport.server_port = Some((port, port.saturating_add(1)));
            io.direct(channel, rtp);
            io.direct(ChannelId(channel.0 + 1), rtcp);
            media = Some(channel);
        }
        transport.ssrc = Some(beginnings.ssrc);
        response.insert_typed_header(&Transports(vec![transport]));
        if let Some(granted) = &granted {
            response.insert_typed_header(granted);
        }

        let tracked = (track, &asset.tracks[track]);
        let mut stream = RtpStream::new(tracked, way, media, url.to_string(), beginnings, &self.settings);
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

fn named(session: &Session) -> Answer {
    with(status(StatusCode::Ok), names::SESSION, &session.id)
}
