//! Server and player among strangers of a real network.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use streamgauge_base::{Chunk, Duration, Event, Instant};

use super::player::{DarwinPlayer, MediaTransport, PlayerKind, PlayerSettings};
use super::server::{DarwinServer, Preset, ServerSettings};
use super::{RTSP, RTSP_PORT};
use crate::app::{App, Input, Io};
use crate::media::{Library, assemble, preamble};
use crate::rtsp::no_room;
use crate::standalone::{
    Clients, ContentFault, Playable, Playing, Seen, Served, Service, Shows, TurnAway, by_name, counted,
};

impl Clients for ServerSettings {
    fn machine(&self, library: Arc<dyn Library>, name: &str, seed: u64) -> Box<dyn Served> {
        Box::new(DarwinServer::new(library, self.clone(), name, seed))
    }

    fn turn_away(&self) -> Box<dyn App> {
        Box::new(TurnAway::on(RTSP, no_room()))
    }
}

impl Service for ServerSettings {
    const SCHEME: &'static str = "rtsp";
    const PORTS: [u16; 2] = [RTSP_PORT, 8554];
    const PRESETS: &'static [&'static str] = &["source", "paper", "fitted"];

    fn preset(name: &str) -> Option<Self> {
        Preset::NAMED.iter().find(|(known, _)| *known == name).map(|&(_, preset)| ServerSettings::of(preset))
    }

    fn check(&self) -> Result<(), ContentFault> {
        ServerSettings::check(self)
    }

    fn give_up_after(&mut self, silence: Duration) {
        (self.rtp_timeout, self.rtsp_timeout) = (silence, silence);
    }
}

impl Served for DarwinServer {
    fn plays_over(&self) -> Option<&'static str> {
        let sent = self.sent();
        (sent.packets > 0).then_some(if sent.interleaved > 0 { "tcp" } else { "udp" })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let sent = self.sent();
        vec![
            ("rtp_packets_sent", sent.packets),
            ("rtp_bytes_sent", sent.bytes),
            ("rtcp_packets_sent", sent.rtcp_datagrams),
        ]
    }

    fn in_words(&self) -> String {
        let sent = self.sent();
        format!("{}, {}", counted(sent.packets, "RTP packet"), counted(sent.bytes, "byte"))
    }

    fn has_lost_its_client(&self) -> bool {
        DarwinServer::has_lost_its_client(self)
    }

    fn awaits_rest(&self) -> bool {
        DarwinServer::awaits_rest(self)
    }
}

/// The player, with the saved part of its pictures.
struct Viewed {
    player: DarwinPlayer,
    transport: MediaTransport,
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
        self.player.poll_event()
    }

    fn is_gone(&self) -> bool {
        self.player.is_gone()
    }
}

impl Playing for Viewed {
    fn seen(&mut self, now: Instant) -> Seen {
        let report = self.player.report_at(now);
        Seen {
            shows: Shows::of(&report.frames),
            bytes: report.bytes,
            lost: Some(report.lost),
            frames: report.frames,
            startup: report.startup,
            buffer: report.buffer,
            position: report.position,
            duration: report.duration,
        }
    }

    /// Counts of packets are RTP's, over all tracks.
    fn figures(&mut self, now: Instant) -> Map<String, Value> {
        let report = self.player.report_at(now);
        by_name(json!({
            "reliable_udp": report.reliable_udp,
            "packets_received": report.packets,
            "packets_lost": report.lost,
            "packets_duplicated": report.duplicates,
            "packets_retransmitted": report.retransmitted,
            "jitter_s": (report.packets > 1).then(|| report.jitter.as_secs_f64()),
            "rtcp_packets_sent": self.player.rtcp_datagrams(),
            "passed_over": self.player.passed_over(),
        }))
    }

    fn carried_by(&self) -> &'static str {
        match self.transport {
            _ if self.player.has_reliable_udp() => "Reliable UDP",
            MediaTransport::Udp => "udp",
            MediaTransport::Tcp => "tcp",
        }
    }

    fn in_words(&mut self, now: Instant, rate: &str) -> String {
        let report = self.player.report_at(now);
        let jitter = match report.packets {
            0 | 1 => "jitter unknown".to_owned(),
            _ => format!("jitter {:.1} ms", report.jitter.as_secs_f64() * 1e3),
        };
        let passed_over = match self.player.passed_over() {
            none if none.is_empty() => String::new(),
            wrong => format!(
                "passed over: {}
",
                wrong.join("; ")
            ),
        };
        format!(
            "{passed_over}packets: {} received ({} bytes, {rate}), {} lost, {} retransmitted, {} duplicates, {jitter}",
            report.packets, report.bytes, report.lost, report.retransmitted, report.duplicates,
        )
    }

    fn left_out(&self) -> Vec<String> {
        self.player.left_out().to_vec()
    }

    fn refused(&self) -> Option<u16> {
        self.player.refused()
    }

    /// Frames of the one track, in its order of decoding, that were shown: an elementary stream, H.264 in Annex B, MPEG-4
    /// Visual, or AAC in ADTS.
    fn take_kept(&mut self) -> Option<Vec<u8>> {
        while let Some(unit) = self.player.take_unit() {
            let track = self.player.main_track().filter(|(number, _)| *number == unit.track);
            if let Some(codec) = track.and_then(|(_, track)| track.codec.as_ref()).filter(|_| unit.shown) {
                let begins = !std::mem::replace(&mut self.begun, true);
                let mut bytes = if begins { preamble(codec) } else { Vec::new() };
                bytes.extend(assemble(codec, unit.payloads.iter().map(Chunk::head)));
                return Some(bytes);
            }
        }
        None
    }
}

impl Playable for PlayerSettings {
    const SCHEME: &'static str = "rtsp";
    const PORT: u16 = RTSP_PORT;
    const PLAYERS: &'static [&'static str] = &["quicktime", "vlc"];
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

    fn machine(self, url: &str, keep: bool, seed: u64) -> Box<dyn Playing> {
        let transport = self.transport;
        let mut player = DarwinPlayer::new(self, url, "play", seed);
        player.keep_units(keep);
        Box::new(Viewed { player, transport, begun: false })
    }
}
