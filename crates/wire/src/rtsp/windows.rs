//! Headers of Windows Media's servers and players ([MS-RTSP] section 2.2.6). Their bodies are in [`bodies`],
//! their additions to SDP in [`sdp`].

pub mod bodies;
pub mod sdp;

use std::fmt;
use std::str::FromStr;

use rtsp_types::headers::{BANDWIDTH, HeaderParseError, Headers, SUPPORTED, TypedHeader};

use super::headers::{name, typed};
use super::parts::value_of;
use crate::words::words;

/// [`AccelerateStreaming`].
pub const X_ACCELERATE_STREAMING: &str = "X-Accelerate-Streaming";
/// [`PlaylistGenId`].
pub const X_PLAYLIST_GEN_ID: &str = "X-Playlist-Gen-Id";
/// [`Notice`].
pub const X_NOTICE: &str = "X-Notice";

/// Media types of bodies ([MS-RTSP] section 2.2.6.3). Windows Media writes `;charset=UTF-8` behind some.
pub mod media_types {
    /// Asks for a packet pair on the connection (2.2.7.12).
    pub const TCP_PACKET_PAIR: &str = "application/x-rtsp-packetpair";
    /// [`PacketPairRequest`](super::bodies::PacketPairRequest).
    pub const UDP_PACKET_PAIR: &str = "application/x-rtsp-udp-packetpair";
    /// [`EndOfStreamNotice`](super::bodies::EndOfStreamNotice).
    pub const EXTENSION_COMMAND: &str = "application/x-wms-extension-cmd";
    /// Permissions of a cache (2.2.7.4).
    pub const CONTENT_INFO: &str = "application/x-wms-getcontentinfo";
    /// A player's report as it connects (2.2.7.6; [MS-WMLOG]).
    pub const LOG_CONNECT: &str = "application/x-wms-Logconnectstats";
    /// A player's report of its reception (2.2.7.7; [MS-WMLOG]).
    pub const LOG_PLAY: &str = "application/x-wms-Logplaystats";
    /// An event (2.2.7.11).
    pub const EVENT: &str = "application/x-wms-sendevent";
    /// [`SelectStreams`](super::bodies::SelectStreams).
    pub const STREAM_SWITCH: &str = "application/x-wms-streamswitch";

    /// Returns whether `content_type` is this media type, with any parameters.
    pub fn is(content_type: &str, media_type: &str) -> bool {
        content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type)
    }
}

words! {
    /// Features of a server or player ([MS-RTSP] section 2.2.6.10, [MS-WMSP] section 2.2.1.7).
    WindowsMediaFeature {
        /// It sends, or takes, notices of a stream's end.
        EndOfStreamNotice = "com.microsoft.wm.eosmsg",
        /// The server sends faster than in real time where asked.
        FastCache = "com.microsoft.wm.fastcache",
        /// The player requests the numbers of ASF packets.
        LocationId = "com.microsoft.wm.locid",
        /// A packet pair has the SSRC of the retransmissions' stream.
        PacketPairSsrc = "com.microsoft.wm.packetpairssrc",
        /// The server chooses a playlist's next streams.
        PredictiveStreams = "com.microsoft.wm.predstrm",
        /// The server sends packet pairs.
        PacketPair = "com.microsoft.wm.srvppair",
        /// Streams can be switched while they play.
        StreamSwitch = "com.microsoft.wm.sswitch",
        /// The server declares how much is to be buffered.
        StartupProfile = "com.microsoft.wm.startupprofile",
    }
}

/// Supported: its sender's features ([MS-RTSP] section 2.2.6.10). A feature that is not there may not be
/// used; without the header nothing changes. It is the same in HTTP ([MS-WMSP] section 2.2.1.7).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SupportedFeatures(pub Vec<WindowsMediaFeature>);

impl SupportedFeatures {
    /// Returns whether it is among them.
    pub fn has(&self, feature: WindowsMediaFeature) -> bool {
        self.0.contains(&feature)
    }
}

impl FromStr for SupportedFeatures {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        Ok(SupportedFeatures(WindowsMediaFeature::listed(text)))
    }
}

impl fmt::Display for SupportedFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&WindowsMediaFeature::list(&self.0, ", "))
    }
}

typed!(SupportedFeatures, SUPPORTED);

/// X-Accelerate-Streaming: this much media is to be sent at this rate at first; in the response, the server's
/// choice, which is no more ([MS-RTSP] section 2.2.6.13).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AccelerateStreaming {
    /// `AccelDuration`: media, in ms.
    pub duration_ms: u32,
    /// `AccelBandwidth`, in bit/s.
    pub bandwidth_bps: u32,
}

impl FromStr for AccelerateStreaming {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        let number = |name| value_of(text.split(';').map(str::trim), name)?.parse().ok();
        let both = number("AccelDuration").zip(number("AccelBandwidth"));
        let (duration_ms, bandwidth_bps) = both.ok_or(HeaderParseError)?;
        Ok(AccelerateStreaming { duration_ms, bandwidth_bps })
    }
}

impl fmt::Display for AccelerateStreaming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccelDuration={};AccelBandwidth={}", self.duration_ms, self.bandwidth_bps)
    }
}

typed!(AccelerateStreaming, name(X_ACCELERATE_STREAMING));

/// Bandwidth: the rate of the player's connection, in bit/s (RFC 2326 section 12.6, [MS-RTSP] section
/// 2.2.6.1). Windows Media's players send 2147483647 where it is unknown.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bandwidth(pub u32);

impl FromStr for Bandwidth {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        text.trim().parse().map(Bandwidth).map_err(|_| HeaderParseError)
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

typed!(Bandwidth, BANDWIDTH);

/// X-Playlist-Gen-Id: the playlist's entry that a message is about, not 0 ([MS-RTSP] section 2.2.6.22).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlaylistGenId(pub u32);

impl FromStr for PlaylistGenId {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        let id = text.trim().parse().ok().filter(|id| *id > 0);
        id.map(PlaylistGenId).ok_or(HeaderParseError)
    }
}

impl fmt::Display for PlaylistGenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

typed!(PlaylistGenId, name(X_PLAYLIST_GEN_ID));

/// X-Notice: the event in the server's SET_PARAMETER ([MS-RTSP] section 2.2.6.18).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Which.
    pub code: u16,
    /// The text for people beside it, without quotes.
    pub text: String,
}

impl Notice {
    /// The code of a stream's end.
    pub const END_OF_STREAM: u16 = 2101;

    /// Returns the notice that a stream has ended.
    pub fn end_of_stream() -> Self {
        Notice { code: Self::END_OF_STREAM, text: "End-of-Stream Reached".into() }
    }
}

impl FromStr for Notice {
    type Err = HeaderParseError;
    fn from_str(text: &str) -> Result<Self, HeaderParseError> {
        let (code, text) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let code = code.parse().map_err(|_| HeaderParseError)?;
        Ok(Notice { code, text: text.trim_matches([' ', '"']).into() })
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\"", self.code, self.text)
    }
}

typed!(Notice, name(X_NOTICE));

#[cfg(test)]
mod tests;
