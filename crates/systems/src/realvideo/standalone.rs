//! Server and player among strangers of a real network.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_wire::rm::{self, StreamProperties, VideoFrame};

use super::file::{ENDINGS, RealMediaFiles};
use super::player::{PlayerKind, PlayerSettings, RealPlayer};
use super::server::{Preset, RealServer, ServerSettings};
use super::{RTSP, RTSP_PORT};
use crate::app::{App, Input, Io};
use crate::media::Library;
use crate::media::object_files::Files;
use crate::playout::ReceivedUnit;
use crate::rtsp::{MediaTransport, no_room};
use crate::standalone::{
    Clients, ContentFault, Playable, Playing, Seen, Served, Service, Shows, TurnAway, by_name, counted,
    known, levels_in_words, names,
};

/// The names of [`Preset::NAMED`].
const PRESETS: [&str; 2] = names(&Preset::NAMED);

/// The names of [`PlayerKind::NAMED`].
const PLAYERS: [&str; 2] = names(&PlayerKind::NAMED);

impl Clients for ServerSettings {
    fn machine(&self, library: Arc<dyn Library>, name: &str, seed: u64) -> Box<dyn Served> {
        Box::new(RealServer::new(Arc::new(Files::<RealMediaFiles>::of(library)), self.clone(), name, seed))
    }

    fn turn_away(&self) -> Box<dyn App> {
        Box::new(TurnAway::on(RTSP, no_room()))
    }
}

impl Service for ServerSettings {
    const SCHEME: &'static str = "rtsp";
    const PORTS: [u16; 2] = [RTSP_PORT, 8554];
    const PRESETS: &'static [&'static str] = &PRESETS;

    fn preset(name: &str) -> Option<Self> {
        Preset::NAMED.iter().find(|(known, _)| *known == name).map(|&(_, preset)| ServerSettings::of(preset))
    }

    fn check(&self) -> Result<(), ContentFault> {
        ServerSettings::check(self)
    }

    fn give_up_after(&mut self, silence: Duration) {
        self.timeout = silence;
    }
}

impl Served for RealServer {
    fn plays_over(&self) -> Option<&'static str> {
        let sent = self.sent();
        (sent.packets > 0).then_some(if sent.interleaved > 0 { "tcp" } else { "udp" })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let sent = self.sent();
        vec![
            ("rdt_packets_sent", sent.packets),
            ("rdt_bytes_sent", sent.bytes),
            ("rdt_packets_resent", sent.again),
        ]
    }

    fn in_words(&self) -> String {
        let sent = self.sent();
        format!("{}, {}", counted(sent.packets, "RDT packet"), counted(sent.bytes, "byte"))
    }

    fn has_lost_its_client(&self) -> bool {
        RealServer::has_lost_its_client(self)
    }

    fn awaits_rest(&self) -> bool {
        RealServer::awaits_rest(self)
    }
}

/// The player, with the record of its levels and the saved part of its media.
struct Viewed {
    player: RealPlayer,
    transport: MediaTransport,
    /// Times that the level was reported, the first included.
    levels_told: u64,
    /// Whether something has been saved.
    begun: bool,
}

impl App for Viewed {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        self.player.handle(now, input, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.player.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.player.poll_event()?;
        self.levels_told += u64::from(event.name == "level_changed");
        Some(event)
    }

    fn is_gone(&self) -> bool {
        self.player.is_gone()
    }
}

impl Viewed {
    fn level_changes(&self) -> u64 {
        self.levels_told.saturating_sub(1)
    }

    /// Returns the head of a media file. With several encodings it has the lowest one's description.
    fn head(&self) -> Vec<u8> {
        let duration_ms = self.player.duration().map_or(0, |all| all.as_nanos() / 1_000_000);
        let duration_ms = u32::try_from(duration_ms).unwrap_or(u32::MAX);
        let said = (0..).zip(self.player.streams());
        let streams: Vec<_> = said
            .map(|(number, stream)| StreamProperties {
                number,
                duration_ms,
                mime_type: stream.mime_type.clone(),
                type_specific: stream
                    .opaque
                    .as_ref()
                    .and_then(|data| data.of_rule(0))
                    .unwrap_or_default()
                    .into(),
                ..StreamProperties::default()
            })
            .collect();
        rm::write_head("", duration_ms, &streams)
    }

