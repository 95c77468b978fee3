//! An asset: what a URL names.

use std::fmt;
use std::sync::Arc;

use streamgauge_base::Duration;

/// Something to stream.
#[derive(Clone, Debug)]
pub struct Asset {
    /// What people call it.
    pub name: String,
    /// How long it plays.
    pub duration: Duration,
    /// Video and sound, in the file's order.
    pub tracks: Vec<Track>,
}

/// One stream of access units.
#[derive(Clone, Debug)]
pub struct Track {
    /// What its bytes are.
    pub codec: Codec,
    /// RTP ticks per second.
    pub clock_rate: u32,
    /// In decoding order, which is the order of transmission.
    pub units: Vec<Unit>,
    /// Where the units' bytes are.
    pub bytes: Bytes,
}

/// What a track's bytes are, with what a player must know before the first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Codec {
    /// Frames of which only the sizes are known; sent as one H.264 NAL unit each, all filler.
    Sizes,
    /// H.264 in units of length-prefixed NAL units (ISO/IEC 14496-15); RFC 6184.
    H264 {
        /// Sequence parameter sets.
        sps: Vec<Vec<u8>>,
        /// Picture parameter sets.
        pps: Vec<Vec<u8>>,
        /// Bytes of each length.
        length_bytes: u8,
    },
    /// MPEG-4 Visual; RFC 6416.
    Mpeg4Visual {
        /// Visual object sequence to video object layer: the decoder's configuration.
        config: Vec<u8>,
    },
    /// AAC, one raw access unit each; RFC 3640.
    Aac {
        /// AudioSpecificConfig.
        config: Vec<u8>,
        /// Channels.
        channels: u8,
    },
}

/// An access unit: a coded frame, or a block of sound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    /// When it is decoded, from the asset's start: its transmit time.
    pub at: Duration,
    /// When it is shown.
    pub shown: Duration,
    /// Where it begins in the track's bytes.
    pub offset: u64,
    /// Its size.
    pub bytes: u32,
    /// What depends on it.
    pub kind: UnitKind,
}

/// What depends on a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitKind {
    /// Decodes by itself.
    Key,
    /// Depends on others, and others may on it.
    Predicted,
    /// Nothing depends on it.
    Disposable,
}

/// Where units' bytes are.
#[derive(Clone)]
pub enum Bytes {
    /// Nowhere: nobody reads them.
    Filler,
    /// A file in memory, shared by all sessions.
    Shared(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bytes::Filler => f.write_str("Filler"),
            Bytes::Shared(bytes) => write!(f, "{} bytes", (**bytes).as_ref().len()),
        }
    }
}
