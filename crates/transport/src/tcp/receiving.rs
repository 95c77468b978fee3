//! The receiving half of a connection, which is next to nothing until data or a FIN arrives: of the two ends of a
//! transfer one never receives any.

use streamgauge_base::{Chunk, Duration, Instant};

use super::accurate_ecn::MarksReceived;
use super::config::Config;
use super::receiver::{Receiver, first_window};
use super::segment::SackBlocks;

/// A receiver, or the state from which to make one.
#[derive(Clone, Debug)]
pub enum Receiving {
    /// The peer's initial sequence number is not known.
    Unknown,
    /// Neither data nor a FIN has arrived.
    Silent {
        /// The peer's first byte.
        start: u64,
        /// Whether an acknowledgement must leave now.
        due: bool,
    },
    /// Data or a FIN has arrived.
    Active(Box<Receiver>),
}

impl Receiving {
    /// Returns the receiver, if anything has arrived.
    #[inline]
    pub fn active(&mut self) -> Option<&mut Receiver> {
        match self {
            Receiving::Active(receiver) => Some(receiver),
            _ => None,
        }
    }
    #[inline]
    fn known(&self) -> Option<&Receiver> {
        match self {
            Receiving::Active(receiver) => Some(receiver),
            _ => None,
        }
    }
    /// Returns the receiver, as something arrives. `None` while the peer's initial sequence number is not known.
    #[inline]
    pub fn activate(&mut self, config: &Config) -> Option<&mut Receiver> {
        if let Receiving::Silent { start, due } = *self {
            let mut receiver = Receiver::new(start, config);
            if due {
                receiver.demand_ack();
            }
            *self = Receiving::Active(Box::new(receiver));
        }
        self.active()
    }

    /// Returns whether the peer's initial sequence number is known.
    #[inline]
    pub fn is_known(&self) -> bool {
        !matches!(self, Receiving::Unknown)
    }
    /// Returns the acknowledgement number; 0 while it is not known.
    #[inline]
    pub fn next(&self) -> u64 {
        match self {
            Receiving::Unknown => 0,
            Receiving::Silent { start, .. } => *start,
            Receiving::Active(receiver) => receiver.next(),
        }
    }
    /// Returns the highest acknowledgement number sent.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        self.known().map_or(self.next(), Receiver::acknowledged)
    }
    /// Returns the in-order bytes that wait for the reader.
    pub fn readable(&self) -> u64 {
        self.known().map_or(0, Receiver::readable)
    }
    /// Reads up to `max` bytes.
    pub fn read(&mut self, max: usize) -> Option<Chunk> {
        self.active()?.read(max)
    }
    /// Returns whether everything up to the peer's FIN has arrived.
    pub fn finished(&self) -> bool {
        self.known().is_some_and(Receiver::finished)
    }
    /// Returns the segments that arrived marked.
    pub fn marked(&self) -> u64 {
        self.known().map_or(0, Receiver::marked)
    }
    /// Returns whether acknowledgements report that congestion was experienced.
    #[inline]
    pub fn echoes_congestion(&self) -> bool {
        self.known().is_some_and(Receiver::echoes_congestion)
    }

    /// Returns the ACE field of the segment that leaves (RFC 9768).
    pub fn report_marks(&mut self) -> u8 {
        self.active().map_or_else(|| MarksReceived::default().acknowledged(), Receiver::report_marks)
    }

    /// Returns whether an acknowledgement must leave now.
    #[inline]
    pub fn ack_due(&self) -> bool {
        match self {
            Receiving::Unknown => false,
            Receiving::Silent { due, .. } => *due,
            Receiving::Active(receiver) => receiver.ack_due(),
        }
    }
    /// Asks for an acknowledgement.
    #[inline]
    pub fn demand_ack(&mut self) {
        match self {
            Receiving::Unknown => {}
            Receiving::Silent { due, .. } => *due = true,
            Receiving::Active(receiver) => receiver.demand_ack(),
        }
    }
    /// Returns when a delayed acknowledgement falls due.
    #[inline]
    pub fn deadline(&self) -> Instant {
        self.known().map_or(Instant::FAR_FUTURE, Receiver::deadline)
    }
    /// Handles the timers of acknowledgements that have expired. `rto` is this end's own timeout.
    pub fn handle_timeout(&mut self, now: Instant, rto: Duration) {
        if let Some(receiver) = self.active() {
            receiver.handle_timeout(now, rto);
        }
    }
    /// Notes that data is sent, which carries the next acknowledgement.
    #[inline]
    pub fn data_sent(&mut self, now: Instant) {
        if let Some(receiver) = self.active() {
            receiver.data_sent(now);
        }
    }
    /// Returns the window to send, in bytes from `next`. An acknowledgement leaves with it.
    #[inline]
    pub fn acknowledge(&mut self, config: &Config) -> u32 {
        match self {
            Receiving::Active(receiver) => receiver.acknowledge(),
            other => {
                if let Receiving::Silent { due, .. } = other {
                    *due = false;
                }
                first_window(config)
            }
        }
    }
    /// Returns whether `take_sack` has a block to report.
    #[inline]
    pub fn has_sack(&self) -> bool {
        self.known().is_some_and(Receiver::has_sack)
    }
    /// Returns the SACK blocks to send.
    #[inline]
    pub fn take_sack(&mut self) -> SackBlocks {
        self.active().map_or(SackBlocks::default(), Receiver::take_sack)
    }
}