    /// Returns a unit that was shown, in packets of such a file.
    fn packets(&self, unit: &ReceivedUnit, is_key: bool) -> Vec<u8> {
        let is_video = self.player.streams().nth(unit.track).is_some_and(|stream| stream.is_video);
        let (stream, at_ms) = (unit.track as u16, unit.timestamp.unwrap_or(0));
        let payloads = if is_video {
            let media: Vec<u8> = unit.payloads.iter().flat_map(Chunk::head).copied().collect();
            let frame =
                VideoFrame { picture: unit.number as u8, timestamp_ms: None, media: Chunk::bytes(media) };
            let whole = rm::whole(&frame);
            match whole.len() <= rm::MOST_PAYLOAD_BYTES {
                true => vec![whole],
                false => rm::fragment(&frame, rm::MOST_PAYLOAD_BYTES).unwrap_or_default(),
            }
        } else {
            unit.payloads.clone()
        };
        let packets = payloads.iter().map(|payload| rm::write_packet(stream, at_ms, is_key, payload.head()));
        packets.filter_map(Result::ok).flatten().collect()
    }
}

impl Playing for Viewed {
    fn seen(&mut self, now: Instant) -> Seen {
        let report = self.player.report_at(now);
        Seen {
            shows: Shows::of(&report.frames),
            bytes: report.came.bytes,
            lost: Some(report.came.missed.saturating_sub(report.came.repaired)),
            frames: report.frames,
            startup: report.startup,
            buffer: report.buffer,
            position: report.position,
            duration: report.duration,
        }
    }

    /// Packets are of RDT, of all streams.
    fn figures(&mut self, now: Instant) -> Map<String, Value> {
        let report = self.player.report_at(now);
        by_name(json!({
            "packets_received": report.came.packets,
            "packets_missed": report.came.missed,
            "packets_lost": report.came.missed.saturating_sub(report.came.repaired),
            "packets_retransmitted": report.came.repaired,
            "packets_duplicated": report.came.duplicates,
            "levels_bps": report.levels_bps.iter().copied().map(known).collect::<Vec<_>>(),
            "level_bps": report.level_bps.and_then(known),
            "level_changes": self.level_changes(),
        }))
    }

    fn carried_by(&self) -> &'static str {
        match self.transport {
            MediaTransport::Udp => "udp",
            MediaTransport::Tcp => "tcp",
        }
    }

    fn in_words(&mut self, now: Instant, rate: &str) -> String {
        let report = self.player.report_at(now);
        let came = report.came;
        format!(
            "packets: {} received ({} bytes, {rate}), {} lost, {} retransmitted, {} duplicates\n\
             levels: {}; {} changes",
            came.packets,
            came.bytes,
            came.missed.saturating_sub(came.repaired),
            came.repaired,
            came.duplicates,
            levels_in_words(report.level_bps, &report.levels_bps),
            self.level_changes(),
        )
    }

    fn refused(&self) -> Option<u16> {
        self.player.refused()
    }

    fn is_unplayable(&self) -> bool {
        self.player.is_unplayable()
    }

    /// Returns a RealMedia file of the units that were shown.
    fn take_kept(&mut self) -> Option<Vec<u8>> {
        while let Some((unit, is_key)) = self.player.take_unit() {
            if unit.shown && !unit.payloads.is_empty() {
                let begins = !std::mem::replace(&mut self.begun, true);
                let mut bytes = if begins { self.head() } else { Vec::new() };
                bytes.extend(self.packets(&unit, is_key));
                return Some(bytes);
            }
        }
        None
    }
}

impl Playable for PlayerSettings {
    const SCHEME: &'static str = "rtsp";
    const PORT: u16 = RTSP_PORT;
    const ENDINGS: &'static [&'static str] = &ENDINGS;
    const PLAYERS: &'static [&'static str] = &PLAYERS;
    const TRANSPORTS: &'static [&'static str] = &["udp", "tcp"];
    const ASKS: &'static str = "PLAY";
    const IS_CONNECTED: bool = true;

    fn preset(player: &str, transport: &str) -> Option<Self> {
        let (_, kind) = PlayerKind::NAMED.into_iter().find(|(known, _)| *known == player)?;
        let transport = if transport == "tcp" { MediaTransport::Tcp } else { MediaTransport::Udp };
        Some(PlayerSettings { transport, ..PlayerSettings::of(kind) })
    }

    fn check(&self) -> Result<(), ContentFault> {
        PlayerSettings::check(self)
    }

    fn machine(self, url: &str, keep: bool, _: u64) -> Box<dyn Playing> {
        let transport = self.transport;
        let mut player = RealPlayer::new(self, url);
        player.keep_units(keep);
        Box::new(Viewed { player, transport, levels_told: 0, begun: false })
    }
}
