//! A player's report of a stream that has ended.

use super::fault::Problem;
use super::fields::{Fields, Out};

/// Bytes of the whole (`CLIENT_LOG`) and of the part about the content (`CLIENT_LOG_INFO`).
const LOG_BYTES: u32 = 1_490;
const INFO_BYTES: u32 = 1_142;

/// `Logging`: how the stream was received ([MS-MMSP] sections 2.2.4.20, 2.2.1.1 and 2.2.1.2). Text is ISO
/// 8859-1 here, "-" if there is none; text beyond a field's length is cut.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClientLog {
    /// The URL that was played.
    pub url: String,
    /// The station's `.nsc` file.
    pub channel_url: String,
    /// The browser around the player.
    pub user_agent: String,
    /// The page around it.
    pub hosting_page: String,
    /// The player's version, four 16-bit parts with the major in the high bits, as all versions here.
    pub player_version: u64,
    /// `en-US`.
    pub language: String,
    /// The player's GUID.
    pub player_id: String,
    /// The program around it.
    pub host_program: String,
    /// Its version.
    pub host_program_version: u64,
    /// How long the content is in ms; 0 if it is live.
    pub file_duration_ms: u32,
    /// How large, in bytes.
    pub file_bytes: u64,
    /// The average rate received.
    pub average_bps: u32,
    /// The codec of sound.
    pub audio_codec: String,
    /// The codec of pictures.
    pub video_codec: String,
    /// Where play began in the content, in ms.
    pub start_ms: u32,
    /// How much of it was played, in ms.
    pub played_ms: u32,
    /// At which rate; 1 is normal.
    pub rate: i16,
    /// How many times it was buffered.
    pub bufferings: u32,
    /// For how long, in ms.
    pub buffering_ms: u32,
    /// Bytes of payload received.
    pub bytes_received: u64,
    /// Packets received.
    pub packets_received: u32,
    /// Packets that never arrived.
    pub packets_lost: u32,
    /// The lowest percentage of packets received or recovered in 30 s.
    pub lowest_quality_percent: u32,
    /// [`FileReport::file_id`](super::FileReport::file_id).
    pub file_id: u32,
    /// The player's IPv4 address, or all ones.
    pub address: u32,
    /// Its name.
    pub host: String,
    /// Its operating system.
    pub system: String,
    /// Its version.
    pub system_version: u64,
    /// Its processor.
    pub processor: String,
    /// Whether media were received over UDP; else TCP.
    pub over_udp: bool,
    /// Packets lost on the network.
    pub network_lost: u32,
    /// The most of them in a row.
    pub most_lost_in_a_row: u32,
    /// Packets that were asked for again.
    pub resends_asked: u32,
    /// Number of these that arrived in time.
    pub recovered: u32,
    /// Number of these that arrived at all.
    pub resends_received: u32,
}

impl ClientLog {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let mut log = ClientLog::default();
        fields.bytes(8)?;
        log.url = text(fields, 260)?;
        log.channel_url = text(fields, 260)?;
        log.user_agent = text(fields, 64)?;
        log.hosting_page = text(fields, 260)?;
        log.player_version = fields.u64()?;
        log.language = text(fields, 16)?;
        log.player_id = text(fields, 40)?;
        log.host_program = text(fields, 32)?;
        log.host_program_version = fields.u64()?;
        log.file_duration_ms = fields.u32()?;
        log.file_bytes = fields.u64()?;
        log.average_bps = fields.u32()?;
        log.audio_codec = text(fields, 64)?;
        log.video_codec = text(fields, 64)?;
        (log.start_ms, log.played_ms) = (fields.u32()?, fields.u32()?);
        log.rate = fields.u16()?.cast_signed();
        (log.bufferings, log.buffering_ms) = (fields.u32()?, fields.u32()?);
        log.bytes_received = fields.u64()?;
        (log.packets_received, log.packets_lost) = (fields.u32()?, fields.u32()?);
        // Packets recovered by error correction, always zero.
        fields.u32()?;
        log.lowest_quality_percent = fields.u32()?;
        // A result, which is always 0.
        fields.u32()?;
        (log.file_id, log.address) = (fields.u32()?, fields.u32()?);
        log.host = text(fields, 260)?;
        log.system = text(fields, 16)?;
        log.system_version = fields.u64()?;
        log.processor = text(fields, 16)?;
        // The protocol, which is "mms".
        fields.bytes(8)?;
        log.over_udp = text(fields, 8)? == "UDP";
        log.network_lost = fields.u32()?;
        log.most_lost_in_a_row = fields.u32()?;
        log.resends_asked = fields.u32()?;
        log.recovered = fields.u32()?;
        log.resends_received = fields.u32()?;
        Ok(log)
    }

    pub(super) fn write(&self, out: &mut Out) {
        out.u32(LOG_BYTES).u32(INFO_BYTES);
        put(out, &self.url, 260);
        put(out, &self.channel_url, 260);
        put(out, &self.user_agent, 64);
        put(out, &self.hosting_page, 260);
        out.u64(self.player_version);
        put(out, &self.language, 16);
        put(out, &self.player_id, 40);
        put(out, &self.host_program, 32);
        out.u64(self.host_program_version);
        out.u32(self.file_duration_ms).u64(self.file_bytes).u32(self.average_bps);
        put(out, &self.audio_codec, 64);
        put(out, &self.video_codec, 64);
        out.u32(self.start_ms).u32(self.played_ms).u16(self.rate.cast_unsigned());
        out.u32(self.bufferings).u32(self.buffering_ms).u64(self.bytes_received);
        out.u32(self.packets_received).u32(self.packets_lost).u32(0);
        out.u32(self.lowest_quality_percent).u32(0);
        out.u32(self.file_id).u32(self.address);
        put(out, &self.host, 260);
        put(out, &self.system, 16);
        out.u64(self.system_version);
        put(out, &self.processor, 16);
        put(out, "mms", 8);
        put(out, if self.over_udp { "UDP" } else { "TCP" }, 8);
        out.u32(self.network_lost).u32(self.most_lost_in_a_row).u32(self.resends_asked);
        out.u32(self.recovered).u32(self.resends_received);
    }
}

/// Reads text up to the first zero of this many bytes; the last is one.
fn text(fields: &mut Fields<'_>, bytes: usize) -> Result<String, Problem> {
    let text = &fields.bytes(bytes)?[..bytes - 1];
    let text: String = text.iter().take_while(|byte| **byte != 0).map(|byte| char::from(*byte)).collect();
    Ok(if text == "-" { String::new() } else { text })
}

/// Writes text in this many bytes, the last of them zero.
fn put(out: &mut Out, text: &str, bytes: usize) {
    let text = if text.is_empty() { "-" } else { text };
    let mut field: Vec<u8> = text.chars().map(|c| u8::try_from(c).unwrap_or(b'?')).take(bytes - 1).collect();
    field.resize(bytes, 0);
    out.bytes(&field);
}
