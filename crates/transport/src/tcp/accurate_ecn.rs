//! More accurate ECN feedback (RFC 9768): the ACE field, which counts packets that arrived marked. The AccECN option,
//! which counts bytes too and which a receiver may leave out, is not modelled.

use streamgauge_base::{Ecn, TcpFlags};

use super::segment::flags;

/// Start of both counters of packets (RFC 9768 section 3.2.1).
const FIRST: u64 = 5;
/// The field has three bits.
const MASK: u64 = 7;
/// Marks after which an acknowledgement must not wait while there is unacknowledged data (section 3.2.2.5.1).
const MARKS_PER_ACK: u8 = 2;

/// Returns the three bits of the header, AE the highest, then CWR and ECE.
pub fn ace_bits(ae: bool, bits: TcpFlags) -> u8 {
    u8::from(ae) << 2 | u8::from(bits & flags::CWR != 0) << 1 | u8::from(bits & flags::ECE != 0)
}

/// Returns the header's AE flag, and its CWR and ECE flags, for three bits.
pub fn header_bits(ace: u8) -> (bool, TcpFlags) {
    let cwr = if ace & 2 != 0 { flags::CWR } else { 0 };
    (ace & 4 != 0, cwr | if ace & 1 != 0 { flags::ECE } else { 0 })
}

/// Returns the bits that report the ECN field of a SYN or a SYN-ACK (RFC 9768 table 2 and section 3.2.2.1).
pub fn handshake_bits(arrived: Ecn) -> u8 {
    match arrived {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// Returns whether a SYN-ACK with these bits agrees to accurate feedback.
pub fn agrees(ace: u8) -> bool {
    [0b010, 0b011, 0b100, 0b110].contains(&ace)
}

/// The receiver's count of packets that arrived marked, `r.cep`.
#[derive(Clone, Copy, Debug)]
pub struct MarksReceived {
    count: u64,
    last_marked: bool,
    since_ack: u8,
}

impl Default for MarksReceived {
    fn default() -> Self {
        MarksReceived { count: FIRST, last_marked: false, since_ack: 0 }
    }
}

impl MarksReceived {
    /// Counts a data packet. True if an acknowledgement must leave now (section 3.2.2.5.1).
    pub fn arrived(&mut self, ecn: Ecn) -> bool {
        let marked = ecn == Ecn::Ce;
        let changed = marked && !self.last_marked;
        self.last_marked = marked;
        if marked {
            self.count += 1;
            self.since_ack = self.since_ack.saturating_add(1);
        }
        changed || self.since_ack >= MARKS_PER_ACK
    }
    /// Returns the ACE field for the segment that is sent now, which acknowledges all so far.
    pub fn acknowledged(&mut self) -> u8 {
        self.since_ack = 0;
        (self.count & MASK) as u8
    }
    /// Returns the packets that arrived marked.
    pub fn total(&self) -> u64 {
        self.count - FIRST
    }
}

/// The sender's copy of the peer's count, `s.cep`.
#[derive(Clone, Copy, Debug)]
pub struct MarksReported {
    count: u64,
}

impl Default for MarksReported {
    fn default() -> Self {
        MarksReported { count: FIRST }
    }
}

impl MarksReported {
    /// Reads the field of an acknowledgement that covers `newly` more segments, and returns how many of them were
    /// marked.
    ///
    /// The field wraps at 8. Where it may have wrapped, as many marks are assumed as fit (section 3.2.2.5.2).
    pub fn take(&mut self, ace: u8, newly: u32) -> u32 {
        let delta = u64::from(ace).wrapping_sub(self.count) & MASK;
        let newly = u64::from(newly);
        let safest = if newly > MASK { newly - (newly.wrapping_sub(delta) & MASK) } else { delta };
        self.count += safest;
        safest as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_the_header_go_there_and_back() {
        for ace in 0..8 {
            let (ae, bits) = header_bits(ace);
            assert_eq!(ace_bits(ae, bits), ace);
        }
    }

    /// RFC 9768 table 2: the four replies of a server that counts, and none of those of others.
    #[test]
    fn only_a_server_that_counts_agrees() {
        for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
            assert!(agrees(handshake_bits(ecn)));
        }
        // None, classic ECN, a broken server that reflects, the ECN nonce.
        for other in [0b000, 0b001, 0b111, 0b101] {
            assert!(!agrees(other), "{other:b}");
        }
    }

    #[test]
    fn a_mark_is_acknowledged_at_once_where_the_last_packet_had_none_and_at_every_second() {
        let mut marks = MarksReceived::default();
        let hurry = [Ecn::Ect1, Ecn::Ce, Ecn::Ect1, Ecn::Ce].map(|ecn| marks.arrived(ecn));
        assert_eq!(hurry, [false, true, false, true]);
        assert_eq!(marks.acknowledged(), 7);
        assert!(!marks.arrived(Ecn::Ce) && marks.arrived(Ecn::Ce));
        assert_eq!((marks.acknowledged(), marks.total()), (1, 4));
    }

    #[test]
    fn counts_agree_over_many_wraps() {
        let (mut received, mut reported) = (MarksReceived::default(), MarksReported::default());
        let mut seen = 0;
        for n in 0..1000u32 {
            for i in 0..n % 5 {
                received.arrived(if i % 3 == 0 { Ecn::Ce } else { Ecn::Ect1 });
            }
            seen += u64::from(reported.take(received.acknowledged(), n % 5));
        }
        assert_eq!(seen, received.total());
        assert!(seen > 100);
    }

    #[test]
    fn where_the_field_may_have_wrapped_the_most_is_assumed() {
        let mut marks = MarksReported::default();
        // Nothing by the field, of 9 packets: 8 marks would show alike.
        assert_eq!(marks.take(5, 9), 8);
        assert_eq!(marks.take(7, 20), 18);
        assert_eq!(marks.take(0, 7), 1);
    }
}
