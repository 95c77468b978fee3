//! Pairs of UDP ports for RTP and RTCP.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::str::FromStr;

use super::datagram::Udp;

/// A range of UDP ports, first and last included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortRange {
    first: u16,
    last: u16,
}

impl PortRange {
    /// Returns a range; `first` must be even, with room for a pair at least.
    pub const fn new(first: u16, last: u16) -> PortRange {
        PortRange { first, last }
    }

    /// Its first and last port.
    pub fn ends(self) -> (u16, u16) {
        (self.first, self.last)
    }

    /// Returns how many pairs it holds.
    pub fn pairs(self) -> u16 {
        (self.last - self.first).div_ceil(2)
    }
}

impl FromStr for PortRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is no range of ports; write FIRST-LAST with an even FIRST, 6970-9999");
        let (first, last) = text.split_once('-').ok_or_else(wrong)?;
        let first: u16 = first.trim().parse().map_err(|_| wrong())?;
        let last: u16 = last.trim().parse().map_err(|_| wrong())?;
        if first == 0 || first % 2 == 1 || last <= first {
            return Err(wrong());
        }
        Ok(PortRange { first, last })
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// Hands out pairs of a range: an even port and the next (RFC 3550 section 11).
pub struct Ports {
    range: PortRange,
    /// The pair tried next. Going round keeps the late packets of a past client from a new one.
    next: u16,
    taken: BTreeSet<u16>,
}

impl Ports {
    /// Returns all of `range`, from its pair number `start` on.
    pub fn new(range: PortRange, start: u32) -> Ports {
        let next = (start % u32::from(range.pairs())) as u16;
        Ports { range, next, taken: BTreeSet::new() }
    }

    /// Returns where its pairs are from.
    pub fn range(&self) -> PortRange {
        self.range
    }

    /// Returns two bound sockets for the exchange with `peer`; `None` if there is no pair left, or no
    /// descriptor.
    pub fn pair(&mut self, own: IpAddr, peer: IpAddr) -> Option<[Udp; 2]> {
        for _ in 0..self.range.pairs() {
            let pair = self.next;
            self.next = (pair + 1) % self.range.pairs();
            if self.taken.contains(&pair) {
                continue;
            }
            let port = self.range.first + 2 * pair;
            match Udp::bind(own, port, peer).and_then(|rtp| Ok([rtp, Udp::bind(own, port + 1, peer)?])) {
                Ok(bound) => {
                    self.taken.insert(pair);
                    return Some(bound);
                }
                // Another program's: the next.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                // No other pair would do either.
                Err(_) => return None,
            }
        }
        None
    }

    /// Frees the pair that begins at `port`.
    pub fn release(&mut self, port: u16) {
        self.taken.remove(&((port - self.range.first) / 2));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn ranges_read_as_they_are_written_and_others_say_what_is_wanted() {
        let range: PortRange = "6970-9999".parse().unwrap();
        assert_eq!((range.pairs(), range.to_string().as_str()), (1515, "6970-9999"));
        assert_eq!("6970-6971".parse::<PortRange>().unwrap().pairs(), 1);
        for wrong in ["", "6970", "6971-6980", "6970-6970", "0-9", "6970-70000", "a-b", "6980-6970"] {
            let error = wrong.parse::<PortRange>().unwrap_err();
            assert!(error.contains("FIRST-LAST"), "{wrong}: {error}");
        }
    }

    #[test]
    fn who_has_hundreds_in_a_row_leaves_others_the_rest() {
        let range: PortRange = "52000-53999".parse().unwrap();
        let held: Vec<_> = (0..300).map(|n| UdpSocket::bind((Ipv4Addr::LOCALHOST, 52_000 + 2 * n))).collect();
        assert!(held.iter().filter(|socket| socket.is_ok()).count() > 250);
        assert!(Ports::new(range, 0).pair(HERE, HERE).is_some());
    }

    #[test]
    fn pairs_are_even_distinct_and_come_back() {
        // Ports that this test alone uses, below the kernel's ephemeral ones.
        let mut ports = Ports::new("28970-28977".parse().unwrap(), 2);
        let foreign = UdpSocket::bind((HERE, 28973)).unwrap();
        let held: Vec<_> = std::iter::from_fn(|| ports.pair(HERE, HERE)).collect();
        let numbers: Vec<_> = held.iter().map(|[rtp, rtcp]| (rtp.port(), rtcp.port())).collect();
        assert_eq!(numbers, [(28974, 28975), (28976, 28977), (28970, 28971)], "28973 is another's");
        drop((held, foreign));
        ports.release(28974);
        let again = ports.pair(HERE, HERE).map(|[rtp, _]| rtp.port());
        assert_eq!(again, Some(28972), "round and round");
        assert_eq!(ports.pair(HERE, HERE).map(|[rtp, _]| rtp.port()), Some(28974));
        assert!(ports.pair(HERE, HERE).is_none());
    }
}
