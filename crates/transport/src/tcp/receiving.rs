//! The receiving half of a connection, which is next to nothing until data or a FIN arrives: of the two ends of a
//! transfer one never receives any.

use streamgauge_base::{Chunk, Duration, Instant};

use super::config::Config;
use super::receiver::{Receiver, first_window};
use super::segment::SackBlocks;

/// A receiver, or what it takes to make one.
#[derive(Clone, Debug)]
pub enum Receiving {
    /// The peer's initial sequence number is not known.
    Unknown,
    /// Neither data nor a FIN has arrived.
    Silent {
        /// The peer's first byte.
        start: u64,
        /// An acknowledgement must go out now.
        due: bool,
    },
    /// Data or a FIN has arrived.
    Active(Box<Receiver>),
}

impl Receiving {
    /// The receiver, if anything has arrived.
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
    /// The receiver: something arrives. `None` while the peer's initial sequence number is not known.
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

    /// The peer's initial sequence number is known.
    #[inline]
    pub fn is_known(&self) -> bool {
        !matches!(self, Receiving::Unknown)
    }
    /// The acknowledgement number; 0 while it is not known.
    #[inline]
    pub fn next(&self) -> u64 {
        match self {
            Receiving::Unknown => 0,
            Receiving::Silent { start, .. } => *start,
            Receiving::Active(receiver) => receiver.next(),
        }
    }
    /// Highest acknowledgement number sent.
    #[inline]
    pub fn acknowledged(&self) -> u64 {
        self.known().map_or(self.next(), Receiver::acknowledged)
    }
    /// In-order bytes that wait for the reader.
    pub fn readable(&self) -> u64 {
        self.known().map_or(0, Receiver::readable)
    }
    /// Reads up to `max` bytes.
    pub fn read(&mut self, max: usize) -> Option<Chunk> {
        self.active()?.read(max)
    }
    /// Everything up to the peer's FIN has arrived.
    pub fn finished(&self) -> bool {
        self.known().is_some_and(Receiver::finished)
    }
    /// Segments that arrived marked.
    pub fn marked(&self) -> u64 {
        self.known().map_or(0, Receiver::marked)
    }
    /// Acknowledgements say that congestion was experienced.
    #[inline]
    pub fn echoes_congestion(&self) -> bool {
        self.known().is_some_and(Receiver::echoes_congestion)
    }

    /// An acknowledgement must go out now.
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
    /// When a delayed acknowledgement falls due.
    #[inline]
    pub fn deadline(&self) -> Instant {
        self.known().map_or(Instant::FAR_FUTURE, Receiver::deadline)
    }
    /// The timers of acknowledgements, those that have expired. `rto` is this end's own timeout.
    pub fn handle_timeout(&mut self, now: Instant, rto: Duration) {
        if let Some(receiver) = self.active() {
            receiver.handle_timeout(now, rto);
        }
    }
    /// Data goes out, which the next acknowledgement goes with.
    #[inline]
    pub fn data_sent(&mut self, now: Instant) {
        if let Some(receiver) = self.active() {
            receiver.data_sent(now);
        }
    }
    /// The window to send, in bytes from `next`. An acknowledgement goes out with it.
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
    /// True if `take_sack` has something to say.
    #[inline]
    pub fn has_sack(&self) -> bool {
        self.known().is_some_and(Receiver::has_sack)
    }
    /// The SACK blocks to send.
    #[inline]
    pub fn take_sack(&mut self) -> SackBlocks {
        self.active().map_or(SackBlocks::default(), Receiver::take_sack)
    }
}
