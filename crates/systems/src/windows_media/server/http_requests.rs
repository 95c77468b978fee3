//! The server's answer to each request of HTTP ([MS-WMSP] section 3.2.5).

use std::sync::Arc;

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::http::{Request, Response};
use streamgauge_wire::mms::{DataPacket, StreamSwitch};
use streamgauge_wire::wmsp::{ContentFeature, PacketContent, Pragmas, RequestKind, WmspPacket, media_types};

use super::super::object::Object;
use super::super::sdp;
use super::http::HttpConnections;
use super::session::{Way, WmSession};
use super::{Shared, header};
use crate::app::{ChannelId, Io};
use crate::media::OpenError;
use crate::rtsp::decoded;

/// The name by which players recognise the server ([MS-WMSP] section 2.2.1.10).
const SERVER: &str = "Cougar/9.0.0.3372";

/// Bytes of a packet of a pair beside its random bytes: framing, and the length of the head ([MS-WMSP] section
/// 2.2.3.7).
const PAIR_FRAMING_BYTES: usize = 4 + 4;

impl HttpConnections {
    /// Answers a request.
    pub fn answer(
        &mut self,
        now: Instant,
        channel: ChannelId,
        request: &Request,
        shared: &mut Shared,
        io: &mut dyn Io,
    ) {
        let Ok(pragmas) = Pragmas::read(&request.headers) else { return self.refuse(channel, 400, io) };
        match RequestKind::of(request, &pragmas) {
            Some(RequestKind::Describe) => self.describe(channel, request, &pragmas, shared, io),
            Some(RequestKind::Play) => self.play(now, channel, request, &pragmas, shared, io),
            Some(RequestKind::SelectStream) => {
                let session = self.session.as_mut().filter(|_| pragmas.client_id == self.client_id);
                let done = session.is_some_and(|session| session.select(&pragmas.stream_switches, Way::Body));
                self.say(channel, if done { 200 } else { 400 }, !request.keeps_alive(), io);
            }
            Some(RequestKind::Stop) => {
                self.session.iter_mut().for_each(WmSession::pause);
                self.say(channel, 200, !request.keeps_alive(), io);
            }
            Some(RequestKind::KeepAlive | RequestKind::Log | RequestKind::SendEvent) => {
                self.say(channel, 200, !request.keeps_alive(), io);
            }
            // There is no playlist, no cache, and requests are answered one after another.
            Some(RequestKind::PlayNextEntry | RequestKind::GetContentInfo | RequestKind::Pipeline) | None => {
                self.refuse(channel, 400, io);
            }
        }
    }

    /// Sends a response without a body; the connection ends with it, or not.
    fn say(&mut self, channel: ChannelId, status: u16, is_last: bool, io: &mut dyn Io) {
        let Some(connection) = self.connections.get_mut(&channel) else { return };
        let response = Response::new(status).with("Server", SERVER).with("Content-Length", 0);
        connection.backlog.push(Chunk::bytes(response.write()), io);
        connection.is_last |= is_last;
    }

    /// Refuses an unacceptable or unreadable request, and ends the connection.
    pub fn refuse(&mut self, channel: ChannelId, status: u16, io: &mut dyn Io) {
        self.say(channel, status, true, io);
    }

    /// Returns the object that a request names, or the status of the refusal.
    fn find(shared: &Shared, request: &Request) -> Result<Arc<Object>, u16> {
        shared.shelf.open(&decoded(request.path())).map_err(|error| match error {
            OpenError::NotFound => 404,
            OpenError::Unsupported(_) => 415,
            OpenError::Failed(_) => 500,
        })
    }

    /// Returns the part of every response: the player's id, and the supported features.
    fn pragmas(&mut self, asked: &Pragmas, shared: &mut Shared) -> Pragmas {
        let known = asked.client_id.filter(|asked| Some(*asked) == self.client_id);
        let client_id = known.unwrap_or_else(|| shared.draws.bits() as u32);
        self.client_id = Some(client_id);
        Pragmas {
            no_cache: true,
            client_id: self.client_id,
            features: Some(vec![ContentFeature::Seekable]),
            timeout_ms: Some((shared.settings.timeout.as_nanos() / 1_000_000) as u32),
            ..Pragmas::default()
        }
    }

