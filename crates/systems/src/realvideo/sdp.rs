//! A server's description of an object, and a player's reading of it: SDP with RealNetworks' attributes and rule books.

use std::fmt::Write as _;
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use streamgauge_base::Duration;
use streamgauge_wire::rm::{OpaqueData, StreamProperties};
use streamgauge_wire::sdp::{Attributes, Media, SdpLines};

use super::object::{AUDIO, Object, Stream, VIDEO, rules_of};
use crate::rtsp::Described;

/// The payload type of RealNetworks' streams, which is never read.
const PAYLOAD_TYPE: u8 = 101;

/// Media to be gathered before any is shown, as a published description has it. The player has its own.
const PREROLL_MS: u32 = 4_536;

/// Streams that a player sets up; further ones of a description are left out.
const MOST_STREAMS: usize = 8;

/// The end of a stream's control URL, before its number.
const CONTROL: &str = "streamid=";

/// The fault of a server that is none of RealNetworks'.
const OTHERS: &str = "the server is no RealVideo server: its description has no a=IsRealDataType. If its streams are \
                      RTP, use --player quicktime or --player vlc";

/// Returns the stream that `control` names.
pub fn stream_of(control: &str) -> Option<usize> {
    let (_, number) = control.rsplit_once(CONTROL)?;
    number.trim_end_matches('/').parse().ok()
}

/// A set of streams' rates that are selected together.
struct Set {
    video_bps: u64,
    audio_bps: u64,
}

/// Returns the sets that an object can be played in, the lowest first: each encoding, and beneath them, where there are
/// several, sound alone and key frames of the lowest pictures alone. An object of one encoding does not scale (Chung et
/// al., section V-F: 35 % of the clips had one level, at any bandwidth).
fn sets(object: &Object) -> Vec<Set> {
    let audio_bps = object.audio_bps();
    let mut rates = Vec::new();
    let video = &object.streams[VIDEO].encodings;
    if video.len() > 1 {
        rates.extend((audio_bps > 0).then_some(0));
        rates.extend(Some(video[0].key_rate_bps).filter(|rate| *rate > 0 && *rate < video[0].bit_rate_bps));
    }
    rates.extend(video.iter().map(|encoding| encoding.bit_rate_bps));
    rates.into_iter().map(|video_bps| Set { video_bps, audio_bps }).collect()
}

/// Returns the book of the whole: which rates the streams have at which bandwidth.
fn book_of_all(object: &Object) -> String {
    let sets = sets(object);
    let mut text = String::new();
    for (number, set) in sets.iter().enumerate() {
        let from = (number > 0).then_some(set.video_bps + set.audio_bps);
        let to = sets.get(number + 1).map(|next| next.video_bps + next.audio_bps);
        condition(&mut text, from, to);
        let _ = write!(text, "Stream{VIDEO}Bandwidth={}", set.video_bps);
        if set.audio_bps > 0 {
            let _ = write!(text, ",Stream{AUDIO}Bandwidth={}", set.audio_bps);
        }
        text.push(';');
    }
    text
}

/// Returns a stream's book: two rules of each encoding; the second depends on the first.
fn book_of(stream: &Stream) -> String {
    let mut text = String::new();
    let several = stream.encodings.len() > 1;
    for (number, encoding) in stream.encodings.iter().enumerate() {
        let to = stream.encodings.get(number + 1).map(|next| next.bit_rate_bps);
        // Below the lowest encoding its key frames are selected alone.
        let of_keys = if number == 0 { encoding.key_rate_bps } else { encoding.bit_rate_bps };
        condition(&mut text, Some(of_keys).filter(|_| several), to);
        let _ = write!(text, "AverageBandwidth={},Priority=9;", encoding.bit_rate_bps);
        condition(&mut text, Some(encoding.bit_rate_bps).filter(|_| several), to);
        let _ = write!(text, "AverageBandwidth=0,Priority=5,OnDepend=\"{}\";", rules_of(number)[0]);
    }
    text
}

