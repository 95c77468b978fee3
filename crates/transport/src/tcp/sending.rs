//! The sending half of a connection, which is next to nothing until there is something to send: of the two ends of a
//! transfer one never sends data.

use std::sync::Arc;

use streamgauge_base::{Duration, Instant};

use super::config::Config;
use super::congestion::Start;
use super::sender::Sender;

/// A connection's configuration: the part it shares with others, and its own seed.
#[derive(Clone, Debug)]
pub struct Own {
    pub shared: Arc<Config>,
    pub seed: u64,
}

impl Own {
    fn config(&self) -> Config {
        Config { seed: self.seed, ..(*self.shared).clone() }
    }
}

/// A sender, or the state from which to make one.
#[derive(Debug)]
pub enum Sending {
    /// Nothing was ever written.
    Silent(Silent),
    /// Data or a FIN was written.
    Active(Box<Sender>),
}

/// The initial state of a sender.
#[derive(Clone, Copy, Debug)]
pub struct Silent {
    /// Sequence number of the stream's first byte.
    start: u64,
    /// End of the peer's window.
    edge: u64,
    opened: Option<Opened>,
    /// The sender's timeout would be this.
    timeout: Duration,
}

/// Results of the handshake.
#[derive(Clone, Copy, Debug)]
struct Opened {
    at: Instant,
    /// The round trip that it measured; `MAX` for none.
    rtt: Duration,
    /// The connection starts from one segment.
    cautious: bool,
}

impl Sending {
    /// Makes the sending half of a stream that starts at sequence number `start`.
    pub fn new(start: u64) -> Self {
        Sending::Silent(Silent { start, edge: start, opened: None, timeout: Duration::ZERO })
    }

    /// Completes the handshake: the peer accepts bytes up to `edge`; `rtt` is the handshake's measurement, if it was
    /// answered at the first try; `cautious`: SYNs were lost, so that the window starts from one segment.
    pub fn open(&mut self, at: Instant, edge: u64, rtt: Option<Duration>, cautious: bool, own: &Own) {
        let opened = Opened { at, rtt: rtt.unwrap_or(Duration::MAX), cautious };
        match self {
            Sending::Active(sender) => opened.tell(sender, edge, &own.config()),
            Sending::Silent(silent) => {
                (silent.opened, silent.edge) = (Some(opened), edge);
                silent.timeout = silent.preview(own).timeout();
            }
        }
    }

    /// Returns whether nothing was ever written.
    #[inline]
    pub fn is_silent(&self) -> bool {
        matches!(self, Sending::Silent(_))
    }
    /// Returns the sender, if anything was ever written.
    #[inline]
    pub fn active(&mut self) -> Option<&mut Sender> {
        match self {
            Sending::Silent(_) => None,
            Sending::Active(sender) => Some(sender),
        }
    }
    /// Returns the sender, as there is something to send.
    #[inline]
    pub fn activate(&mut self, own: &Own) -> &mut Sender {
        if let Sending::Silent(silent) = self {
            *self = Sending::Active(Box::new(silent.sender(own)));
        }
        match self {
            Sending::Active(sender) => sender,
            Sending::Silent(_) => unreachable!("it was made active above"),
        }
    }
    /// Returns the sender as it is, or would be.
    pub fn look<T>(&self, own: &Own, look: impl FnOnce(&Sender) -> T) -> T {
        match self {
            Sending::Silent(silent) => look(&silent.preview(own)),
            Sending::Active(sender) => look(sender),
        }
    }

    /// Returns the bytes that a write would accept now.
    pub fn writable(&self, own: &Own) -> u64 {
        match self {
            Sending::Silent(silent) => silent.preview(own).writable(),
            Sending::Active(sender) => sender.writable(),
        }
    }
    /// Sets the end of the peer's window to `edge`.
    pub fn offer(&mut self, edge: u64) {
        if let Sending::Silent(silent) = self {
            silent.edge = silent.edge.max(edge);
        }
    }
    /// Returns the next byte to be sent for the first time.
    #[inline]
    pub fn next(&self) -> u64 {
        match self {
            Sending::Silent(silent) => silent.start,
            Sending::Active(sender) => sender.next(),
        }
    }
    /// Returns the first byte not acknowledged.
    #[inline]
    pub fn una(&self) -> u64 {
        match self {
            Sending::Silent(silent) => silent.start,
            Sending::Active(sender) => sender.una(),
        }
    }
    /// Returns whether our FIN has been sent.
    pub fn fin_sent(&self) -> bool {
        matches!(self, Sending::Active(sender) if sender.fin_sent())
    }
    /// Returns whether the peer has acknowledged our FIN.
    #[inline]
    pub fn finished(&self) -> bool {
        matches!(self, Sending::Active(sender) if sender.finished())
    }
    /// Returns when the sender must be called.
    #[inline]
    pub fn timer(&self) -> Instant {
        match self {
            Sending::Silent(_) => Instant::FAR_FUTURE,
            Sending::Active(sender) => sender.timer(),
        }
    }
    /// Returns the retransmission timeout of an open connection.
    #[inline]
    pub fn timeout(&self) -> Duration {
        match self {
            Sending::Silent(silent) => silent.timeout,
            Sending::Active(sender) => sender.timeout(),
        }
    }
    /// Returns the smoothed round trip; `None` before the first sample.
    #[inline]
    pub fn srtt(&self) -> Option<Duration> {
        match self {
            Sending::Silent(silent) => silent.opened.and_then(Opened::rtt),
            Sending::Active(sender) => sender.rto().srtt(),
        }
    }
}

impl Silent {
    fn sender(&self, own: &Own) -> Sender {
        self.made(own, false)
    }

    /// Returns the sender that it would be, to look at.
    fn preview(&self, own: &Own) -> Sender {
        self.made(own, true)
    }

    fn made(&self, own: &Own, preview: bool) -> Sender {
        let config = &own.config();
        let cautious = self.opened.is_some_and(|opened| opened.cautious);
        let mut start = config.start();
        start.segments = if cautious { 1 } else { start.segments };
        let control = &config.congestion;
        let controller = if preview { control.preview(&start) } else { control.make(&start) };
        let mut sender = Sender::new(self.start, config, controller);
        if let Some(opened) = self.opened {
            sender.open(opened.at, self.edge, opened.rtt(), None, config);
        }
        sender
    }
}

impl Opened {
    #[inline]
    fn rtt(self) -> Option<Duration> {
        (self.rtt < Duration::MAX).then_some(self.rtt)
    }

    fn tell(self, sender: &mut Sender, edge: u64, config: &Config) {
        let start = Start { segments: 1, ..config.start() };
        let controller = self.cautious.then(|| config.congestion.make(&start));
        sender.open(self.at, edge, self.rtt(), controller, config);
    }
}
