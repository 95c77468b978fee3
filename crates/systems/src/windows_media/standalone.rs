//! Server and player among strangers of a real network.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_wire::asf::{
    self, DataPacket, FLAG_BROADCAST, FileProperties, Header, MediaObject, PacketSize,
};

use super::file::{AsfFiles, ENDINGS};
use super::player::{PlayerKind, PlayerSettings, WmPlayer, WmTransport};
use super::server::{Preset, ServerSettings, WmServer};
use super::{MOST_PACKET_BYTES, RTSP, RTSP_PORT};
use crate::app::{App, Input, Io};
use crate::media::Library;
use crate::media::object_files::Files;
use crate::playout::ReceivedUnit;
use crate::rtsp::no_room;
use crate::standalone::{
    Clients, ContentFault, Playable, Playing, Seen, Served, Service, Shows, TurnAway, by_name, counted,
    known, levels_in_words, names,
};

/// The names of [`Preset::NAMED`].
const PRESETS: [&str; 2] = names(&Preset::NAMED);

/// The names of [`PlayerKind::NAMED`].
const PLAYERS: [&str; 2] = names(&PlayerKind::NAMED);

/// Media objects of this span are written together, so that packets of one size are full, in ms.
const TOGETHER_MS: u32 = 1_000;

impl Clients for ServerSettings {
    fn machine(&self, library: Arc<dyn Library>, name: &str, seed: u64) -> Box<dyn Served> {
        Box::new(
            WmServer::new(Arc::new(Files::<AsfFiles>::of(library)), self.clone(), name, seed).taking_any(),
        )
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

impl Served for WmServer {
    fn plays_over(&self) -> Option<&'static str> {
        let sent = self.sent();
        (sent.packets > 0).then_some(if sent.interleaved > 0 { "tcp" } else { "udp" })
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let sent = self.sent();
        vec![("packets_sent", sent.packets), ("bytes_sent", sent.bytes), ("packets_resent", sent.again)]
    }

    fn in_words(&self) -> String {
        let sent = self.sent();
        format!("{}, {}", counted(sent.packets, "packet"), counted(sent.bytes, "byte"))
    }

    fn has_lost_its_client(&self) -> bool {
        WmServer::has_lost_its_client(self)
    }

    fn awaits_rest(&self) -> bool {
        WmServer::awaits_rest(self)
    }
}

/// The player, with the record of its levels and the saved part of its media.
struct Viewed {
    player: WmPlayer,
    transport: WmTransport,
    /// Times that the level was reported, the first included.
    levels_told: u64,
    saved: Saved,
}

/// A file of ASF on its way.
#[derive(Default)]
struct Saved {
    /// Whether its head has been written.
    begun: bool,
    /// Media objects that wait for others, in the order in which they were shown.
    waiting: Vec<MediaObject<'static>>,
    /// Count of all so far.
    objects: u32,
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

    /// Moves media objects that were shown to `waiting`.
    fn gather(&mut self) {
        let preroll_ms = self.player.header().file.preroll_ms.min(u32::MAX.into()) as u32;
        while !self.saved.is_full()
            && let Some((unit, known)) = self.player.take_unit()
        {
            let Some(known) = known.filter(|_| unit.shown && !unit.payloads.is_empty()) else { continue };
            self.saved.waiting.push(MediaObject {
                stream: known.stream,
                number: 0,
                presentation_ms: unit.timestamp.unwrap_or(0).saturating_add(preroll_ms),
                is_key: known.is_key,
                data: bytes_of(&unit).into(),
            });
        }
    }
}

fn bytes_of(unit: &ReceivedUnit) -> Vec<u8> {
    unit.payloads.iter().flat_map(Chunk::head).copied().collect()
}

/// Returns the head of a file of still unknown length: each stream that the server has, as it was described.
fn head_of(said: &Header) -> Vec<u8> {
    let file = FileProperties {
        flags: said.file.flags | FLAG_BROADCAST,
        packets: 0,
        file_bytes: 0,
        min_packet_bytes: MOST_PACKET_BYTES,
        max_packet_bytes: MOST_PACKET_BYTES,
        ..said.file
    };
    // It was written before, by the server.
    asf::write_head(&Header { file, ..said.clone() }).unwrap_or_default()
}

impl Saved {
    /// Returns whether the waiting objects are to be written.
    fn is_full(&self) -> bool {
        let times = self.waiting.iter().map(|object| object.presentation_ms);
        times.clone().max().unwrap_or(0) - times.min().unwrap_or(0) >= TOGETHER_MS
    }