fn condition(text: &mut String, from: Option<u64>, to: Option<u64>) {
    let parts =
        [from.map(|from| format!("($Bandwidth >= {from})")), to.map(|to| format!("($Bandwidth < {to})"))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() {
        let _ = write!(text, "#{},", parts.join(" && "));
    }
}

/// Returns the description of `object`, which is served at `origin`.
pub fn describe(object: &Object, origin: IpAddr) -> String {
    let (family, any) = if origin.is_ipv4() { ("IP4", "0.0.0.0") } else { ("IP6", "::") };
    // A line break in a name would begin another line.
    let name = object.name.replace(char::is_control, " ");
    let name = if name.trim().is_empty() { "-" } else { name.trim() };
    let ms = millis(object.duration);
    let range = format!("a=range:npt=0-{}.{:03}\r\na=length:npt={0}.{1:03}\r\n", ms / 1000, ms % 1000);
    let mut text = format!(
        "v=0\r\no=- 1 1 IN {family} {origin}\r\ns={name}\r\nc=IN {family} {any}\r\nt=0 0\r\n\
         a=SdpPlinVersion:1610641560\r\na=IsRealDataType:integer;1\r\na=StreamCount:integer;{}\r\n\
         a=ASMRuleBook:string;{}\r\n{range}",
        object.streams.len(),
        quoted(&book_of_all(object)),
    );
    for (number, stream) in object.streams.iter().enumerate() {
        let kind = if number == VIDEO { "video" } else { "audio" };
        let highest = stream.encodings.iter().map(|encoding| encoding.bit_rate_bps).max().unwrap_or(0);
        let said = stream.properties();
        let mime_type = said.map_or_else(|| format!("{kind}/x-pn-real{kind}"), |said| said.mime_type.clone());
        let preroll_ms = said.map_or(PREROLL_MS, |said| said.preroll_ms);
        let _ = write!(
            text,
            "m={kind} 0 RTP/AVP {PAYLOAD_TYPE}\r\nb=AS:{}\r\na=control:{CONTROL}{number}\r\n{range}\
             a=rtpmap:{PAYLOAD_TYPE} x-pn-real{kind}\r\na=mimetype:string;{}\r\n\
             a=AvgBitRate:integer;{highest}\r\na=MaxBitRate:integer;{highest}\r\na=StartTime:integer;0\r\n\
             a=Preroll:integer;{preroll_ms}\r\na=Duration:integer;{ms}\r\n",
            highest.div_ceil(1000),
            quoted(&mime_type.replace(char::is_control, " ")),
        );
        if let Some(said) = said {
            let all = stream.encodings.iter().filter_map(|encoding| encoding.properties.as_deref());
            let most = |of: fn(&StreamProperties) -> u32| all.clone().map(of).max().unwrap_or(0);
            // Before the rules: FFmpeg requires it so.
            let opaque = opaque_of(stream).write().unwrap_or_default();
            let _ = write!(
                text,
                "a=StreamName:string;{}\r\na=MaxPacketSize:integer;{}\r\na=AvgPacketSize:integer;{}\r\n\
                 a=OpaqueData:buffer;\"{}\"\r\n",
                quoted(&said.name.replace(char::is_control, " ")),
                most(|said| said.max_packet_bytes),
                most(|said| said.avg_packet_bytes),
                BASE64.encode(opaque),
            );
        }
        let _ = write!(text, "a=ASMRuleBook:string;{}\r\n", quoted(&book_of(stream)));
    }
    text
}

/// Returns the data that decoders need for each encoding, by the rules of the stream's book.
fn opaque_of(stream: &Stream) -> OpaqueData {
    let said = stream.encodings.iter().filter_map(|encoding| encoding.properties.as_deref());
    let encodings: Vec<_> = said.map(|said| said.type_specific.clone()).collect();
    match <[_; 1]>::try_from(encodings) {
        Ok([alone]) => OpaqueData::of(alone),
        Err(encodings) => {
            let rules = (0..encodings.len() as u16).flat_map(|encoding| [encoding; 2]).collect();
            OpaqueData { rules, encodings }
        }
    }
}

impl Described for Object {
    fn tracks(&self) -> usize {
        self.streams.len()
    }

    fn description(&self, origin: IpAddr) -> String {
        describe(self, origin)
    }

    fn track_of(control: &str) -> Option<usize> {
        stream_of(control)
    }
}

fn millis(time: Duration) -> u64 {
    time.as_nanos() / 1_000_000
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A server's description of an object.
#[derive(Clone, PartialEq, Debug)]
pub struct Presentation {
    /// Its length; `None` if it gives none.
    pub duration: Option<Duration>,
    /// The book of the whole.
    pub book: String,
    /// In the description's order, pictures and sound alone.
    pub streams: Vec<StreamDescription>,
}

/// The description of a stream.
#[derive(Clone, PartialEq, Debug)]
pub struct StreamDescription {
    /// Its number, as its control URL and RDT have it.
    pub number: usize,
    /// Pictures; else sound.
    pub is_video: bool,
    /// Its control URL.
    pub control: String,
    /// Its book.
    pub book: String,
    /// Its type, as `video/x-pn-realvideo`.
    pub mime_type: String,
    /// Its decoder's data, if the server sends it.
    pub opaque: Option<OpaqueData>,
}

/// Reads a description.
///
/// # Errors
///
/// Fails with the part of it that cannot be played.
pub fn read(text: &str) -> Result<Presentation, String> {
    let session = SdpLines::read(text).map_err(|problem| problem.to_string())?;
    let stream = |media: &Media| {
        let control = media.attributes.first("control")?.to_owned();
        let number = stream_of(&control)?;
        let is_video = media.kind == "video";
        (is_video || media.kind == "audio").then(|| StreamDescription {
            number,
            is_video,
            control,
            book: typed(&media.attributes, "ASMRuleBook").unwrap_or_default(),
            mime_type: typed(&media.attributes, "mimetype").unwrap_or_default(),
            opaque: typed(&media.attributes, "OpaqueData")
                .and_then(|data| OpaqueData::read(&BASE64.decode(data).ok()?).ok()),
        })
    };
    let streams: Vec<_> = session.media.iter().filter_map(stream).take(MOST_STREAMS).collect();
    if session.attributes.first("IsRealDataType").is_none() {
        return Err(OTHERS.into());
    }
    if streams.is_empty() {
        return Err(
            "nothing in it can be played: no stream of pictures or sound that is named streamid=N".into()
        );
    }
    let ends = session.media.iter().filter_map(|media| typed(&media.attributes, "Duration")?.parse().ok());
    let duration = ends.filter(|ms| *ms > 0).max().map(Duration::from_millis);
    let book = typed(&session.attributes, "ASMRuleBook").unwrap_or_default();
    Ok(Presentation { duration, book, streams })
}

/// Returns the value of `name:type;value`; for a text, the content of its quotes.
fn typed(of: &Attributes, name: &str) -> Option<String> {
    let (_, value) = of.first(name)?.split_once(';')?;
    let Some(inner) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return Some(value.to_owned());
    };
    let mut text = String::with_capacity(inner.len());
    let mut escaped = false;
    for letter in inner.chars() {
        if escaped || letter != '\\' {
            text.push(letter);
        }
        escaped = letter == '\\' && !escaped;
    }
    Some(text)
}
