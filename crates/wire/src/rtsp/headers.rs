//! Headers of RFC 2326 and of Apple's servers and players.
//!
//! Apple's are not in any RFC; their form is that of Darwin Streaming Server 6.0.3 and of QuickTime's requests.

use std::fmt;
use std::str::FromStr;

use rtsp_types::headers::{HeaderName, HeaderParseError, Headers, RANGE, RTP_INFO, SPEED, TypedHeader};
use streamgauge_base::Duration;

use super::decimal::{seconds, written};
use super::transport::split;

/// In the response to DESCRIBE: protocols of retransmission that the server knows.
pub const X_ACCEPT_RETRANSMIT: &str = "x-Accept-Retransmit";
/// In the response to DESCRIBE: `1` if the server sends ahead of time where asked.
pub const X_ACCEPT_DYNAMIC_RATE: &str = "x-Accept-Dynamic-Rate";
/// [`Retransmit`].
pub const X_RETRANSMIT: &str = "x-Retransmit";
/// [`DynamicRate`].
pub const X_DYNAMIC_RATE: &str = "x-Dynamic-Rate";
/// [`TransportOptions`].
pub const X_TRANSPORT_OPTIONS: &str = "x-Transport-Options";
/// [`Prebuffer`].
pub const X_PREBUFFER: &str = "x-Prebuffer";

/// A header's name for `rtsp-types`. Panics if it is not ASCII.
pub fn name(name: &'static str) -> HeaderName {
    HeaderName::from_static_str(name).expect("names are ASCII")
}

/// Lets `rtsp-types` read and write a header by its `FromStr` and `Display`.
macro_rules! typed {
    ($header:ty) => {
        impl TypedHeader for $header {
            fn from_headers(headers: impl AsRef<Headers>) -> Result<Option<Self>, HeaderParseError> {
                headers.as_ref().get(&Self::NAME).map(|value| value.as_str().parse()).transpose()
            }
            fn insert_into(&self, mut headers: impl AsMut<Headers>) {
                headers.as_mut().insert(Self::NAME, self.to_string());
            }
        }
    };
    ($header:ty, $name:expr) => {
        impl TypedHeader for $header {
            fn from_headers(headers: impl AsRef<Headers>) -> Result<Option<Self>, HeaderParseError> {
                headers.as_ref().get(&name($name)).map(|value| value.as_str().parse()).transpose()
            }
            fn insert_into(&self, mut headers: impl AsMut<Headers>) {
                headers.as_mut().insert(name($name), self.to_string());
            }
        }
    };
}
pub(super) use typed;

/// Range in normal play time (RFC 2326 sections 3.6 and 12.29). Other units are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Where play begins; `None` for where it is now.
    pub from: Option<Duration>,
    /// Where it ends; `None` for the end.
    pub to: Option<Duration>,
}

impl Range {
    const NAME: HeaderName = RANGE;
}

impl FromStr for Range {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        // `;time=` says when the request shall be carried out, which nobody uses.
        let range = text.split(';').next().unwrap_or_default().trim();
        let (unit, range) = range.split_once('=').ok_or(HeaderParseError)?;
        let (from, to) = range.trim().split_once('-').ok_or(HeaderParseError)?;
        if !unit.trim().eq_ignore_ascii_case("npt") || (from.is_empty() && to.is_empty()) {
            return Err(HeaderParseError);
        }
        let time = |s: &str| if s.is_empty() { Ok(None) } else { Ok(Some(play_time(s.trim())?)) };
        let from = if from.trim() == "now" { None } else { time(from)? };
        Ok(Range { from, to: time(to)? })
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: Option<Duration>, none: &str| time.map_or(none.into(), |time| written(time, 5));
        write!(f, "npt={}-{}", time(self.from, "now"), time(self.to, ""))
    }
}

typed!(Range);

/// `s.f` or `h:mm:ss.f`.
fn play_time(text: &str) -> Result<Duration, HeaderParseError> {
    let Some((hours, rest)) = text.split_once(':') else { return seconds(text).ok_or(HeaderParseError) };
    let (minutes, rest) = rest.split_once(':').ok_or(HeaderParseError)?;
    let whole = |s: &str| s.bytes().all(|b| b.is_ascii_digit()).then(|| s.parse::<u32>().ok()).flatten();
    let minutes = whole(minutes).filter(|&m| m < 60).ok_or(HeaderParseError)?;
    let hours = whole(hours).ok_or(HeaderParseError)?;
    let above = (u64::from(hours) * 3600 + u64::from(minutes) * 60).checked_mul(1_000_000_000);
    let above = Duration::from_nanos(above.ok_or(HeaderParseError)?);
    let below = seconds(rest).filter(|&s| s < Duration::from_secs(60)).ok_or(HeaderParseError)?;
    Ok(above + below)
}

/// What a PLAY response says of one stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamInfo {
    /// As in SETUP; servers also write what stands in the SDP.
    pub url: String,
    /// The first packet's sequence number.
    pub seq: Option<u16>,
    /// The RTP timestamp of the range's start.
    pub rtptime: Option<u32>,
}

/// RTP-Info (RFC 2326 section 12.33).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RtpInfo(pub Vec<StreamInfo>);

impl RtpInfo {
    const NAME: HeaderName = RTP_INFO;
}