    fn describe(
        &mut self,
        channel: ChannelId,
        request: &Request,
        asked: &Pragmas,
        shared: &mut Shared,
        io: &mut dyn Io,
    ) {
        let object = match Self::find(shared, request) {
            Ok(object) => object,
            Err(status) => return self.refuse(channel, status, io),
        };
        let measures = asked.packet_pair == Some(true);
        let pragmas = Pragmas { packet_pair: measures.then_some(true), ..self.pragmas(asked, shared) };
        let header = header_of(&object, 0);
        let random = |head_bytes| (0..3).map(move |place| PacketContent::random_bytes(place, head_bytes));
        // However long the head is, the three have as many bytes together.
        let pair_bytes = if measures { random(0).map(|bytes| bytes + PAIR_FRAMING_BYTES).sum() } else { 0 };
        let mut response = Response::new(200)
            .with("Content-Type", media_types::HEADER)
            .with("Server", SERVER)
            .with("Content-Length", pair_bytes + header.iter().map(Chunk::len).sum::<usize>());
        pragmas.add_to(&mut response.headers);
        let head = response.write();
        let mut body = vec![];
        if measures {
            let head_bytes = (head.len() as u32).min(PacketContent::MOST_HEAD_BYTES);
            for (place, bytes) in random(head_bytes).enumerate() {
                let random = Chunk::bytes(shared.random(bytes));
                let content = PacketContent::PacketPair { place, head_bytes, random };
                body.push(WmspPacket::from(content).write());
            }
        }
        body.extend(header);
        let Some(connection) = self.connections.get_mut(&channel) else { return };
        connection.backlog.push(Chunk::bytes(head), io);
        body.into_iter().for_each(|packet| connection.backlog.push(packet, io));
        connection.is_last |= !request.keeps_alive();
    }

    fn play(
        &mut self,
        now: Instant,
        channel: ChannelId,
        request: &Request,
        asked: &Pragmas,
        shared: &mut Shared,
        io: &mut dyn Io,
    ) {
        let object = match Self::find(shared, request) {
            Ok(object) => object,
            Err(status) => return self.refuse(channel, status, io),
        };
        let mut pragmas = self.pragmas(asked, shared);
        let id = pragmas.client_id.unwrap_or_default().to_string();
        let header = header_of(&object, 0);
        let mut session = WmSession::new(id, 0, request.path().into(), object, shared.settings.clone());
        let wanted: Vec<StreamSwitch> = asked.stream_switches.clone();
        if wanted.is_empty() {
            session.select_usual(Way::Body);
        } else if !session.select(&wanted, Way::Body) {
            return self.refuse(channel, 400, io);
        }
        let from = Duration::from_millis(asked.stream_time_ms.unwrap_or(0).into());
        if session.begin(now, Some(from), None).is_none() {
            return self.refuse(channel, 400, io);
        }
        if let (Some(bps), Some(ms)) = (asked.accel_bps, asked.accel_duration_ms) {
            let granted = session.accelerate_for(bps.into(), Duration::from_millis(ms.into()));
            if let Some(granted) = granted {
                (pragmas.accel_bps, pragmas.accel_duration_ms) = (u32::try_from(granted).ok(), Some(ms));
            }
        }
        // One session: the session that another connection played is over.
        self.connections.values_mut().for_each(|other| {
            other.is_last |= std::mem::take(&mut other.plays);
        });
        self.session = Some(session);
        let Some(connection) = self.connections.get_mut(&channel) else { return };
        connection.plays = true;
        // Neither length nor chunks: the body ends with the connection.
        let mut response = Response::new(200)
            .with("Content-Type", media_types::FRAMED)
            .with("Server", SERVER)
            .with("Connection", "close");
        pragmas.add_to(&mut response.headers);
        connection.backlog.push(Chunk::bytes(response.write()), io);
        header.into_iter().for_each(|packet| connection.backlog.push(packet, io));
    }
}

/// Returns the header of an object in $H packets.
fn header_of(object: &Object, incarnation: u8) -> Vec<Chunk> {
    let packets = header::packets(&sdp::head(object), incarnation, DataPacket::MOST_BYTES);
    packets.into_iter().map(|packet| WmspPacket::from(PacketContent::Header(packet)).write()).collect()
}
