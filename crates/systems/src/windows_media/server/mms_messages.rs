//! The server's answer to each message of MMS ([MS-MMSP] section 3.2.5).

use streamgauge_base::{Duration, Instant};
use streamgauge_wire::mms::{
    ConnectFunnel, ConnectedEx, DataPacket, EndOfStream, FileReport, FunnelReport, MmsMessage, OpenFile,
    PacketPairMode, Position, StartPlaying, TCP_PACKET_PAIR_BYTES, attributes,
};

use super::super::object::Object;
use super::super::{MOST_PACKET_BYTES, sdp};
use super::mms::{FILE, MmsConnection};
use super::session::{Way, WmSession};
use super::{Shared, header};
use crate::app::Io;

/// HRESULTs ([MS-ERREF] section 2.1.1).
const OK: u32 = 0;
const FAILED: u32 = 0x8000_4005;
const NOT_FOUND: u32 = 0x8007_0002;

/// The version that it announces, as Windows Media Services 9.
const VERSION: &str = "9.0.0.3372";

impl MmsConnection {
    /// Answers a message.
    pub fn answer(&mut self, now: Instant, message: MmsMessage, shared: &mut Shared, io: &mut dyn Io) {
        match message {
            MmsMessage::Connect(_) => {
                let connected = ConnectedEx {
                    result: OK,
                    packet_pair: PacketPairMode::WANTED,
                    server_version: VERSION.into(),
                    player_version: String::new(),
                    player_url: String::new(),
                    authentication: String::new(),
                };
                self.say(MmsMessage::ReportConnectedEx(connected), io);
            }
            MmsMessage::FunnelInfo(mode) => self.tell_client(mode, shared, io),
            MmsMessage::ConnectFunnel(funnel) => {
                let answer = match self.connect_funnel(&funnel, io) {
                    Some(way) => {
                        self.way = Some(way);
                        MmsMessage::ReportConnectedFunnel
                    }
                    None => MmsMessage::ReportDisconnectedFunnel(FAILED),
                };
                self.say(answer, io);
            }
            MmsMessage::OpenFile(file) => self.open(&file, shared, io),
            MmsMessage::ReadBlock(block) => self.send_header(block.incarnation, shared, io),
            MmsMessage::StreamSwitch(switches) => {
                let result = if self.select(&switches) { OK } else { FAILED };
                self.say(MmsMessage::ReportStreamSwitch(result), io);
            }
            MmsMessage::StartPlaying(start) => self.start(now, &start, io),
            MmsMessage::StopPlaying { incarnation, .. } => {
                self.session.iter_mut().for_each(WmSession::pause);
                let end = EndOfStream { result: EndOfStream::DONE, incarnation };
                self.say(MmsMessage::ReportEndOfStream(end), io);
            }
            MmsMessage::StartStriding { incarnation, .. } => {
                self.say(MmsMessage::ReportStartStriding { result: FAILED, incarnation }, io);
            }
            MmsMessage::CloseFile(_) => (self.session, self.object) = (None, None),
            // Players' reports about themselves are ignored here.
            _ => {}
        }
    }

    /// Sends the player's id; as three messages, by which it measures the link, if it asks for that on the connection.
    fn tell_client(&mut self, mode: PacketPairMode, shared: &mut Shared, io: &mut dyn Io) {
        self.client_id = shared.draws.bits() as u32;
        self.measures = mode == PacketPairMode::OVER_UDP && self.datagrams.is_some();
        let (packet_pair, sizes) = match mode {
            PacketPairMode::OVER_TCP => (mode, &TCP_PACKET_PAIR_BYTES[..]),
            PacketPairMode::OVER_UDP if self.measures => (mode, &[0][..]),
            _ => (PacketPairMode::DISABLED, &[0][..]),
        };
        for bytes in sizes {
            let random = shared.random(*bytes);
            let report = FunnelReport { result: OK, packet_pair, client_id: self.client_id, random };
            self.say(MmsMessage::ReportFunnelInfo(report), io);
        }
    }

