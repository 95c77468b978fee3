//! Headers of Apple's servers and players. They are not in any RFC; their form is that of Darwin Streaming Server
//! 6.0.3 and of QuickTime's requests.

use std::fmt;
use std::str::FromStr;

use rtsp_types::headers::{HeaderParseError, Headers, TypedHeader};
use streamgauge_base::Duration;

use super::decimal::{seconds, written};
use super::headers::{name, typed};
use super::parts::value_of;

/// In the response to DESCRIBE: protocols of retransmission that the server supports.
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

typed!(Retransmit, name(X_RETRANSMIT));

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

typed!(DynamicRate, name(X_DYNAMIC_RATE));

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

typed!(TransportOptions, name(X_TRANSPORT_OPTIONS));

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

typed!(Prebuffer, name(X_PREBUFFER));
