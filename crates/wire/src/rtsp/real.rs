//! Headers of RealNetworks' servers and players. They are not in any RFC; their form is that of RealPlayer's,
//! MPlayer's and FFmpeg's requests and of RealNetworks' published Helix sources.

use std::fmt;
use std::str::FromStr;

use rtsp_types::headers::{HeaderParseError, Headers, TRANSPORT, TypedHeader};

use super::headers::{name, typed};
use super::parts::split;
use super::transport::{Lower, Mode, mode};

/// [`Subscribe`].
pub const SUBSCRIBE: &str = "Subscribe";
/// [`Unsubscribe`].
pub const UNSUBSCRIBE: &str = "Unsubscribe";
/// [`DeliveryBandwidth`].
pub const SET_DELIVERY_BANDWIDTH: &str = "SetDeliveryBandwidth";
/// [`RealChallenge1`].
pub const REAL_CHALLENGE_1: &str = "RealChallenge1";
/// [`RealChallenge2`].
pub const REAL_CHALLENGE_2: &str = "RealChallenge2";
/// [`RealChallenge3`].
pub const REAL_CHALLENGE_3: &str = "RealChallenge3";

/// A rule of a stream's ASM rule book.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StreamRule {
    /// The stream, as the session description numbers it.
    pub stream: u16,
    /// The rule, from 0.
    pub rule: u16,
}

/// Rules that a player subscribes to, in SET_PARAMETER.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Subscribe(pub Vec<StreamRule>);

/// Rules that a player unsubscribes from, in SET_PARAMETER.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Unsubscribe(pub Vec<StreamRule>);

/// Reads `stream=0;rule=1,stream=0;rule=2`.
fn rules(text: &str) -> Result<Vec<StreamRule>, HeaderParseError> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let number = |name| value_of(part, name)?.parse().ok();
            let rule = number("stream").zip(number("rule"));
            rule.map(|(stream, rule)| StreamRule { stream, rule }).ok_or(HeaderParseError)
        })
        .collect()
}

fn write_rules(f: &mut fmt::Formatter<'_>, rules: &[StreamRule]) -> fmt::Result {
    rules.iter().enumerate().try_for_each(|(index, StreamRule { stream, rule })| {
        write!(f, "{}stream={stream};rule={rule}", if index > 0 { "," } else { "" })
    })
}

macro_rules! rules_header {
    ($header:ident, $name:expr) => {
        impl FromStr for $header {
            type Err = HeaderParseError;
            fn from_str(text: &str) -> Result<Self, HeaderParseError> {
                rules(text).map($header)
            }
        }

        impl fmt::Display for $header {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_rules(f, &self.0)
            }
        }

        typed!($header, name($name));
    };
}

rules_header!(Subscribe, SUBSCRIBE);
rules_header!(Unsubscribe, UNSUBSCRIBE);

/// SetDeliveryBandwidth, in SET_PARAMETER: how fast the server is to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeliveryBandwidth {
    /// `Bandwidth`, in bit/s.
    pub bandwidth_bps: u32,
    /// `BackOff`, which players set to 0. The unit is not known.
    pub back_off: Option<u32>,
}

impl FromStr for DeliveryBandwidth {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        let number = |name| value_of(text, name).map(|value| value.parse().map_err(|_| HeaderParseError));
        let bandwidth_bps = number("Bandwidth").ok_or(HeaderParseError)??;
        Ok(DeliveryBandwidth { bandwidth_bps, back_off: number("BackOff").transpose()? })
    }
}

impl fmt::Display for DeliveryBandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bandwidth={}", self.bandwidth_bps)?;
        self.back_off.map_or(Ok(()), |back_off| write!(f, ";BackOff={back_off}"))
    }
}

typed!(DeliveryBandwidth, name(SET_DELIVERY_BANDWIDTH));

/// RealChallenge1, in the response to OPTIONS: the challenge for the player, 32 digits. Its presence
/// identifies the server as RealNetworks'.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RealChallenge1(pub String);

impl FromStr for RealChallenge1 {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        Ok(RealChallenge1(text.trim().into()))
    }
}

impl fmt::Display for RealChallenge1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

typed!(RealChallenge1, name(REAL_CHALLENGE_1));

/// RealChallenge2, in the first SETUP: the player's answer. A server need not check it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RealChallenge2 {
    /// 40 digits.
    pub answer: String,
    /// `sd`: 8 digits of these.
    pub sd: Option<String>,
}

/// RealChallenge3, in the response: the server's answer to the player's own challenge, which players do not
/// check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RealChallenge3 {
    /// Its digits.
    pub answer: String,
    /// `sdr`: some of these.
    pub sdr: Option<String>,
}

/// `answer, key=value`; FFmpeg sends the comma with a blank, others may have a semicolon.
macro_rules! answer_header {
    ($header:ident, $key:ident, $name:expr) => {
        impl FromStr for $header {
            type Err = HeaderParseError;
            fn from_str(text: &str) -> Result<Self, HeaderParseError> {
                let (answer, rest) = text.split_once([',', ';']).unwrap_or((text, ""));
                let $key = value_of(rest, stringify!($key)).map(str::to_owned);
                Ok($header { answer: answer.trim().into(), $key })
            }
        }

        impl fmt::Display for $header {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.answer)?;
                let value = self.$key.as_ref();
                value.map_or(Ok(()), |value| write!(f, ", {}={value}", stringify!($key)))
            }
        }

        typed!($header, name($name));
    };
}