    /// Returns the way of the media; `None` if that is impossible.
    fn connect_funnel(&self, funnel: &ConnectFunnel, io: &mut dyn Io) -> Option<Way> {
        if !funnel.over_udp {
            return Some(Way::Connection);
        }
        let channel = self.datagrams?;
        io.direct(channel, funnel.port);
        Some(Way::Datagrams(channel))
    }

    fn open(&mut self, file: &OpenFile, shared: &mut Shared, io: &mut dyn Io) {
        let path = format!("/{}", file.name.trim_start_matches('/'));
        let found = shared.shelf.open(&path).ok().zip(self.way);
        let mut report =
            FileReport { result: NOT_FOUND, incarnation: file.incarnation, ..FileReport::default() };
        if let Some((object, way)) = found {
            report = report_of(&object, file.incarnation);
            let (id, ssrc) = (self.client_id.to_string(), 0);
            let mut session = WmSession::new(id, ssrc, path, object.clone(), shared.settings.clone());
            if let Way::Datagrams(channel) = way {
                session.again = Some(channel);
            }
            (self.object, self.session) = (Some(object), Some(session));
        }
        self.say(MmsMessage::ReportOpenFile(report), io);
    }

    /// Sends the header, on the way of the media, and before it the packets by which the player measures the link.
    fn send_header(&mut self, incarnation: u32, shared: &mut Shared, io: &mut dyn Io) {
        let (Some(object), Some(way)) = (&self.object, self.way) else {
            return self.say(MmsMessage::ReportReadBlock { result: FAILED, incarnation }, io);
        };
        let head = sdp::head(object);
        self.say(MmsMessage::ReportReadBlock { result: OK, incarnation }, io);
        match way {
            Way::Datagrams(channel) => {
                for place in 0..if self.measures { DataPacket::PACKET_PAIR.len() } else { 0 } {
                    let random = shared.random(DataPacket::PACKET_PAIR_BYTES);
                    io.send(channel, DataPacket::packet_pair(place, random.as_slice().into()).write());
                }
                let packets = header::packets(&head, incarnation as u8, MOST_PACKET_BYTES as usize);
                packets.into_iter().for_each(|packet| io.send(channel, packet));
            }
            _ => {
                let packets = header::packets(&head, incarnation as u8, DataPacket::MOST_BYTES);
                packets.into_iter().for_each(|packet| self.backlog.push(packet, io));
            }
        }
    }

    fn start(&mut self, now: Instant, start: &StartPlaying, io: &mut dyn Io) {
        let from = match start.from {
            Position::Time(from) => Some(from),
            // It continues where it is; packets and bytes of a file that is made while it is sent are unknown.
            Position::Byte(_) | Position::Packet(_) | Position::Unset => None,
        };
        let begun = self.session.as_mut().zip(self.way).and_then(|(session, way)| {
            if session.tracks.is_empty() {
                session.select_usual(way);
            }
            session.incarnation = start.incarnation as u8;
            let begun = session.begin(now, from, None);
            if let Some((bps, ms)) = start.acceleration.filter(|_| begun.is_some()) {
                session.accelerate_for(bps.into(), Duration::from_millis(ms.into()));
            }
            begun
        });
        let result = if begun.is_some() { OK } else { FAILED };
        let (incarnation, file_id) = (start.incarnation, start.file_id);
        self.say(MmsMessage::ReportStartedPlaying { result, incarnation, file_id }, io);
    }
}

/// Returns the announced properties of a file.
fn report_of(object: &Object, incarnation: u32) -> FileReport {
    FileReport {
        result: OK,
        incarnation,
        file_id: FILE,
        attributes: attributes::CAN_SEEK,
        duration: object.duration,
        packet_bytes: MOST_PACKET_BYTES,
        // They are made while the file is sent.
        packets: 0,
        bit_rate_bps: object.most_bps().min(u32::MAX.into()) as u32,
        header_bytes: sdp::head(object).len() as u32,
    }
}
