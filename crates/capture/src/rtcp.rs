//! The packets of an RTCP compound (RFC 3550 section 6.1), as far as a capture has them.

const VERSION: u8 = 2;

/// Sender report.
pub const SENDER_REPORT: u8 = 200;
/// Receiver report.
pub const RECEIVER_REPORT: u8 = 201;
/// Application-defined.
pub const APPLICATION: u8 = 204;
/// Feedback about transport (RFC 4585 section 6.1).
pub const TRANSPORT_FEEDBACK: u8 = 205;

/// A packet of a compound.
#[derive(Clone, Copy, Debug)]
pub struct RtcpPart<'a> {
    /// Its type.
    pub kind: u8,
    /// Blocks in it, or its format.
    pub count: u8,
    /// Its captured bytes, from the header on.
    pub bytes: &'a [u8],
    /// Its length on the wire.
    pub length: usize,
}

impl RtcpPart<'_> {
    /// The 32 bits at this place.
    pub fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_be_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }

    /// The 16 bits at this place.
    pub fn half(&self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes(*self.bytes.get(at..)?.first_chunk()?))
    }

    /// The report blocks (RFC 3550 section 6.4.1).
    pub fn blocks(&self) -> impl Iterator<Item = &[u8; 24]> {
        let head = match self.kind {
            SENDER_REPORT => 28,
            RECEIVER_REPORT => 8,
            _ => self.bytes.len(),
        };
        self.bytes.get(head..).unwrap_or_default().as_chunks().0.iter().take(usize::from(self.count))
    }
}

/// The packets of these bytes. Anything else ends them.
pub fn rtcp_parts(mut rest: &[u8]) -> impl Iterator<Item = RtcpPart<'_>> {
    std::iter::from_fn(move || {
        let head: &[u8; 8] = rest.first_chunk()?;
        if head[0] >> 6 != VERSION || !(200..=207).contains(&head[1]) {
            return None;
        }
        let length = 4 + 4 * usize::from(u16::from_be_bytes([head[2], head[3]]));
        let (bytes, behind) = rest.split_at(length.min(rest.len()));
        rest = behind;
        Some(RtcpPart { kind: head[1], count: head[0] & 31, bytes, length })
    })
}
