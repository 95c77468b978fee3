//! Windows Media's additions to SDP ([MS-RTSP] section 2.2.5): attributes by name and value, and names of
//! payload formats.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::words::words;

/// Others leave the padding away.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The beginning of an ASF file's header in a data URL (RFC 2397).
const ASF_HEADER: &str = "data:application/vnd.ms.wms-hdr.asfv1;base64,";

words! {
    /// Properties of the content, and its allowed operations ([MS-RTSP] section 2.2.5.2.6).
    ContentProperty {
        /// It is broadcast.
        Broadcast = "broadcast",
        /// The playlist's last entry.
        LastEntry = "lastentry",
        /// It plays from its beginning alone.
        NotSeekable = "notseekable",
        /// It plays at its own rate alone.
        NotStridable = "notstridable",
        /// A playlist's.
        Playlist = "playlist",
        /// There is a way back to the entry before.
        SkipBackward = "skipbackward",
        /// There is a way to the next.
        SkipForward = "skipforward",
    }
}

/// Meaning of a stream's number ([MS-RTSP] section 2.2.5.2.5).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StreamNumber {
    /// The ASF stream with this number, 1 to 65534.
    Asf(u16),
    /// Retransmissions: 65536 to 131070.
    Retransmissions(u32),
}

impl StreamNumber {
    /// The number that servers give to the stream of retransmissions.
    pub const RTX: StreamNumber = StreamNumber::Retransmissions(65_536);

    /// Returns `None` if it is neither.
    pub fn new(number: u32) -> Option<Self> {
        match number {
            1..=65_534 => Some(StreamNumber::Asf(number as u16)),
            65_536..=131_070 => Some(StreamNumber::Retransmissions(number)),
            _ => None,
        }
    }

    /// Returns the number as it is written.
    pub fn get(self) -> u32 {
        match self {
            StreamNumber::Asf(number) => number.into(),
            StreamNumber::Retransmissions(number) => number,
        }
    }
}

/// An attribute (`a=name:value`) of Windows Media's; the first three are the session's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WindowsMediaAttribute {
    /// `maxps`: bytes of the largest ASF data packet, not 0 (2.2.5.2.2).
    MaxPacketBytes(u32),
    /// `pgmpu` with an ASF file's header, and the first 50 bytes of its Data Object (2.2.5.2.3.1).
    AsfHeader(Vec<u8>),
    /// `type` (2.2.5.2.6).
    Type(Vec<ContentProperty>),
    /// `stream`, of each media (2.2.5.2.5).
    Stream(StreamNumber),
    /// `reliable`: better sent over TCP (2.2.5.2.4).
    Reliable,
}

/// An attribute with a faulty value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a={0} has no such value")]
pub struct AttributeFault(&'static str);

impl WindowsMediaAttribute {
    /// Returns `None` for attributes that are not Windows Media's, or describe the content in words.
    pub fn read(name: &str, value: Option<&str>) -> Option<Result<Self, AttributeFault>> {
        let value = value.unwrap_or_default().trim();
        let number = || value.parse::<u32>().ok();
        let (name, attribute) = match name {
            "maxps" => ("maxps", number().filter(|bytes| *bytes > 0).map(Self::MaxPacketBytes)),
            "pgmpu" => {
                let encoded = value.get(..ASF_HEADER.len())?.eq_ignore_ascii_case(ASF_HEADER);
                let header = encoded.then(|| BASE64.decode(&value[ASF_HEADER.len()..]).ok())?;
                ("pgmpu", header.map(Self::AsfHeader))
            }
            "type" => ("type", Some(Self::Type(ContentProperty::listed(value)))),
            "stream" => ("stream", number().and_then(StreamNumber::new).map(Self::Stream)),
            "reliable" => ("reliable", Some(Self::Reliable)),
            _ => return None,
        };
        Some(attribute.ok_or(AttributeFault(name)))
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            WindowsMediaAttribute::MaxPacketBytes(_) => "maxps",
            WindowsMediaAttribute::AsfHeader(_) => "pgmpu",
            WindowsMediaAttribute::Type(_) => "type",
            WindowsMediaAttribute::Stream(_) => "stream",
            WindowsMediaAttribute::Reliable => "reliable",
        }
    }

    /// Its value, if it has one.
    pub fn value(&self) -> Option<String> {
        Some(match self {
            WindowsMediaAttribute::MaxPacketBytes(bytes) => bytes.to_string(),
            WindowsMediaAttribute::AsfHeader(header) => format!("{ASF_HEADER}{}", BASE64.encode(header)),
            WindowsMediaAttribute::Type(properties) => ContentProperty::list(properties, ","),
            WindowsMediaAttribute::Stream(number) => number.get().to_string(),
            WindowsMediaAttribute::Reliable => return None,
        })
    }

    /// Returns the line of SDP.
    pub fn line(&self) -> String {
        let value = self.value().map_or_else(String::new, |value| format!(":{value}"));
        format!("a={}{value}\r\n", self.name())
    }
}

words! {
    /// Names in a payload type's `a=rtpmap`, each with 1000 ticks in a second.
    PayloadFormat {
        /// ASF data packets: [`rtp_asf`](crate::rtp_asf) ([MS-RTSP] section 2.2.5.3).
        Asf = "x-asf-pf/1000",
        /// Retransmissions and packet pairs (2.2.5.5).
        Retransmissions = "x-wms-rtx/1000",
        /// Forward error correction, which nothing here sends (2.2.5.4).
        ErrorCorrection = "x-wms-fec/1000",
    }
}

impl PayloadFormat {
    /// Reads `a=rtpmap`'s value, `96 x-asf-pf/1000`: its payload type and its meaning. `None` if it is
    /// another's.
    pub fn read(rtpmap: &str) -> Option<(u8, Self)> {
        let (payload_type, encoding) = rtpmap.trim().split_once(' ')?;
        let payload_type = payload_type.parse().ok().filter(|payload_type| *payload_type < 128)?;
        let encoding = encoding.trim();
        let format = Self::ALL.iter().find(|format| format.word().eq_ignore_ascii_case(encoding))?;
        Some((payload_type, *format))
    }

    /// Returns `a=rtpmap`'s value.
    pub fn rtpmap(self, payload_type: u8) -> String {
        format!("{payload_type} {}", self.word())
    }
}
