//! A connection of unknown protocol, which its first bytes identify.

use streamgauge_base::{Chunk, Instant};
use streamgauge_wire::mms::TCP_HEADER_BYTES;

use crate::app::{ChannelId, Io};

/// The first byte of a message of MMS, `rep` ([MS-MMSP] section 2.2.3), with which no text begins.
const MMS: u8 = 1;

/// How a request of HTTP begins that is asked here; one of RTSP may begin `GET_PARAMETER`.
const HTTP: [&[u8; 4]; 2] = [b"GET ", b"POST"];

/// The protocol of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spoken {
    Rtsp,
    Mms,
    Http,
}

/// The bytes received so far, too few to identify the protocol.
pub struct UnknownConnection {
    pub channel: ChannelId,
    pub since: Instant,
    came: Vec<u8>,
}

impl UnknownConnection {
    /// Makes the state before any byte.
    pub fn new(channel: ChannelId, since: Instant) -> Self {
        UnknownConnection { channel, since, came: Vec::new() }
    }

    /// Reads until the protocol is known; then returns it, and the received bytes.
    pub fn read(&mut self, io: &mut dyn Io) -> Option<(Spoken, Chunk)> {
        loop {
            if let Some(spoken) = spoken(&self.came) {
                return Some((spoken, Chunk::bytes(std::mem::take(&mut self.came))));
            }
            let chunk = io.read(self.channel, TCP_HEADER_BYTES)?;
            self.came.extend(chunk.head());
            // Filler reads as zeros.
            self.came.resize(self.came.len() + chunk.len() - chunk.head().len(), 0);
        }
    }
}

fn spoken(came: &[u8]) -> Option<Spoken> {
    let may_be_http = |one: &&[u8; 4]| one.starts_with(&came[..came.len().min(4)]);
    match came {
        [] => None,
        [MMS, ..] => Some(Spoken::Mms),
        _ if !HTTP.iter().any(may_be_http) => Some(Spoken::Rtsp),
        _ => (came.len() >= 4).then_some(Spoken::Http),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell() {
        for (came, wanted) in [
            (&b"OPTIONS rtsp://h/ RTSP/1.0"[..], Spoken::Rtsp),
            (b"GET_PARAMETER rtsp://h/ RTSP/1.0", Spoken::Rtsp),
            (b"GET /clip.wmv HTTP/1.0", Spoken::Http),
            (b"POST /clip.wmv HTTP/1.0", Spoken::Http),
            (b"\x01\0\0\0\xce\xfa\x0b\xb0", Spoken::Mms),
            (b"\0\0\0\0", Spoken::Rtsp),
        ] {
            let known = (0..came.len()).find_map(|end| spoken(&came[..end]));
            assert_eq!(known, Some(wanted), "{}", String::from_utf8_lossy(came));
        }
    }
}
