//! The additions of Apple's server to RTSP: Reliable UDP, rates beyond the media's own, how late media may be, and the
//! round trip that it measures before it answers.

use std::sync::Arc;

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::rtsp::{
    self, DynamicRate, Method, Prebuffer, Request, Retransmit, StatusCode, StreamInfo, TransportOptions,
    Transports,
};

use super::session::{Ask, Session};
use super::stream::{Beginnings, RtpStream, Way};
use super::{DarwinServer, Probe, millis};
use crate::app::Io;
use crate::media::{Asset, OpenError};
use crate::rtsp::{Answer, RangePlayed, RangeWanted, RtspServer, RtspSession, TrackWanted, answer, header};

impl DarwinServer {
    /// Carries a request out. `None` if its response has to wait for the round trip to be measured.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        request: &Request<Vec<u8>>,
        io: &mut dyn Io,
    ) -> Option<Answer> {
        let response = answer(self, now, request, io);
        if response.status() == StatusCode::Ok
            && *request.method() == Method::Setup
            && matches!(self.probe, Probe::Due)
        {
            self.probe = Probe::Sent { at: now, response: Box::new(response) };
            return None;
        }
        Some(response)
    }
}

impl RtspServer for DarwinServer {
    type Session = Session;

    fn open(&self, path: &str) -> Result<Arc<Asset>, OpenError> {
        self.library.open(path)
    }

    fn session(&mut self) -> Option<&mut Session> {
        self.session.as_mut()
    }

    fn timeout(&self) -> Duration {
        self.settings.rtp_timeout
    }

    fn describe(&self, answer: &mut Answer) {
        answer.insert_header(rtsp::name(rtsp::X_ACCEPT_RETRANSMIT), "our-retransmit");
        answer.insert_header(rtsp::name(rtsp::X_ACCEPT_DYNAMIC_RATE), "1");
    }

    fn set_up(
        &mut self,
        wanted: TrackWanted<'_, Asset>,
        answer: &mut Answer,
        io: &mut dyn Io,
    ) -> Result<(), Answer> {
        let mut transport = wanted.transport()?;
        let TrackWanted { request, url, path, media: asset, track, .. } = wanted;
        let way = transport.interleaved.map_or(Way::Plain, |(rtp, rtcp)| Way::Interleaved(rtp, rtcp));
        let retransmit: Option<Retransmit> = header(request);
        let granted =
            retransmit.filter(|ask| way == Way::Plain && ask.reliable_udp && self.settings.reliable_udp);
        let way = if granted.is_some() { Way::Reliable } else { way };
        let beginnings = Beginnings {
            ssrc: self.draws.bits() as u32,
            sequence: self.draws.bits() as u16,
            timestamp: self.draws.bits() as u32,
        };
        let media = self.ports.direct(track, &mut transport, io)?;
        transport.ssrc = Some(beginnings.ssrc);
        if let Some(granted) = &granted {
            answer.insert_typed_header(granted);
        }

        let tracked = (track, &asset.tracks[track]);
        let mut stream = RtpStream::new(tracked, way, media, url.to_string(), beginnings, &self.settings);
        if let Some(options) = header::<TransportOptions>(request) {
            if let Some(tolerance) = options.late_tolerance {
                stream.lateness.tolerate(millis(tolerance));
            }
            answer.insert_typed_header(&options);
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
            answer.insert_typed_header(&DynamicRate { wanted, rtt_ms });
        }
        answer.insert_typed_header(&Transports(vec![transport]));
        Ok(())
    }

    fn tear_down(&mut self, now: Instant, io: &mut dyn Io) {
        self.end_session(now, io);
    }
}

impl RtspSession for Session {
    type Media = Asset;

    fn id(&self) -> &str {
        &self.id
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn media(&self) -> &Arc<Asset> {
        &self.asset
    }

    fn is_playing(&self) -> bool {
        Session::is_playing(self)
    }

    fn tracks(&self) -> impl Iterator<Item = (usize, Option<(u8, u8)>)> {
        self.streams.iter().map(|stream| (stream.track, stream.way.interleaved()))
    }

    /// The allowed lateness is set for all tracks at once.
    fn heed(&mut self, request: &Request<Vec<u8>>) -> bool {
        let options = header::<TransportOptions>(request);
        if let Some(tolerance) = options.and_then(|options| options.late_tolerance) {
            for stream in &mut self.streams {
                stream.lateness.tolerate(millis(tolerance));
            }
        }
        true
    }

    fn play(
        &mut self,
        now: Instant,
        request: &Request<Vec<u8>>,
        wanted: RangeWanted,
        answer: &mut Answer,
    ) -> Option<RangePlayed> {
        let RangeWanted { from, to, speed } = wanted;
        let max_back = header::<Prebuffer>(request).and_then(|prebuffer| prebuffer.most);
        let play = self.begin(now, Ask { from, to, speed, max_back })?;
        if play.back > Duration::ZERO {
            answer.insert_typed_header(&Prebuffer { most: None, used: Some(play.back) });
        }
        let streams = self.streams.iter().map(|stream| StreamInfo {
            url: stream.url.clone(),
            seq: Some(stream.next_sequence()),
            rtptime: Some(stream.timestamp(&self.asset.tracks[stream.track], play.from)),
        });
        let streams = streams.collect();
        Some(RangePlayed { from: play.from, to: play.to, speed: play.speed, streams })
    }

    fn pause(&mut self) {
        Session::pause(self);
    }
}
