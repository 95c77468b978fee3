//! Bodies of SET_PARAMETER ([MS-RTSP] section 2.2.7).

use std::fmt;
use std::str::FromStr;

use crate::mms::ThinningLevel;

/// Faults of a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BodyFault {
    /// No request for a packet pair.
    #[error("a body that asks for no packet pair: it is to be \"type: high-entropy-packetpair\"")]
    PacketPair,
    /// A line that switches no stream.
    #[error("line {line} switches no stream: it is to be \"SSEntry: OLD NEW LEVEL URL URL\"")]
    StreamSwitch {
        /// Its number, from 1 on.
        line: usize,
    },
    /// No notice of a stream's end.
    #[error("a body without \"EOF: true\"")]
    EndOfStream,
}

/// Asks for a packet pair over UDP, in the stream of retransmissions ([MS-RTSP] section 2.2.7.14).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketPairRequest {
    /// The server may choose how large the packets are.
    pub variable_size: bool,
}

impl FromStr for PacketPairRequest {
    type Err = BodyFault;
    fn from_str(text: &str) -> Result<Self, BodyFault> {
        let value = text.trim().strip_prefix("type:").ok_or(BodyFault::PacketPair)?;
        let mut words = value.split_ascii_whitespace();
        if words.next() != Some("high-entropy-packetpair") {
            return Err(BodyFault::PacketPair);
        }
        Ok(PacketPairRequest { variable_size: words.any(|word| word == "variable-size") })
    }
}

impl fmt::Display for PacketPairRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("type: high-entropy-packetpair")?;
        f.write_str(if self.variable_size { " variable-size" } else { "" })
    }
}

/// A stream by its number in SDP ([`sdp::StreamNumber`](super::sdp::StreamNumber)) and the URL that it is set up by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamUrl {
    /// Below 4294967295.
    pub number: u32,
    /// Without blanks.
    pub url: String,
}

/// One stream in another's place, or with another thinning ([MS-RTSP] section 2.2.7.10).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectStream {
    /// The stream that is no longer to be sent.
    pub old: Option<StreamUrl>,
    /// The stream that is to be sent.
    pub new: Option<StreamUrl>,
    /// How much of it.
    pub level: ThinningLevel,
}

/// The body of SET_PARAMETER, SETUP and TEARDOWN that switches streams: a line each; the specification has
/// one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SelectStreams(pub Vec<SelectStream>);

const ENTRY: &str = "SSEntry:";

impl SelectStream {
    /// Reads `SSEntry: 7 6 0 URL URL`; examples of [MS-RTSP] (section 4.4.4.2) omit the first word.
    fn read(line: &str) -> Option<Self> {
        let words = line.strip_prefix(ENTRY).unwrap_or(line);
        let mut words = words.split_ascii_whitespace();
        let mut number = || words.next()?.parse::<u32>().ok();
        let (old, new, level) = (number()?, number()?, number()?);
        let level = ThinningLevel::new(level.try_into().ok()?)?;
        let mut stream = |number: u32| match number {
            u32::MAX => Some(None),
            number => words.next().map(|url| Some(StreamUrl { number, url: url.into() })),
        };
        let (old, new) = (stream(old)?, stream(new)?);
        words.next().is_none().then_some(SelectStream { old, new, level })
    }
}

impl FromStr for SelectStreams {
    type Err = BodyFault;
    fn from_str(text: &str) -> Result<Self, BodyFault> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let read = |(index, line): (usize, &str)| {
            SelectStream::read(line.trim()).ok_or(BodyFault::StreamSwitch { line: index + 1 })
        };
        Ok(SelectStreams(lines.map(read).collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for SelectStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|SelectStream { old, new, level }| {
            let [from, to] =
                [old, new].map(|stream| stream.as_ref().map_or(u32::MAX, |stream| stream.number));
            write!(f, "{ENTRY} {from} {to} {}", level.get())?;
            [old, new].into_iter().flatten().try_for_each(|stream| write!(f, " {}", stream.url))?;
            f.write_str("\r\n")
        })
    }
}

/// Why a stream ends, if it is not simply at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndCause {
    /// The server's administrator ended it.
    Administrative,
    /// A playlist's entry is at its end.
    PlaylistEntry,
    /// It was played back to its beginning.
    Receding,
}

impl EndCause {
    const ALL: [(EndCause, &str); 3] = [
        (EndCause::Administrative, "AdministrativeDisconnection"),
        (EndCause::PlaylistEntry, "End-Of-Playlist-Entry"),
        (EndCause::Receding, "RecedingEos"),
    ];
}

/// The server's notice that a stream has ended ([MS-RTSP] section 2.2.7.3).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EndOfStreamNotice {
    /// The session's id.
    pub session: Option<String>,
    /// Why.
    pub cause: Option<EndCause>,
}

impl FromStr for EndOfStreamNotice {
    type Err = BodyFault;
    fn from_str(text: &str) -> Result<Self, BodyFault> {
        let (mut notice, mut ends) = (EndOfStreamNotice::default(), false);
        for (name, value) in text.lines().filter_map(|line| line.split_once(':')) {
            let (name, value) = (name.trim(), value.trim());
            let is_true = value.eq_ignore_ascii_case("true");
            if name.eq_ignore_ascii_case("Session") {
                notice.session = Some(value.into());
            } else if name.eq_ignore_ascii_case("EOF") {
                ends |= is_true;
            } else if is_true {
                let cause = EndCause::ALL.iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
                notice.cause = cause.map(|(cause, _)| *cause).or(notice.cause);
            }
        }
        if ends { Ok(notice) } else { Err(BodyFault::EndOfStream) }
    }
}

impl fmt::Display for EndOfStreamNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.session.as_ref().map_or(Ok(()), |session| write!(f, "Session: {session}\r\n"))?;
        f.write_str("EOF: true\r\n")?;
        let causes = EndCause::ALL.iter().filter(|(cause, _)| Some(*cause) == self.cause);
        causes.into_iter().try_for_each(|(_, name)| write!(f, "{name}: true\r\n"))
    }
}