answer_header!(RealChallenge2, sd, REAL_CHALLENGE_2);
answer_header!(RealChallenge3, sdr, REAL_CHALLENGE_3);

/// Names of RDT in a Transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RealProtocol {
    /// `x-pn-tng`, the older name.
    PnTng,
    /// `x-real-rdt`.
    RealRdt,
}

/// One transport of RDT: `x-real-rdt/udp;client_port=6970;mode=play`. Unknown parameters in a peer's header
/// are left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RealTransport {
    /// By which name.
    pub protocol: RealProtocol,
    /// Over UDP or TCP.
    pub lower: Lower,
    /// The client's port; of a range the first.
    pub client_port: Option<u16>,
    /// The server's.
    pub server_port: Option<u16>,
    /// The channel on the connection; of a range the first.
    pub interleaved: Option<u8>,
    /// The address that packets come from.
    pub source: Option<String>,
    /// Playing, if absent.
    pub mode: Option<Mode>,
}

impl RealTransport {
    /// Returns a transport over UDP to this port of the client.
    pub fn udp(client_port: u16) -> Self {
        RealTransport { client_port: Some(client_port), ..RealTransport::over(Lower::Udp) }
    }

    /// Returns a transport on the connection, on a channel that the server chooses.
    pub fn tcp(interleaved: Option<u8>) -> Self {
        RealTransport { interleaved, ..RealTransport::over(Lower::Tcp) }
    }

    fn over(lower: Lower) -> Self {
        RealTransport {
            protocol: RealProtocol::RealRdt,
            lower,
            client_port: None,
            server_port: None,
            interleaved: None,
            source: None,
            mode: Some(Mode::Play),
        }
    }

    /// Returns `None` if it is not RDT to one receiver.
    fn read(text: &str) -> Result<Option<Self>, HeaderParseError> {
        let mut parts = split(text, ';').map(str::trim);
        let (protocol, lower) = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "x-pn-tng/udp" => (RealProtocol::PnTng, Lower::Udp),
            "x-pn-tng/tcp" => (RealProtocol::PnTng, Lower::Tcp),
            "x-real-rdt/udp" => (RealProtocol::RealRdt, Lower::Udp),
            "x-real-rdt/tcp" => (RealProtocol::RealRdt, Lower::Tcp),
            "" => return Err(HeaderParseError),
            _ => return Ok(None),
        };
        let mut transport = RealTransport { protocol, mode: None, ..RealTransport::over(lower) };
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match name.trim().to_ascii_lowercase().as_str() {
                "client_port" => transport.client_port = Some(first(value)?),
                "server_port" => transport.server_port = Some(first(value)?),
                "interleaved" => transport.interleaved = Some(first(value)?),
                "source" => transport.source = Some(value.into()),
                "mode" => transport.mode = Some(mode(value)?),
                _ => {}
            }
        }
        Ok(Some(transport))
    }
}

impl fmt::Display for RealTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.protocol {
            RealProtocol::PnTng => "x-pn-tng",
            RealProtocol::RealRdt => "x-real-rdt",
        })?;
        f.write_str(if self.lower == Lower::Tcp { "/tcp" } else { "/udp" })?;
        if let Some(source) = &self.source {
            write!(f, ";source={source}")?;
        }
        let port = |port: Option<u16>| port.map(u32::from);
        let numbers = [
            ("client_port", port(self.client_port)),
            ("server_port", port(self.server_port)),
            ("interleaved", self.interleaved.map(u32::from)),
        ];
        for (name, number) in numbers {
            number.map_or(Ok(()), |number| write!(f, ";{name}={number}"))?;
        }
        match self.mode {
            Some(Mode::Play) => f.write_str(";mode=play"),
            Some(Mode::Record) => f.write_str(";mode=record"),
            None => Ok(()),
        }
    }
}

/// The transports of RDT that a client offers, the best first, or the one that the server chose. Reading
/// leaves out other transports than RDT, which [`Transports`](super::Transports) reads from the same header;
/// the list may be empty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RealTransports(pub Vec<RealTransport>);

impl FromStr for RealTransports {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        let read: Result<Vec<_>, _> = split(text, ',').map(|part| RealTransport::read(part.trim())).collect();
        Ok(RealTransports(read?.into_iter().flatten().collect()))
    }
}

impl fmt::Display for RealTransports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .enumerate()
            .try_for_each(|(index, transport)| write!(f, "{}{transport}", if index > 0 { "," } else { "" }))
    }
}

typed!(RealTransports, TRANSPORT);

/// Reads `a`, or of `a-b` the first.
fn first<N: FromStr>(text: &str) -> Result<N, HeaderParseError> {
    let first = text.split('-').next().unwrap_or_default();
    first.trim().parse().map_err(|_| HeaderParseError)
}

/// Returns the value of `name=value` between semicolons.
fn value_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    super::parts::value_of(text.split(';').map(str::trim), name)
}
