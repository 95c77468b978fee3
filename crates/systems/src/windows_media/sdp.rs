//! A server's description of an object, and a player's reading of it: SDP with Microsoft's attributes ([MS-RTSP]
//! section 2.2.5), and the object's header as data.

use std::fmt::Write as _;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use streamgauge_base::Duration;
use streamgauge_wire::asf::{
    self, FileProperties, Guid, Header, MutualExclusion, StreamBitRate, StreamProperties,
};

use super::object::{AUDIO, Object, VIDEO, encoding_at, places};
use super::{MOST_PACKET_BYTES, PAYLOAD_TYPE, PREROLL_MS};
use crate::rtsp::Described;

/// The control URL of retransmissions, and the start of those of streams.
const AGAIN: &str = "rtx";
const STREAM: &str = "stream=";

/// Units of 100 ns.
const UNITS_PER_MS: u64 = 10_000;

/// The fault of a server that is none of Microsoft's.
const OTHERS: &str = "the server is no Windows Media server: its description has no header of ASF. If its streams are \
                      RTP, use --player quicktime or --player vlc";

/// The description of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamDescription {
    /// Its number.
    pub number: u8,
    pub is_video: bool,
    /// In bit/s.
    pub bit_rate_bps: u64,
}

/// The content of a description.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Presentation {
    /// In the order of their numbers.
    pub streams: Vec<StreamDescription>,
    /// How long it plays.
    pub duration: Option<Duration>,
    /// Presentation times are later by it.
    pub preroll: Duration,
    /// The header of ASF.
    pub header: Header,
    /// The server retransmits lost packets.
    pub is_sent_again: bool,
}

/// Returns the control URL of the stream of that number; 0 is the stream of retransmissions.
pub fn control(number: u8) -> String {
    if number == 0 { AGAIN.into() } else { format!("{STREAM}{number}") }
}

/// Returns the number of the stream that the last part of a URL names.
fn stream_of(control: &str) -> Option<u8> {
    let last = control.rsplit('/').next()?;
    match last.strip_prefix(STREAM) {
        Some(number) => number.parse().ok().filter(|number| *number > 0),
        None => (last == AGAIN).then_some(0),
    }
}

/// Returns the header of `object`.
fn header_of(object: &Object) -> Header {
    let ms = (object.duration.as_nanos() / 1_000_000).max(1);
    let file = FileProperties {
        play_100ns: (ms + u64::from(PREROLL_MS)) * UNITS_PER_MS,
        send_100ns: ms * UNITS_PER_MS,
        preroll_ms: PREROLL_MS.into(),
        flags: asf::FLAG_SEEKABLE,
        min_packet_bytes: MOST_PACKET_BYTES,
        max_packet_bytes: MOST_PACKET_BYTES,
        max_bit_rate_bps: object.most_bps().min(u32::MAX.into()) as u32,
        ..FileProperties::default()
    };
    let (mut streams, mut bit_rates, mut pictures) = (Vec::new(), Vec::new(), Vec::new());
    for (number, place) in places(object) {
        let encoding = encoding_at(object, place);
        let known = encoding.properties.as_deref().cloned();
        let kind = if place.stream == VIDEO { Guid::VIDEO } else { Guid::AUDIO };
        let unknown = || StreamProperties { kind, ..StreamProperties::default() };
        streams.push(StreamProperties { number, ..known.unwrap_or_else(unknown) });
        let average_bps = encoding.bit_rate_bps.min(u32::MAX.into()) as u32;
        bit_rates.push(StreamBitRate { stream: number, average_bps });
        if place.stream == VIDEO {
            pictures.push(number);
        }
    }
    let exclusions = (pictures.len() > 1).then_some(MutualExclusion {
        kind: Guid::EXCLUSIVE_BY_BIT_RATE,
        is_advanced: false,
        streams: pictures,
    });
    Header { file, streams, bit_rates, exclusions: exclusions.into_iter().collect(), ..Header::default() }
}

/// Returns the head of a file of `object`, up to its first packet.
pub fn head(object: &Object) -> Vec<u8> {
    asf::write_head(&header_of(object)).unwrap_or_default()
}

