//! Protocol rollover: which protocol is tried after which, and why those before did not work.

use streamgauge_wire::mms;

use super::super::{HTTP_PORT, RTSP_PORT};
use super::settings::WmTransport;

/// The protocols that carry media.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    RtspUdp,
    RtspTcp,
    MmsUdp,
    MmsTcp,
    Http,
}

/// The order of `mms://` URLs (Windows Media Format SDK, protocol rollover).
const ORDER: [Protocol; 5] =
    [Protocol::RtspUdp, Protocol::RtspTcp, Protocol::MmsUdp, Protocol::MmsTcp, Protocol::Http];

impl Protocol {
    /// Returns the server's port.
    pub fn port(self) -> u16 {
        match self {
            Protocol::RtspUdp | Protocol::RtspTcp => RTSP_PORT,
            Protocol::MmsUdp | Protocol::MmsTcp => mms::PORT,
            Protocol::Http => HTTP_PORT,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Protocol::RtspUdp => "RTSP over UDP",
            Protocol::RtspTcp => "RTSP over TCP",
            Protocol::MmsUdp => "MMS over UDP",
            Protocol::MmsTcp => "MMS over TCP",
            Protocol::Http => "HTTP",
        }
    }
}

/// The protocols to try, the present one, and the failed ones.
pub struct Rollover {
    order: &'static [Protocol],
    at: usize,
    /// Failures of those tried before.
    failures: Vec<String>,
}

impl Rollover {
    /// Makes the order of tries of `transport`.
    pub fn new(transport: WmTransport) -> Self {
        let place = match transport {
            WmTransport::Rollover => return Rollover { order: &ORDER, at: 0, failures: Vec::new() },
            WmTransport::Udp => 0,
            WmTransport::Tcp => 1,
            WmTransport::MmsUdp => 2,
            WmTransport::MmsTcp => 3,
            WmTransport::Http => 4,
        };
        Rollover { order: &ORDER[place..=place], at: 0, failures: Vec::new() }
    }

    /// Returns the protocol being tried.
    pub fn protocol(&self) -> Protocol {
        self.order[self.at]
    }

    /// Returns the number of that try, from 1, and its reason.
    pub fn told(&self) -> (usize, String) {
        let name = self.protocol().name();
        (self.at + 1, self.failures.last().map_or_else(|| name.into(), |why| format!("{name}; {why}")))
    }

    /// Gives up the protocol being tried. Fails with the failures of all if there is no other.
    pub fn next(&mut self, why: &str) -> Result<(), String> {
        self.failures.push(format!("{}: {why}", self.protocol().name()));
        if self.at + 1 < self.order.len() {
            self.at += 1;
            return Ok(());
        }
        Err(format!("an error: no protocol works; {}", self.failures.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_tried_once_and_what_became_of_it_is_told() {
        let mut rollover = Rollover::new(WmTransport::Rollover);
        let mut tried = vec![rollover.told()];
        let told = loop {
            match rollover.next("nobody is there") {
                Ok(()) => tried.push(rollover.told()),
                Err(told) => break told,
            }
        };
        assert_eq!(tried.len(), ORDER.len());
        assert_eq!(tried[0], (1, "RTSP over UDP".into()));
        assert_eq!(tried[4], (5, "HTTP; MMS over TCP: nobody is there".into()));
        assert!(ORDER.iter().all(|one| told.contains(&format!("{}: nobody is there", one.name()))), "{told}");
    }

    #[test]
    fn a_transport_alone_is_tried_alone() {
        for (place, (name, transport)) in WmTransport::NAMED.into_iter().enumerate().take(ORDER.len()) {
            let mut rollover = Rollover::new(transport);
            assert_eq!(rollover.protocol(), ORDER[place], "{name}");
            assert!(rollover.next("no").is_err());
        }
    }
}
