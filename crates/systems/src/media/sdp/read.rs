//! Reads a presentation as leniently as its lines allow.

use base64::Engine as _;
use streamgauge_base::Duration;
use streamgauge_wire::sdp::{Attributes, Media, SdpLines};

use super::super::asset::{Codec, VIDEO_CLOCK_RATE};
use super::{BASE64, assigned};

/// A server's description of a presentation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Presentation {
    /// The control URL of the whole; `*` and a missing one are `None`: the URL that was described.
    pub control: Option<String>,
    /// How long it plays; `None` if it has no end.
    pub duration: Option<Duration>,
    /// In the description's order.
    pub tracks: Vec<TrackDescription>,
}

/// A server's description of a track.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrackDescription {
    /// `video` or `audio`, or another kind.
    pub media: String,
    /// Its encoding's name, such as `H264`; empty if there is none.
    pub encoding: String,
    /// `None` if it is none of ours, or its parameters are not in a form that we read.
    pub codec: Option<Codec>,
    /// RTP payload type. `None` if the media line names none.
    pub payload_type: Option<u8>,
    /// RTP ticks per second; 0 if they are not known.
    pub clock_rate: u32,
    /// The codec's parameters, unparsed.
    pub parameters: String,
    /// Its control URL, absolute or relative.
    pub control: Option<String>,
    /// Frames in 1000 seconds.
    pub frames_per_1000_s: Option<u64>,
    /// Where it ends in the presentation, if it has a range of its own (RFC 2326 section C.1.5).
    pub end: Option<Duration>,
}

/// Encodings of other servers' own protocols, which do not exist over plain RTP, and the players of those.
const OTHERS: [(&str, &str); 2] = [
    ("x-pn-real", "--player realplayer8 plays the files of a RealVideo server"),
    ("x-asf-pf", "--player wmp9 plays the files of a Windows Media server"),
];

/// Encodings of several media at once (RFC 2250, RFC 3555): their packets do not show where a picture ends.
const MULTIPLEXES: [&str; 5] = ["MP2T", "MP2P", "MP1S", "BMPEG", "DV"];

/// Encodings that repair or repeat others (RFC 2198, RFC 4588, RFC 5109, RFC 8627).
const REPAIRS: [&str; 5] = ["red", "rtx", "ulpfec", "parityfec", "flexfec"];

impl TrackDescription {
    /// Returns true of pictures.
    pub fn is_video(&self) -> bool {
        self.media == "video"
    }

    /// Returns the media and its encoding in words.
    pub fn name(&self) -> String {
        let encoding = match (&*self.encoding, self.payload_type) {
            ("", Some(payload_type)) => format!("of payload type {payload_type}"),
            ("", None) => String::new(),
            (encoding, _) => encoding.to_owned(),
        };
        format!("{} {encoding}", self.media).trim().to_owned()
    }

    /// Returns the reason why it cannot be played by RTP. Pictures of a codec that is not known can: their packets
    /// show where each ends (RFC 3551 section 5).
    pub fn obstacle(&self) -> Option<&'static str> {
        let is = |known: &&str| self.encoding.eq_ignore_ascii_case(known);
        if self.media != "video" && self.media != "audio" {
            return Some("neither pictures nor sound");
        }
        if self.payload_type.is_none() {
            return Some("its m= line has no payload type");
        }
        let lower = self.encoding.to_ascii_lowercase();
        if let Some((_, player)) = OTHERS.iter().find(|(part, _)| lower.contains(part)) {
            return Some(player);
        }
        if self.encoding.is_empty() {
            return Some("no a=rtpmap names its encoding");
        }
        if self.clock_rate == 0 {
            return Some("no a=rtpmap has its clock rate");
        }
        if MULTIPLEXES.iter().any(is) {
            return Some("a multiplex: its pictures cannot be counted");
        }
        if REPAIRS.iter().any(is) {
            return Some("it repairs another track");
        }
        if is(&"H264") && self.codec.is_none() {
            return Some("interleaved, packetization-mode 2");
        }
        None
    }
}