/// Returns the description of `object`, which is served at `origin`.
pub fn describe(object: &Object, origin: IpAddr) -> String {
    let (family, any) = if origin.is_ipv4() { ("IP4", "0.0.0.0") } else { ("IP6", "::") };
    // A line break in a name would begin another line.
    let name = object.name.replace(char::is_control, " ");
    let name = if name.trim().is_empty() { "-" } else { name.trim() };
    let ms = object.duration.as_nanos() / 1_000_000;
    let mut text = format!(
        "v=0\r\no=- 1 1 IN {family} {origin}\r\ns={name}\r\nc=IN {family} {any}\r\nt=0 0\r\n\
         a=maxps:{MOST_PACKET_BYTES}\r\na=range:npt=0.000-{}.{:03}\r\na=control:*\r\na=etag:{{1}}\r\n\
         a=pgmpu:data:application/vnd.ms.wms-hdr.asfv1;base64,{}\r\n",
        ms / 1000,
        ms % 1000,
        BASE64.encode(head(object)),
    );
    for (number, place) in places(object) {
        let kind = if place.stream == AUDIO { "audio" } else { "video" };
        let rate = encoding_at(object, place).bit_rate_bps.div_ceil(1000);
        let url = control(number);
        let _ = write!(
            text,
            "m={kind} 0 RTP/AVP {PAYLOAD_TYPE}\r\nb=AS:{rate}\r\nb=RS:0\r\nb=RR:0\r\n\
             a=rtpmap:{PAYLOAD_TYPE} x-asf-pf/1000\r\na=control:{url}\r\na=stream:{number}\r\n",
        );
    }
    let _ = write!(
        text,
        "m=application 0 RTP/AVP {PAYLOAD_TYPE}\r\nb=RS:0\r\nb=RR:0\r\na=rtpmap:{PAYLOAD_TYPE} x-wms-rtx/1000\r\n\
         a=control:{}\r\na=stream:65536\r\n",
        control(0),
    );
    text
}

/// Reads a description.
///
/// # Errors
///
/// Fails with its fault.
pub fn read(text: &str) -> Result<Presentation, String> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("a=pgmpu:data:"));
    let data = line.and_then(|line| line.split_once("base64,")).ok_or(OTHERS)?.1;
    let head = BASE64.decode(data.trim()).map_err(|error| format!("the header is not base 64: {error}"))?;
    let controls = || text.lines().filter_map(|line| line.trim().strip_prefix("a=control:"));
    let is_sent_again = controls().any(|control| stream_of(control) == Some(0));
    Ok(Presentation { is_sent_again, ..read_head(&head)? })
}

/// Reads the head of a file; it has no data on retransmissions.
///
/// # Errors
///
/// Fails with its fault.
pub fn read_head(head: &[u8]) -> Result<Presentation, String> {
    let (header, _) = Header::read(head).map_err(|problem| format!("the header of ASF: {problem}"))?;
    let mut streams: Vec<StreamDescription> = header
        .streams
        .iter()
        .filter(|stream| stream.kind == Guid::VIDEO || stream.kind == Guid::AUDIO)
        .map(|stream| StreamDescription {
            number: stream.number,
            is_video: stream.kind == Guid::VIDEO,
            bit_rate_bps: header.bit_rate_bps(stream.number).unwrap_or(0).into(),
        })
        .collect();
    streams.sort_by_key(|stream| stream.number);
    if streams.is_empty() {
        return Err("the header of ASF has neither pictures nor sound".into());
    }
    let file = header.file;
    let duration = (file.flags & asf::FLAG_BROADCAST == 0 && file.send_100ns > 0)
        .then(|| Duration::from_nanos(file.send_100ns.saturating_mul(100)));
    Ok(Presentation {
        streams,
        duration,
        preroll: Duration::from_millis(file.preroll_ms.min(3_600_000)),
        header,
        is_sent_again: false,
    })
}

impl Described for Object {
    fn tracks(&self) -> usize {
        // By number; 0 is the stream of retransmissions.
        places(self).map(|(number, _)| usize::from(number) + 1).max().unwrap_or(1)
    }

    fn description(&self, origin: IpAddr) -> String {
        describe(self, origin)
    }

    fn track_of(control: &str) -> Option<usize> {
        stream_of(control).map(usize::from)
    }
}
