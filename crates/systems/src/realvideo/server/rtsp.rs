//! The additions of RealNetworks' server to RTSP: its challenge, RDT as transport, rules that are subscribed to, and
//! the rate.

use std::sync::Arc;

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::rtsp::{
    self, DeliveryBandwidth, Lower, RealChallenge1, RealChallenge3, RealTransport, RealTransports, Request,
    StatusCode, StreamInfo, StreamRule, Subscribe, Unsubscribe,
};

use super::super::object::Object;
use super::RealServer;
use super::session::RdtSession;
use super::stream::{Stream, Way};
use crate::app::Io;
use crate::media::OpenError;
use crate::rtsp::{Answer, RangePlayed, RangeWanted, RtspServer, RtspSession, TrackWanted, header, status};

/// The feature that players demand by this name: that headers of the entity are repeated with SETUP.
const RETAIN_ENTITY: &str = "com.real.retain-entity-for-setup";

impl RealServer {
    /// Returns a challenge of 32 digits.
    fn challenge(&mut self) -> String {
        format!("{:016x}{:016x}", self.draws.bits(), self.draws.bits())
    }

    /// Returns the first of a player's transports that can be granted: by UDP, or on the channel that it names. A
    /// player that names none has all streams on channel 0, as MPlayer requires: RDT identifies them.
    fn transport(&self, request: &Request<Vec<u8>>, taken: &[(u8, u8)]) -> Result<RealTransport, Answer> {
        let offers: RealTransports =
            header(request).ok_or_else(|| status(StatusCode::UnsupportedTransport))?;
        let is_free = |channel: &u8| taken.iter().all(|(first, _)| first != channel);
        let granted = offers.0.into_iter().find_map(|offer| match offer.lower {
            Lower::Udp => offer.client_port.filter(|port| *port > 0).map(|_| offer),
            Lower::Tcp => {
                let channel = offer.interleaved.map_or(Some(0), |named| Some(named).filter(is_free))?;
                Some(RealTransport { interleaved: Some(channel), ..offer })
            }
        });
        granted.ok_or_else(|| status(StatusCode::UnsupportedTransport))
    }
}

impl RtspServer for RealServer {
    type Session = RdtSession;

    fn open(&self, path: &str) -> Result<Arc<Object>, OpenError> {
        self.shelf.open(path)
    }

    fn session(&mut self) -> Option<&mut RdtSession> {
        self.session.as_mut()
    }

    fn timeout(&self) -> Duration {
        self.settings.timeout
    }

    fn can(&self, option: &str) -> bool {
        option == RETAIN_ENTITY
    }

    /// Players recognise RealNetworks' servers by a challenge.
    fn options(&mut self, answer: &mut Answer) {
        answer.insert_typed_header(&RealChallenge1(self.challenge()));
        answer.insert_header(rtsp::name("StatsMask"), "3");
    }

    fn describe(&self, answer: &mut Answer) {
        answer.insert_header(rtsp::name("ETag"), "1-1");
        answer.insert_header(rtsp::name("Vary"), "User-Agent, ClientID");
    }

    fn set_up(
        &mut self,
        wanted: TrackWanted<'_, Object>,
        answer: &mut Answer,
        io: &mut dyn Io,
    ) -> Result<(), Answer> {
        let mut transport = self.transport(wanted.request, &wanted.taken)?;
        let TrackWanted { request, path, media: object, track, .. } = wanted;
        let way = match (transport.lower, transport.client_port) {
            (Lower::Udp, Some(port)) => {
                let (channel, own) = self.ports.to(track, (port, port), io)?;
                transport.server_port = Some(own);
                Way::Udp(channel)
            }
            _ => Way::Interleaved(transport.interleaved.unwrap_or(0)),
        };
        if request.header(&rtsp::name(rtsp::REAL_CHALLENGE_2)).is_some() {
            // No player checks it.
            let digits = self.challenge();
            let sdr = digits.chars().step_by(4).collect();
            answer
                .insert_typed_header(&RealChallenge3 { answer: format!("{digits}01d0a8e3"), sdr: Some(sdr) });
        }
        answer.insert_typed_header(&RealTransports(vec![transport]));
        if self.session.is_none() {
            let id = self.draws.bits().to_string();
            self.session = Some(RdtSession::new(id, path, object.clone(), self.settings.clone()));
        }
        let session = self.session.as_mut().expect("it was just made if there was none");
        session.streams.push(Stream::new(track, way, object.streams[track].clone()));
        Ok(())
    }

    fn tear_down(&mut self, _: Instant, _: &mut dyn Io) {
        self.session = None;
    }
}

impl RtspSession for RdtSession {
    type Media = Object;

    fn id(&self) -> &str {
        &self.id
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn media(&self) -> &Arc<Object> {
        &self.object
    }

    fn is_playing(&self) -> bool {
        RdtSession::is_playing(self)
    }

    fn tracks(&self) -> impl Iterator<Item = (usize, Option<(u8, u8)>)> {
        self.streams.iter().map(|stream| match stream.way {
            Way::Udp(_) => (stream.number, None),
            Way::Interleaved(channel) => (stream.number, Some((channel, channel))),
        })
    }

    /// The changes of one request apply at once: nothing is sent in between. Unknown parts of it are passed over; rules
    /// of a stream that was not set up are known, for GStreamer asks for those of all described streams.
    fn heed(&mut self, request: &Request<Vec<u8>>) -> bool {
        let taken = request.typed_header::<Subscribe>();
        let left = request.typed_header::<Unsubscribe>();
        let asked = request.typed_header::<DeliveryBandwidth>();
        let mut is_known = taken.is_ok() && left.is_ok() && asked.is_ok();
        let of = |rules: Option<Vec<StreamRule>>, wanted| (rules.unwrap_or_default(), wanted);
        let (taken, left) = (taken.ok().flatten(), left.ok().flatten());
        for (rules, wanted) in [of(left.map(|left| left.0), false), of(taken.map(|taken| taken.0), true)] {
            for rule in rules {
                let number = usize::from(rule.stream);
                is_known &= match self.streams.iter_mut().find(|stream| stream.number == number) {
                    Some(stream) => stream.subscribe(rule.rule, wanted),
                    None => self.object.streams.get(number).is_some_and(|stream| stream.has_rule(rule.rule)),
                };
            }
        }
        if let Ok(Some(asked)) = asked {
            self.delivery_bps = Some(asked.bandwidth_bps.into());
        }
        is_known
    }

    fn play(
        &mut self,
        now: Instant,
        _: &Request<Vec<u8>>,
        wanted: RangeWanted,
        _: &mut Answer,
    ) -> Option<RangePlayed> {
        let (from, to) = self.begin(now, wanted.from, wanted.to)?;
        let streams = self.streams.iter().map(|stream| StreamInfo {
            url: format!("streamid={}", stream.number),
            seq: Some(0),
            rtptime: Some(0),
        });
        Some(RangePlayed { from, to, speed: 1.0, streams: streams.collect() })
    }

    fn pause(&mut self) {
        RdtSession::pause(self);
    }
}
