//! A presentation in SDP (RFC 4566), with the attributes that RTSP gives a meaning (RFC 2326 appendix C) and each
//! codec's parameters (RFC 6184 section 8, RFC 6416 section 7, RFC 3640 section 4).

use std::fmt::Write as _;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use streamgauge_base::Duration;

use super::asset::{Asset, Codec, Track};

mod assigned;
mod read;

pub use read::{Presentation, SdpProblem, TrackDescription, read};

/// The first dynamic payload type (RFC 3551 section 6); each further track has the next.
const FIRST_PAYLOAD_TYPE: u8 = 96;

/// Tracks that a dynamic payload type can distinguish; 127 is the last type.
pub const MOST_TRACKS: usize = 32;

/// IP, UDP and RTP headers of a packet; and about how much media one carries: for `b=AS`, which counts both
/// (RFC 3550 section 6.2).
const PACKET_HEADERS_BYTES: u64 = 40;
const USUAL_PAYLOAD_BYTES: u64 = 1400;

/// Others leave the padding away, or put too much.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(base64::engine::DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Returns the RTP payload type of a track, one of the first [`MOST_TRACKS`].
pub fn payload_type(track: usize) -> u8 {
    debug_assert!(track < MOST_TRACKS);
    FIRST_PAYLOAD_TYPE + track as u8
}

/// Returns the control URL of a track, relative to the presentation's.
pub fn control(track: usize) -> String {
    format!("trackID={}", track + 1)
}

/// Returns the track that `control`'s URL ends with.
pub fn track_of(control: &str) -> Option<usize> {
    let (_, number) = control.rsplit_once("trackID=")?;
    number.trim_end_matches('/').parse::<usize>().ok()?.checked_sub(1)
}

/// Returns the description of the first [`MOST_TRACKS`] tracks of `asset`, which is served at `origin`, with
/// an id of this version of it.
pub fn describe(asset: &Asset, origin: IpAddr, id: u64) -> String {
    let (family, any) = if origin.is_ipv4() { ("IP4", "0.0.0.0") } else { ("IP6", "::") };
    // A line break in a name would begin another line.
    let name = asset.name.replace(char::is_control, " ");
    let name = if name.trim().is_empty() { "-" } else { name.trim() };
    let mut text =
        format!("v=0\r\no=- {id} {id} IN {family} {origin}\r\ns={name}\r\nc=IN {family} {any}\r\nt=0 0\r\n");
    describe_range(&mut text, asset.duration);
    text.push_str("a=control:*\r\n");
    for (number, track) in asset.tracks.iter().take(MOST_TRACKS).enumerate() {
        describe_track(&mut text, number, track);
        // Sound and pictures seldom end together.
        if let Some(end) = track.end().filter(|_| asset.tracks.len() > 1) {
            describe_range(&mut text, end);
        }
    }
    text
}

fn describe_range(text: &mut String, end: Duration) {
    let end = end.as_nanos();
    let _ = write!(text, "a=range:npt=0-{}.{:06}\r\n", end / 1_000_000_000, end % 1_000_000_000 / 1000);
}

fn describe_track(text: &mut String, number: usize, track: &Track) {
    let kind = if track.is_video() { "video" } else { "audio" };
    let payload_type = payload_type(number);
    let (encoding, parameters) = encoding(&track.codec);
    let channels = match track.codec {
        Codec::Aac { channels, .. } => format!("/{channels}"),
        _ => String::new(),
    };
    let _ = write!(
        text,
        "m={kind} 0 RTP/AVP {payload_type}\r\nb=AS:{}\r\na=rtpmap:{payload_type} {encoding}/{}{channels}\r\n",
        session_kbps(track),
        track.clock_rate
    );
    if !parameters.is_empty() {
        let _ = write!(text, "a=fmtp:{payload_type} {parameters}\r\n");
    }
    if track.is_video() && track.units.len() > 1 {
        let nanos = track.duration().as_nanos();
        let milli = (track.units.len() as u128 * 1_000_000_000_000 + u128::from(nanos) / 2)
            / u128::from(nanos.max(1));
        let _ = write!(text, "a=framerate:{}.{:03}\r\n", milli / 1000, milli % 1000);
    }
    let _ = write!(text, "a=control:{}\r\n", control(number));
}

fn session_kbps(track: &Track) -> u64 {
    let packets: u64 =
        track.units.iter().map(|unit| u64::from(unit.bytes).div_ceil(USUAL_PAYLOAD_BYTES)).sum();
    let bytes = track.media_bytes().max(1);
    let with_headers = u128::from(bytes + packets * PACKET_HEADERS_BYTES);
    (u128::from(track.bit_rate_bps()) * with_headers / u128::from(bytes)).div_ceil(1000) as u64
}

/// Returns the encoding's name and its parameters.
fn encoding(codec: &Codec) -> (&'static str, String) {
    match codec {
        Codec::Sizes => ("H264", "packetization-mode=1".into()),
        Codec::H264 { sps, pps, .. } => {
            let mut text = String::from("packetization-mode=1");
            if let Some(&[_, profile, constraints, level, ..]) = sps.first().map(Vec::as_slice) {
                let _ = write!(text, ";profile-level-id={profile:02X}{constraints:02X}{level:02X}");
            }
            let sets: Vec<String> = sps.iter().chain(pps).map(|set| BASE64.encode(set)).collect();
            if !sets.is_empty() {
                let _ = write!(text, ";sprop-parameter-sets={}", sets.join(","));
            }
            ("H264", text)
        }
        Codec::Mpeg4Visual { config } => {
            // The visual object sequence header has the profile and level (ISO/IEC 14496-2 section 6.2.2); 1
            // is Simple Profile, Level 1, which decoders assume by default (RFC 6416 section 7.1).
            let profile = match config.as_slice() {
                [0, 0, 1, 0xb0, profile, ..] => *profile,
                _ => 1,
            };
            ("MP4V-ES", format!("profile-level-id={profile};config={}", hex::encode_upper(config)))
        }
        Codec::Aac { config, channels } => {
            // AAC Profile by channels (ISO/IEC 14496-3 table 1.12): level 2 up to two, level 4 up to five.
            let profile = if *channels <= 2 { 0x29 } else { 0x2a };
            let text = format!(
                "streamtype=5;profile-level-id={profile};mode=AAC-hbr;sizelength=13;indexlength=3;\
                 indexdeltalength=3;config={}",
                hex::encode(config)
            );
            ("mpeg4-generic", text)
        }
    }
}
