//! Kinds of a request.

use super::pragma::Pragmas;
use crate::http::Request;

/// Media types of bodies ([MS-WMSP] section 2.2.1.2).
pub mod media_types {
    /// Any packets, from old servers.
    pub const OCTETS: &str = "application/octet-stream";
    /// An ASF file's header in packets: the answer to [`Describe`](super::RequestKind::Describe).
    pub const HEADER: &str = "application/vnd.ms.wms-hdr.asfv1";
    /// Packets: the answer to [`Play`](super::RequestKind::Play).
    pub const FRAMED: &str = "application/x-mms-framed";
    /// A request for the permissions of a cache.
    pub const CONTENT_INFO: &str = "application/x-wms-getcontentinfo";
    /// A player's report of its playback ([MS-WMLOG]).
    pub const LOG: &str = "application/x-wms-LogStats";
    /// An event.
    pub const EVENT: &str = "application/x-wms-sendevent";
}

/// The kind of a request: [MS-WMSP] sections 2.2.2.1 to 2.2.2.10.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RequestKind {
    /// The file's header.
    Describe,
    /// The permissions of a cache.
    GetContentInfo,
    /// Not to be forgotten.
    KeepAlive,
    /// Delivers a report of the playback.
    Log,
    /// Whether several requests may be under way.
    Pipeline,
    /// Media.
    Play,
    /// The playlist's next entry.
    PlayNextEntry,
    /// Other streams.
    SelectStream,
    /// Delivers an event.
    SendEvent,
    /// No more media.
    Stop,
}

impl RequestKind {
    /// Returns the kind by method, Pragma headers and media type; `None` for requests outside this protocol.
    pub fn of(request: &Request, pragmas: &Pragmas) -> Option<Self> {
        let media_type = request.headers.get("Content-Type").unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim();
        let is = |one: &str| media_type.eq_ignore_ascii_case(one);
        let switches = !pragmas.stream_switches.is_empty();
        Some(match request.method.as_str() {
            "GET" | "POST" if pragmas.pipeline_request => RequestKind::Pipeline,
            "GET" if pragmas.play == Some(true) => RequestKind::Play,
            "GET" if pragmas.play_next_entry => RequestKind::PlayNextEntry,
            "GET" if switches => RequestKind::SelectStream,
            "GET" => RequestKind::Describe,
            "POST" if pragmas.log_line.is_some() || is(media_types::LOG) => RequestKind::Log,
            "POST" if is(media_types::CONTENT_INFO) => RequestKind::GetContentInfo,
            "POST" if is(media_types::EVENT) => RequestKind::SendEvent,
            "POST" if switches => RequestKind::SelectStream,
            "POST" if pragmas.keep_alive => RequestKind::KeepAlive,
            "POST" if pragmas.stop => RequestKind::Stop,
            _ => return None,
        })
    }
}