impl FromStr for RtpInfo {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        let stream = |text: &str| {
            let mut stream = StreamInfo { url: String::new(), seq: None, rtptime: None };
            for part in split(text, ';') {
                let (name, value) = part.split_once('=').ok_or(HeaderParseError)?;
                let value = value.trim();
                match name.trim().to_ascii_lowercase().as_str() {
                    "url" => stream.url = value.trim_matches('"').into(),
                    "seq" => stream.seq = Some(value.parse().map_err(|_| HeaderParseError)?),
                    "rtptime" => stream.rtptime = Some(value.parse().map_err(|_| HeaderParseError)?),
                    _ => {}
                }
            }
            if stream.url.is_empty() { Err(HeaderParseError) } else { Ok(stream) }
        };
        Ok(RtpInfo(split(text, ',').map(stream).collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for RtpInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, stream) in self.0.iter().enumerate() {
            write!(f, "{}url={}", if index > 0 { "," } else { "" }, stream.url)?;
            if let Some(seq) = stream.seq {
                write!(f, ";seq={seq}")?;
            }
            if let Some(rtptime) = stream.rtptime {
                write!(f, ";rtptime={rtptime}")?;
            }
        }
        Ok(())
    }
}

typed!(RtpInfo);

/// Speed (RFC 2326 section 12.35): how much faster than in real time data is sent. Finite, of either sign.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Speed(pub f64);

impl Speed {
    const NAME: HeaderName = SPEED;
}

impl FromStr for Speed {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        let speed = text.trim().parse().ok().filter(|speed: &f64| speed.is_finite());
        speed.map(Speed).ok_or(HeaderParseError)
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.5}", self.0)
    }
}

typed!(Speed);

/// x-Retransmit: in SETUP, the protocols of retransmission that the client would take, and the server's grant, which
/// repeats it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Retransmit {
    /// Apple's Reliable UDP is among them.
    pub reliable_udp: bool,
    /// `window`: the client's window in kB. Darwin Streaming Server reads it and does nothing with it.
    pub window_kbytes: Option<u32>,
    text: String,
}

impl Retransmit {
    const PROTOCOL: &str = "our-retransmit";

    /// Asks for Reliable UDP.
    pub fn ask(window_kbytes: Option<u32>) -> Self {
        let window = window_kbytes.map_or_else(String::new, |window| format!(";window={window}"));
        Retransmit { reliable_udp: true, window_kbytes, text: format!("{}{window}", Self::PROTOCOL) }
    }
}

impl FromStr for Retransmit {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        let ours = text.split(',').find_map(|protocol| {
            let mut parts = protocol.split(';').map(str::trim);
            parts.next().filter(|name| name.eq_ignore_ascii_case(Self::PROTOCOL)).map(|_| parts)
        });
        let reliable_udp = ours.is_some();
        let window_kbytes = value_of(ours.into_iter().flatten(), "window").and_then(|w| w.parse().ok());
        Ok(Retransmit { reliable_udp, window_kbytes, text: text.into() })
    }
}

impl fmt::Display for Retransmit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

typed!(Retransmit, X_RETRANSMIT);

/// x-Dynamic-Rate: whether the server may send ahead of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DynamicRate {
    /// It may.
    pub wanted: bool,
    /// In the response: the round trip that the server measured.
    pub rtt_ms: Option<u32>,
}

impl FromStr for DynamicRate {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        let mut parts = text.split(';').map(str::trim);
        let wanted = match parts.next().unwrap_or_default() {
            "0" => false,
            "1" => true,
            _ => return Err(HeaderParseError),
        };
        Ok(DynamicRate { wanted, rtt_ms: value_of(parts, "rtt").and_then(|ms| ms.parse().ok()) })
    }
}

impl fmt::Display for DynamicRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", u8::from(self.wanted))?;
        self.rtt_ms.map_or(Ok(()), |ms| write!(f, ";rtt={ms}"))
    }
}

typed!(DynamicRate, X_DYNAMIC_RATE);

/// x-Transport-Options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransportOptions {
    /// `late-tolerance`: how late a packet may come and still be of use.
    pub late_tolerance: Option<Duration>,
}

impl FromStr for TransportOptions {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        let late_tolerance = value_of(text.split(';').map(str::trim), "late-tolerance")
            .map(|value| seconds(value).ok_or(HeaderParseError));
        Ok(TransportOptions { late_tolerance: late_tolerance.transpose()? })
    }
}

impl fmt::Display for TransportOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.late_tolerance.map_or(Ok(()), |time| write!(f, "late-tolerance={}", written(time, 6)))
    }
}

typed!(TransportOptions, X_TRANSPORT_OPTIONS);

/// x-Prebuffer: how far back from the range's start the server may begin, and how far it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prebuffer {
    /// `maxtime`, in PLAY.
    pub most: Option<Duration>,
    /// `time`, in its response.
    pub used: Option<Duration>,
}

impl FromStr for Prebuffer {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        let time = |key| {
            let value = value_of(text.split(';').map(str::trim), key);
            value.map(|value| seconds(value).ok_or(HeaderParseError)).transpose()
        };
        Ok(Prebuffer { most: time("maxtime")?, used: time("time")? })
    }
}

impl fmt::Display for Prebuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = |key, time: Option<Duration>| time.map(|time| format!("{key}={}", written(time, 5)));
        let parts = [written("maxtime", self.most), written("time", self.used)];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(";"))
    }
}

typed!(Prebuffer, X_PREBUFFER);

/// The value of `name=value` among `parts`.
fn value_of<'a>(mut parts: impl Iterator<Item = &'a str>, name: &str) -> Option<&'a str> {
    parts.find_map(|part| {
        let (key, value) = part.split_once('=')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