    /// Returns the packets of all waiting data, in the order of their times.
    fn packets(&mut self) -> Vec<u8> {
        let mut by_stream: Vec<(u8, Vec<MediaObject<'_>>)> = Vec::new();
        for object in std::mem::take(&mut self.waiting) {
            match by_stream.iter_mut().find(|(stream, _)| *stream == object.stream) {
                Some((_, objects)) => objects.push(object),
                None => by_stream.push((object.stream, vec![object])),
            }
        }
        let mut packets: Vec<DataPacket<'_>> = Vec::new();
        for (stream, objects) in &by_stream {
            let packed = asf::pack(objects, self.objects, *stream, MOST_PACKET_BYTES as usize);
            self.objects = self.objects.wrapping_add(objects.len() as u32);
            packets.extend(packed.into_iter().map(|packet| {
                let first = packet.payloads.first().and_then(|payload| payload.of);
                DataPacket { send_ms: first.map_or(0, |of| of.presentation_ms), ..packet }
            }));
        }
        packets.sort_by_key(|packet| packet.send_ms);
        let written =
            packets.iter().map(|packet| asf::write_packet(packet, PacketSize::Fixed(MOST_PACKET_BYTES)));
        written.filter_map(Result::ok).flatten().collect()
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

    /// Packets are of all streams.
    fn figures(&mut self, now: Instant) -> Map<String, Value> {
        let report = self.player.report_at(now);
        by_name(json!({
            "packets_received": report.came.packets,
            "packets_missed": report.came.missed,
            "packets_lost": report.came.missed.saturating_sub(report.came.repaired),
            "packets_retransmitted": report.came.repaired,
            "packets_duplicated": report.came.duplicates,
            "estimate_bps": report.estimate_bps,
            "levels_bps": report.levels_bps.iter().copied().map(known).collect::<Vec<_>>(),
            "level_bps": report.level_bps.and_then(known),
            "level_changes": self.level_changes(),
        }))
    }

    fn carried_by(&self) -> &'static str {
        match self.transport {
            WmTransport::Tcp => "tcp",
            _ => "udp",
        }
    }

    fn in_words(&mut self, now: Instant, rate: &str) -> String {
        let report = self.player.report_at(now);
        let came = report.came;
        let link = report
            .estimate_bps
            .map_or(String::new(), |bps| format!("\nlink: {:.0} kbit/s by the packet pair", bps / 1e3));
        format!(
            "packets: {} received ({} bytes, {rate}), {} lost, {} retransmitted, {} duplicates\n\
             levels: {}; {} changes{link}",
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

    /// Returns a file of ASF of the media objects that were shown, each in its own stream.
    fn take_kept(&mut self) -> Option<Vec<u8>> {
        self.gather();
        let is_due = self.saved.is_full() || self.player.has_ended();
        if self.saved.waiting.is_empty() || !is_due {
            return None;
        }
        let begins = !std::mem::replace(&mut self.saved.begun, true);
        let mut bytes = if begins { head_of(self.player.header()) } else { Vec::new() };
        bytes.extend(self.saved.packets());
        Some(bytes)
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
        let transport = if transport == "tcp" { WmTransport::Tcp } else { WmTransport::Udp };
        Some(PlayerSettings { transport, ..PlayerSettings::of(kind) })
    }

    fn check(&self) -> Result<(), ContentFault> {
        PlayerSettings::check(self)
    }

    fn machine(self, url: &str, keep: bool, _: u64) -> Box<dyn Playing> {
        let transport = self.transport;
        let mut player = WmPlayer::new(self, url);
        player.keep_units(keep);
        Box::new(Viewed { player, transport, levels_told: 0, saved: Saved::default() })
    }
}
