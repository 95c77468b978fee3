//! The additions of Microsoft's server to RTSP: streams that share ports, a stream for retransmissions, packets that
//! measure the link, acceleration, and switches between streams.

use std::sync::Arc;

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::rtsp::windows::bodies::{PacketPairRequest, SelectStreams, StreamUrl};
use streamgauge_wire::rtsp::windows::{
    AccelerateStreaming, PlaylistGenId, SupportedFeatures, WindowsMediaFeature, media_types,
};
use streamgauge_wire::rtsp::{Request, StatusCode, StreamInfo, Transports, names};

use super::super::object::{Object, place_of};
use super::super::sdp::control;
use super::rtsp_connection::Served;
use super::session::{Track, Way, WmSession};
use super::stream::Stream;
use crate::app::Io;
use crate::media::OpenError;
use crate::rtsp::{Answer, RangePlayed, RangeWanted, RtspServer, RtspSession, TrackWanted, header, status};

/// The ports of media, and those of retransmissions.
const MEDIA_PORTS: usize = 0;
const AGAIN_PORTS: usize = 1;

/// The server's features.
const FEATURES: [WindowsMediaFeature; 4] = [
    WindowsMediaFeature::PacketPair,
    WindowsMediaFeature::StreamSwitch,
    WindowsMediaFeature::EndOfStreamNotice,
    WindowsMediaFeature::FastCache,
];

/// Switches by each line, up to the first that cannot be. Returns whether all could be.
fn switch(session: &mut WmSession, switches: &SelectStreams) -> bool {
    let number = |stream: &Option<StreamUrl>| u8::try_from(stream.as_ref()?.number).ok();
    switches.0.iter().all(|wanted| match (number(&wanted.old), number(&wanted.new)) {
        (Some(from), Some(to)) => session.switch(from, to, wanted.level),
        _ => false,
    })
}

impl RtspServer for Served<'_> {
    type Session = WmSession;

    fn open(&self, path: &str) -> Result<Arc<Object>, OpenError> {
        self.shared.shelf.open(path)
    }

    fn session(&mut self) -> Option<&mut WmSession> {
        self.connection.session.as_mut()
    }

    fn timeout(&self) -> Duration {
        self.shared.settings.timeout
    }

    fn describe(&self, answer: &mut Answer) {
        answer.insert_typed_header(&SupportedFeatures(FEATURES.to_vec()));
        answer.insert_typed_header(&PlaylistGenId(1));
    }

    fn set_up(
        &mut self,
        wanted: TrackWanted<'_, Object>,
        answer: &mut Answer,
        io: &mut dyn Io,
    ) -> Result<(), Answer> {
        let mut transport = wanted.transport()?;
        let TrackWanted { path, media: object, track: number, .. } = wanted;
        let place = place_of(&object, number as u8);
        if number > 0 && place.is_none() {
            return Err(status(StatusCode::NotFound));
        }
        let ports = if place.is_some() { MEDIA_PORTS } else { AGAIN_PORTS };
        let channel = self.connection.ports.direct(ports, &mut transport, io)?;
        let way = match (channel, transport.interleaved) {
            (Some(channel), _) => Way::Udp(channel),
            (None, Some((channel, _))) => Way::Interleaved(channel),
            (None, None) => return Err(status(StatusCode::UnsupportedTransport)),
        };
        answer.insert_typed_header(&Transports(vec![transport]));
        if self.connection.session.is_none() {
            let id = self.shared.draws.bits().to_string();
            let ssrc = self.shared.draws.bits() as u32;
            self.connection.session =
                Some(WmSession::new(id, ssrc, path, object.clone(), self.shared.settings.clone()));
        }
        let session = self.connection.session.as_mut().expect("it was just made if there was none");
        match (place, way) {
            (Some(place), way) => {
                let stream = Stream::new(object, number as u8, place);
                session.tracks.push(Track { number, way, stream });
            }
            (None, Way::Udp(channel)) => session.again = Some(channel),
            // Over a connection nothing is sent again.
            (None, _) => return Err(status(StatusCode::UnsupportedTransport)),
        }
        Ok(())
    }

    fn take_parameters(&mut self, _: Instant, request: &Request<Vec<u8>>, io: &mut dyn Io) -> bool {
        let kind = request.header(&names::CONTENT_TYPE).map_or("", |kind| kind.as_str());
        let body = String::from_utf8_lossy(request.body());
        if media_types::is(kind, media_types::UDP_PACKET_PAIR) {
            body.parse::<PacketPairRequest>().is_ok() && self.probe(io)
        } else if media_types::is(kind, media_types::STREAM_SWITCH) {
            let switches = body.parse::<SelectStreams>().ok().filter(|switches| !switches.0.is_empty());
            let session = self.connection.session.as_mut();
            session.zip(switches).is_some_and(|(session, switches)| switch(session, &switches))
        } else {
            // Players' reports about themselves are ignored here.
            media_types::is(kind, media_types::LOG_CONNECT) || media_types::is(kind, media_types::LOG_PLAY)
        }
    }

    fn tear_down(&mut self, _: Instant, _: &mut dyn Io) {
        self.connection.session = None;
    }
}

impl RtspSession for WmSession {
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
        WmSession::is_playing(self)
    }

    fn tracks(&self) -> impl Iterator<Item = (usize, Option<(u8, u8)>)> {
        self.tracks.iter().map(|track| match track.way {
            Way::Interleaved(channel) => (track.number, Some((channel, channel + 1))),
            _ => (track.number, None),
        })
    }

    fn play(
        &mut self,
        now: Instant,
        request: &Request<Vec<u8>>,
        wanted: RangeWanted,
        answer: &mut Answer,
    ) -> Option<RangePlayed> {
        let asked = header::<AccelerateStreaming>(request);
        let goes_on = WmSession::is_playing(self) && wanted.from.is_none();
        let (from, to) = if goes_on {
            (self.position(), self.object.duration)
        } else {
            self.begin(now, wanted.from, wanted.to)?
        };
        // A player that asks for media at its own rate, and nothing else, holds enough.
        if asked.is_some() || wanted.speed.is_some() {
            let granted = self.accelerate(asked.map(|asked| asked.bandwidth_bps.into()));
            if let (Some(asked), Some(granted)) = (asked, granted) {
                let bandwidth_bps = granted.min(asked.bandwidth_bps.into()) as u32;
                answer.insert_typed_header(&AccelerateStreaming { bandwidth_bps, ..asked });
            }
        }
        let streams = self.tracks.iter().map(|track| StreamInfo {
            url: control(track.stream.number),
            seq: None,
            rtptime: None,
        });
        Some(RangePlayed { from, to, speed: 1.0, streams: streams.collect() })
    }

    fn pause(&mut self) {
        WmSession::pause(self);
    }
}
