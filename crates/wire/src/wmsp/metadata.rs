//! A server's description of a playlist's entry.

use super::fault::Fault;
use super::pragma::ContentFeature;
use crate::rtsp::parts::{split, value_of};

/// The content of a $M packet, or of several together ([MS-WMSP] section 2.2.3.6).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Metadata {
    /// `playlist-gen-id`: the entry; not 0.
    pub playlist_gen_id: u32,
    /// `broadcast-id`: the source, if it is live; else 0.
    pub broadcast_id: u32,
    /// Its allowed operations.
    pub features: Vec<ContentFeature>,
    /// A content description list ([MS-WMSP] section 2.2.4), as received.
    pub descriptions: Vec<u8>,
}

impl Metadata {
    /// Returns the payload of the packet, or of all packets together.
    pub fn parse(payload: &[u8]) -> Result<Self, Fault> {
        let end = payload.iter().position(|byte| *byte == 0).ok_or(Fault::Metadata("its end"))?;
        let text = str::from_utf8(&payload[..end]).map_err(|_| Fault::Metadata("text"))?;
        let value = |name| value_of(split(text, ',').map(str::trim), name);
        let number = |name| value(name).and_then(|value| value.parse().ok()).ok_or(Fault::Metadata(name));
        Ok(Metadata {
            playlist_gen_id: number("playlist-gen-id")?,
            broadcast_id: number("broadcast-id")?,
            features: ContentFeature::listed(value("features").unwrap_or_default().trim_matches('"')),
            descriptions: payload[end + 1..].into(),
        })
    }

    /// Returns the payload.
    pub fn write(&self) -> Vec<u8> {
        let Metadata { playlist_gen_id, broadcast_id, features, descriptions } = self;
        let features = ContentFeature::list(features, ",");
        let text = format!(
            "playlist-gen-id={playlist_gen_id}, broadcast-id={broadcast_id}, features=\"{features}\"\0"
        );
        [text.as_bytes(), descriptions].concat()
    }
}
