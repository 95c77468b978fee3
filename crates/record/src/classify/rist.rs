//! RIST in RTP and RTCP (VSF TR-06-1 section 5.3): a packet that is sent again has the last bit of its source set.

use streamgauge_base::PacketKind;

use super::reader::{Datagram, DatagramReader, Shown};
use super::rtp::{is_rtcp, parse};

/// The RIST of one flow.
#[derive(Default)]
pub struct Rist;

impl DatagramReader for Rist {
    fn read(&mut self, datagram: &Datagram<'_>) -> Option<Shown> {
        if is_rtcp(datagram.head, datagram.bytes) {
            return Some(Shown::kind(PacketKind::Rtcp));
        }
        let packet = parse(datagram.head)?;
        Some(Shown { kind: None, seq: Some(packet.seq.into()), again: packet.ssrc & 1 == 1 })
    }
}
