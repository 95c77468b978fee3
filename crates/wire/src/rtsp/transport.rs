//! The Transport header (RFC 2326 section 12.39).
//!
//! That of `rtsp-types` is RFC 7826's with RFC 2326's parameters beside it, and a quoted `/` in an address of
//! either makes it panic; a server may not.

use std::fmt;
use std::str::FromStr;

use rtsp_types::headers::{HeaderParseError, Headers, TRANSPORT, TypedHeader};

use super::parts::split;

/// The transport under RTP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lower {
    /// UDP, the default.
    Udp,
    /// The RTSP connection.
    Tcp,
}

/// The purpose of a stream's setup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// The server sends.
    Play,
    /// The client sends.
    Record,
}

/// One transport of RTP with the profile AVP. Unknown parameters in a peer's header are left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transport {
    /// Over UDP or TCP.
    pub lower: Lower,
    /// To one receiver. RFC 2326's default is multicast, but peers that declare neither mean unicast.
    pub unicast: bool,
    /// The client's ports of RTP and RTCP.
    pub client_port: Option<(u16, u16)>,
    /// The server's.
    pub server_port: Option<(u16, u16)>,
    /// Channels of RTP and RTCP on the connection.
    pub interleaved: Option<(u8, u8)>,
    /// The sender's SSRC.
    pub ssrc: Option<u32>,
    /// The address that packets come from.
    pub source: Option<String>,
    /// Playing, if absent.
    pub mode: Option<Mode>,
}

impl Transport {
    /// Returns a transport over UDP to these ports of the client.
    pub fn udp(client_port: (u16, u16)) -> Self {
        Transport { client_port: Some(client_port), ..Transport::over(Lower::Udp) }
    }

    /// Returns a transport on these channels of the connection.
    pub fn tcp(interleaved: (u8, u8)) -> Self {
        Transport { interleaved: Some(interleaved), ..Transport::over(Lower::Tcp) }
    }

    fn over(lower: Lower) -> Self {
        Transport {
            lower,
            unicast: true,
            client_port: None,
            server_port: None,
            interleaved: None,
            ssrc: None,
            source: None,
            mode: None,
        }
    }

    /// Returns `None` for other transports than RTP/AVP, which are not served here. With `lenient` a
    /// parameter that cannot be read is left out.
    fn read(text: &str, lenient: bool) -> Result<Option<Self>, HeaderParseError> {
        let mut parts = split(text, ';').map(str::trim);
        let lower = match parts.next().unwrap_or_default().to_ascii_uppercase().as_str() {
            "RTP/AVP" | "RTP/AVP/UDP" => Lower::Udp,
            "RTP/AVP/TCP" => Lower::Tcp,
            "" => return Err(HeaderParseError),
            _ => return Ok(None),
        };
        let mut transport = Transport::over(lower);
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let read = transport.set(&name.trim().to_ascii_lowercase(), value.trim());
            if !lenient {
                read?;
            }
        }
        Ok(Some(transport))
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), HeaderParseError> {
        match name {
            "unicast" => self.unicast = true,
            "multicast" => self.unicast = false,
            "client_port" => self.client_port = Some(pair(value)?),
            "server_port" => self.server_port = Some(pair(value)?),
            "interleaved" => self.interleaved = Some(pair(value)?),
            "ssrc" => self.ssrc = Some(u32::from_str_radix(value, 16).map_err(|_| HeaderParseError)?),
            "source" => self.source = Some(value.into()),
            "mode" => self.mode = Some(mode(value)?),
            _ => {}
        }
        Ok(())
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.lower == Lower::Tcp { "RTP/AVP/TCP" } else { "RTP/AVP" })?;
        f.write_str(if self.unicast { ";unicast" } else { ";multicast" })?;
        if let Some(source) = &self.source {
            write!(f, ";source={source}")?;
        }
        if let Some((rtp, rtcp)) = self.client_port {
            write!(f, ";client_port={rtp}-{rtcp}")?;
        }
        if let Some((rtp, rtcp)) = self.server_port {
            write!(f, ";server_port={rtp}-{rtcp}")?;
        }
        if let Some((rtp, rtcp)) = self.interleaved {
            write!(f, ";interleaved={rtp}-{rtcp}")?;
        }
        if let Some(ssrc) = self.ssrc {
            write!(f, ";ssrc={ssrc:08X}")?;
        }
        match self.mode {
            Some(Mode::Play) => f.write_str(";mode=\"PLAY\""),
            Some(Mode::Record) => f.write_str(";mode=\"RECORD\""),
            None => Ok(()),
        }
    }
}

/// The transports that a client offers, the best first, or the one that the server chose. Reading leaves out
/// other transports than RTP/AVP; the list may be empty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Transports(pub Vec<Transport>);

impl Transports {
    /// Reads the transport that a server chose. Parameters that cannot be read are left out: a player needs few of them.
    ///
    /// # Errors
    ///
    /// If it is empty.
    pub fn chosen(text: &str) -> Result<Self, HeaderParseError> {
        Transports::read(text, true)
    }

    fn read(text: &str, lenient: bool) -> Result<Self, HeaderParseError> {
        let read: Result<Vec<_>, _> =
            split(text, ',').map(|part| Transport::read(part.trim(), lenient)).collect();
        Ok(Transports(read?.into_iter().flatten().collect()))
    }
}

impl FromStr for Transports {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        Transports::read(text, false)
    }
}

impl fmt::Display for Transports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, transport) in self.0.iter().enumerate() {
            f.write_str(if index > 0 { "," } else { "" })?;
            transport.fmt(f)?;
        }
        Ok(())
    }
}

super::headers::typed!(Transports, TRANSPORT);

/// Reads `a-b`; `a` alone has its RTCP behind it.
fn pair<N: FromStr + TryFrom<u32> + Copy + Into<u32>>(text: &str) -> Result<(N, N), HeaderParseError> {
    let number = |s: &str| s.trim().parse::<N>().map_err(|_| HeaderParseError);
    match text.split_once('-') {
        Some((first, second)) => Ok((number(first)?, number(second)?)),
        None => {
            let first = number(text)?;
            let second = N::try_from(first.into() + 1).map_err(|_| HeaderParseError)?;
            Ok((first, second))
        }
    }
}

/// Returns the first of a list, which may be in quotes.
pub(super) fn mode(text: &str) -> Result<Mode, HeaderParseError> {
    let first = text.trim_matches('"').split(',').next().unwrap_or_default().trim();
    match first.to_ascii_uppercase().as_str() {
        "PLAY" => Ok(Mode::Play),
        "RECORD" => Ok(Mode::Record),
        _ => Err(HeaderParseError),
    }
}
