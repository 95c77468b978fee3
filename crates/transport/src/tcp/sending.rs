//! The sending half of a connection, which is next to nothing until there is something to send: of the two ends of a
//! transfer one never sends data.

use std::sync::Arc;

use streamgauge_base::{Duration, Instant};

use super::config::Config;
use super::congestion::AnyController;
use super::sender::Sender;

/// A connection's configuration: what it shares with others, and its own seed.
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

/// A sender, or what it takes to make one.
#[derive(Clone, Debug)]
pub enum Sending {
    /// Nothing was ever written.
    Silent(Silent),
    /// Data or a FIN was written.
    Active(Box<Sender>),
}

/// What a sender is to begin with.
#[derive(Clone, Copy, Debug)]
pub struct Silent {
    /// Of the stream's first byte.
    start: u64,
    /// The peer takes bytes up to it.
    edge: u64,
    opened: Option<Opened>,
    /// The sender's timeout would be this.
    timeout: Duration,
}

/// How the handshake went.
#[derive(Clone, Copy, Debug)]
struct Opened {
    at: Instant,
    /// The round trip that it measured; `MAX` for none.
    rtt: Duration,
    /// The connection starts from one segment.
    cautious: bool,
}

impl Sending {
    /// Of a stream whose first byte has sequence number `start`.
    pub fn new(start: u64) -> Self {
        Sending::Silent(Silent { start, edge: start, opened: None, timeout: Duration::ZERO })
    }

    /// The handshake is done: the peer takes bytes up to `edge`; `rtt` is what the handshake measured, if it was
    /// answered at the first try; `cautious`: SYNs were lost, so that the window starts from one segment.
    pub fn open(&mut self, at: Instant, edge: u64, rtt: Option<Duration>, cautious: bool, own: &Own) {
        let opened = Opened { at, rtt: rtt.unwrap_or(Duration::MAX), cautious };
        match self {
            Sending::Active(sender) => opened.tell(sender, edge, &own.config()),
            Sending::Silent(silent) => {
                (silent.opened, silent.edge) = (Some(opened), edge);
                silent.timeout = silent.sender(own).timeout();
            }
        }
    }

    /// Nothing was ever written.
    #[inline]
    pub fn is_silent(&self) -> bool {
        matches!(self, Sending::Silent(_))
    }
    /// The sender, if anything was ever written.
    #[inline]
    pub fn active(&mut self) -> Option<&mut Sender> {
        match self {
            Sending::Silent(_) => None,
            Sending::Active(sender) => Some(sender),
        }
    }
    /// The sender: there is something to send.
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
    /// The sender as it is, or would be.
    pub fn look<T>(&self, own: &Own, look: impl FnOnce(&Sender) -> T) -> T {
        match self {
            Sending::Silent(silent) => look(&silent.sender(own)),
            Sending::Active(sender) => look(sender),
        }
    }

    /// Bytes that a write would take now.
    pub fn writable(&self, own: &Own) -> u64 {
        match self {
            Sending::Silent(silent) => silent.sender(own).writable(),
            Sending::Active(sender) => sender.writable(),
        }
    }
    /// The peer takes bytes up to `edge`.
    pub fn offer(&mut self, edge: u64) {
        if let Sending::Silent(silent) = self {
            silent.edge = silent.edge.max(edge);
        }
    }
    /// The next byte to be sent for the first time.
    #[inline]
    pub fn next(&self) -> u64 {
        match self {
            Sending::Silent(silent) => silent.start,
            Sending::Active(sender) => sender.next(),
        }
    }
    /// The first byte not acknowledged.
    #[inline]
    pub fn una(&self) -> u64 {
        match self {
            Sending::Silent(silent) => silent.start,
            Sending::Active(sender) => sender.una(),
        }
    }
    /// Our FIN has been sent.
    pub fn fin_sent(&self) -> bool {
        matches!(self, Sending::Active(sender) if sender.fin_sent())
    }
    /// The peer has acknowledged our FIN.
    #[inline]
    pub fn finished(&self) -> bool {
        matches!(self, Sending::Active(sender) if sender.finished())
    }
    /// When the sender must be called.
    #[inline]
    pub fn timer(&self) -> Instant {
        match self {
            Sending::Silent(_) => Instant::FAR_FUTURE,
            Sending::Active(sender) => sender.timer(),
        }
    }
    /// The retransmission timeout of an open connection.
    #[inline]
    pub fn timeout(&self) -> Duration {
        match self {
            Sending::Silent(silent) => silent.timeout,
            Sending::Active(sender) => sender.timeout(),
        }
    }
    /// The smoothed round trip; `None` before the first sample.
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
        let config = &own.config();
        let mut sender = Sender::new(self.start, config);
        if let Some(opened) = self.opened {
            opened.tell(&mut sender, self.edge, config);
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
        let controller = self.cautious.then(|| AnyController::new(config, 1));
        sender.open(self.at, edge, self.rtt(), controller, config);
    }
}
