//! Headers of RFC 2326 that RFC 7826 changed, or that servers write otherwise.

use std::fmt;
use std::str::FromStr;

use rtsp_types::headers::{HeaderName, HeaderParseError, Headers, RANGE, RTP_INFO, SPEED, TypedHeader};
use streamgauge_base::Duration;

use super::decimal::{seconds, written};
use super::parts::split;

/// Returns a header's name for `rtsp-types`. Panics if it is not ASCII.
pub fn name(name: &'static str) -> HeaderName {
    HeaderName::from_static_str(name).expect("names are ASCII")
}

/// Lets `rtsp-types` read and write a header by its `FromStr` and `Display`.
macro_rules! typed {
    ($header:ty, $name:expr) => {
        impl TypedHeader for $header {
            fn from_headers(headers: impl AsRef<Headers>) -> Result<Option<Self>, HeaderParseError> {
                headers.as_ref().get(&$name).map(|value| value.as_str().parse()).transpose()
            }
            fn insert_into(&self, mut headers: impl AsMut<Headers>) {
                headers.as_mut().insert($name, self.to_string());
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

impl FromStr for Range {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        // `;time=` gives the time of the request's execution, which is unused.
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

typed!(Range, RANGE);

/// Reads `s.f` or `h:mm:ss.f`.
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

/// A PLAY response's data of one stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamInfo {
    /// As in SETUP; servers also write the URL of the SDP.
    pub url: String,
    /// The first packet's sequence number.
    pub seq: Option<u16>,
    /// The RTP timestamp of the range's start.
    pub rtptime: Option<u32>,
}

/// RTP-Info (RFC 2326 section 12.33).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RtpInfo(pub Vec<StreamInfo>);

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
            // Quotes are RFC 7826's (section 18.45), and all that makes such a URL one.
            let quote = if stream.url.contains([',', ';']) { "\"" } else { "" };
            write!(f, "{}url={quote}{}{quote}", if index > 0 { "," } else { "" }, stream.url)?;
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

typed!(RtpInfo, RTP_INFO);

/// Speed (RFC 2326 section 12.35): how much faster than in real time data is sent. Finite, of either sign.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Speed(pub f64);

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

typed!(Speed, SPEED);