/// A description that is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(transparent)]
pub struct SdpProblem(#[from] streamgauge_wire::sdp::NoMedia);

/// Reads a description as leniently as its lines allow: a track that we cannot play is listed without a codec.
///
/// # Errors
///
/// If it describes no media.
pub fn read(text: &str) -> Result<Presentation, SdpProblem> {
    let description = SdpLines::read(text)?;
    let tracks = description.media.iter().map(track).collect();
    let control = description.attributes.first("control").filter(|&url| url != "*" && !url.is_empty());
    let ranges = description.media.iter().map(|media| &media.attributes).chain([&description.attributes]);
    let duration = ranges.filter_map(|of| of.first("range").and_then(range_end)).max();
    Ok(Presentation { control: control.map(str::to_owned), duration, tracks })
}

fn track(media: &Media) -> TrackDescription {
    let of = |name: &'static str| media.attributes.first(name).filter(|value| !value.is_empty());
    let types =
        media.formats.iter().filter_map(|format| format.parse().ok()).filter(|&found: &u8| found < 128);
    let maps = |&payload_type: &u8| {
        for_type(&media.attributes, "rtpmap", payload_type).is_some()
            || assigned::encoding(payload_type).is_some()
    };
    let payload_type = types.clone().find(maps).or_else(|| types.clone().next());
    let for_this = |name: &'static str| for_type(&media.attributes, name, payload_type?);
    let mut map = for_this("rtpmap").unwrap_or("").split('/').map(str::trim);
    let named = map.next().filter(|name| !name.is_empty());
    let assigned = payload_type.filter(|_| named.is_none()).and_then(assigned::encoding);
    let encoding = named.or(assigned.map(|(name, ..)| name)).unwrap_or_default().to_owned();
    let rate = map.next().and_then(|rate| rate.parse().ok()).or(assigned.map(|(_, rate, _)| rate));
    // All encodings of pictures but a few old ones have this clock (RFC 3551 section 5).
    let usual = if media.kind == "video" && !encoding.is_empty() { VIDEO_CLOCK_RATE } else { 0 };
    let clock_rate = rate.unwrap_or(usual);
    let channels = map.next().and_then(|count| count.parse().ok()).or(assigned.map(|(_, _, count)| count));
    let parameters = for_this("fmtp").unwrap_or("").to_owned();
    TrackDescription {
        media: media.kind.clone(),
        codec: (clock_rate > 0).then(|| codec(&encoding, &parameters, channels)).flatten(),
        encoding,
        payload_type,
        clock_rate,
        parameters,
        control: of("control").map(str::to_owned),
        frames_per_1000_s: of("framerate").and_then(thousandths),
        end: of("range").and_then(range_end),
    }
}

/// Returns the value of an attribute that begins with a payload type, `name:TYPE value`.
fn for_type<'a>(attributes: &'a Attributes, name: &'a str, payload_type: u8) -> Option<&'a str> {
    let mut split = attributes.all(name).filter_map(|value| value.split_once(char::is_whitespace));
    let is_it = |of: &str| of.trim_end_matches([';', ':']).parse() == Ok(payload_type);
    split.find(|(of, _)| is_it(of)).map(|(_, rest)| rest.trim())
}

/// Returns the end of an `npt` range in seconds or `h:m:s` (RFC 2326 section 3.6), if it has one above zero.
fn range_end(range: &str) -> Option<Duration> {
    let (unit, range) = range.split_once('=')?;
    let (_, end) = range.split_once('-').filter(|_| unit.trim().eq_ignore_ascii_case("npt"))?;
    let mut thousandths_in_all: u64 = 0;
    for part in end.trim().split(':') {
        thousandths_in_all = thousandths_in_all.checked_mul(60)?.checked_add(thousandths(part)?)?;
    }
    let nanos = thousandths_in_all.checked_mul(1_000_000)?;
    (nanos > 0).then(|| Duration::from_nanos(nanos))
}

/// Returns a decimal number times 1000, without finer digits.
fn thousandths(number: &str) -> Option<u64> {
    let (whole, fraction) = number.trim().split_once('.').unwrap_or((number.trim(), ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: String = fraction.chars().chain("000".chars()).take(3).collect();
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(fraction.parse().ok()?)
}

fn codec(encoding: &str, parameters: &str, channels: Option<u8>) -> Option<Codec> {
    let parameter = |name: &str| {
        let pairs = parameters.split(';').filter_map(|pair| pair.split_once('='));
        let mut named = pairs.filter(|(key, _)| key.trim().eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.trim())
    };
    let bytes = |name: &str| parameter(name).map_or(Some(Vec::new()), |text| hex::decode(text).ok());
    if encoding.eq_ignore_ascii_case("H264") {
        // Mode 2 interleaves (RFC 6184 section 5.4).
        if parameter("packetization-mode") == Some("2") {
            return None;
        }
        let sets = parameter("sprop-parameter-sets").unwrap_or("").split(',').filter(|set| !set.is_empty());
        let (mut sps, mut pps) = (Vec::new(), Vec::new());
        for set in sets.filter_map(|set| BASE64.decode(set.trim()).ok()) {
            match set.first().map(|header| header & 0x1f) {
                Some(7) => sps.push(set),
                Some(8) => pps.push(set),
                _ => {}
            }
        }
        Some(Codec::H264 { sps, pps, length_bytes: 4 })
    } else if encoding.eq_ignore_ascii_case("MP4V-ES") {
        Some(Codec::Mpeg4Visual { config: bytes("config")? })
    } else if encoding.eq_ignore_ascii_case("mpeg4-generic") {
        let is =
            |name: &str, value: &str| parameter(name).is_some_and(|said| said.eq_ignore_ascii_case(value));
        let plain = is("mode", "AAC-hbr")
            && is("sizelength", "13")
            && is("indexlength", "3")
            && is("indexdeltalength", "3");
        let config = bytes("config")?;
        let said = config.get(1).map(|second| second >> 3 & 0xf);
        (plain && config.len() >= 2).then(|| Codec::Aac { channels: said.or(channels).unwrap_or(1), config })
    } else {
        None
    }
}
