//! Apple's Reliable UDP: RTP, acknowledged by RTCP packets of type APP.

use streamgauge_base::PacketKind;

use super::reader::{Datagram, DatagramReader, Shown};
use super::rtp::{self, Rtp};

/// An APP packet (RFC 3550 section 6.7).
const APP: u8 = 204;
/// The names of its acknowledgements, the newer first.
const ACKS: [&[u8]; 2] = [b"qtak", b"ack "];

/// The Reliable UDP of one flow.
pub struct ReliableUdp(Rtp);

impl ReliableUdp {
    /// Makes the reader of a flow that is declared as Reliable UDP.
    pub fn told() -> Self {
        ReliableUdp(Rtp::told())
    }

    /// Makes the reader of a flow that may or may not be Reliable UDP.
    pub fn guessed() -> Self {
        ReliableUdp(Rtp::guessed())
    }
}

impl DatagramReader for ReliableUdp {
    fn read(&mut self, datagram: &Datagram<'_>) -> Option<Shown> {
        let shown = self.0.read(datagram)?;
        if shown.kind == Some(PacketKind::Rtcp) && acknowledges(datagram.head) {
            return Some(Shown::kind(PacketKind::Ack));
        }
        Some(shown)
    }
}

/// Returns whether an acknowledgement is among the packets of the RTCP compound, as far as it is known.
fn acknowledges(head: &[u8]) -> bool {
    rtp::compound(head).any(|packet| {
        packet.get(1) == Some(&APP) && packet.get(8..12).is_some_and(|name| ACKS.contains(&name))
    })
}
