//! Protocol rollover: which protocol is tried after which, and why those before did not work.

use streamgauge_wire::mms;

use super::super::{HTTP_PORT, RTSP_PORT};
use super::settings::WmTransport;

/// What brings media.
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
    /// The server's port.
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

/// What is to be tried, what is, and what was.
pub struct Rollover {
    order: &'static [Protocol],
    at: usize,
    /// Of each that was tried before.
    failures: Vec<String>,
}

impl Rollover {
    /// What `transport` wants.
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

    /// What is tried.
    pub fn protocol(&self) -> Protocol {
        self.order[self.at]
    }

    /// Which try that is, from 1, and why it is.
    pub fn told(&self) -> (usize, String) {
        let name = self.protocol().name();
        (self.at + 1, self.failures.last().map_or_else(|| name.into(), |why| format!("{name}; {why}")))
    }

    /// What is tried does not work. Says whether there is another; else what became of all.
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
