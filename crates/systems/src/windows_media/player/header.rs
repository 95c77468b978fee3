//! An ASF header that arrives in packets of MMS and HTTP.

use std::collections::BTreeMap;

use streamgauge_wire::mms::{DataPacket, data_flags};

use super::super::sdp::{self, Presentation};

/// All known headers are shorter.
const MOST_BYTES: usize = 1 << 20;

/// A header has fewer packets than this.
const MOST_PARTS: usize = 4_096;

/// The received parts of a header.
#[derive(Default)]
pub struct Header {
    parts: BTreeMap<u32, Vec<u8>>,
    last: Option<u32>,
}

impl Header {
    /// Adds one of its packets, in any order. Returns its content once it is whole.
    ///
    /// # Errors
    ///
    /// Fails with its fault.
    pub fn take(&mut self, packet: &DataPacket<'_>) -> Result<Option<Presentation>, String> {
        // By [MS-MMSP] the last of several is flagged as the whole, by [MS-WMSP] as the last.
        if matches!(packet.flags, data_flags::LAST | data_flags::WHOLE) {
            self.last = Some(packet.location);
        }
        self.parts.insert(packet.location, packet.payload.head().to_vec());
        let bytes: usize = self.parts.values().map(Vec::len).sum();
        if bytes > MOST_BYTES || self.parts.len() > MOST_PARTS {
            return Err("the header of ASF has no end".into());
        }
        let Some(last) = self.last else { return Ok(None) };
        let is_whole = self.parts.range(..=last).map(|(place, _)| *place).eq(0..=last);
        if !is_whole {
            return Ok(None);
        }
        let head: Vec<u8> = self.parts.range(..=last).flat_map(|(_, part)| part.iter().copied()).collect();
        sdp::read_head(&head).map(Some)
    }
}
