//! The face of a machine: a server, a player, a traffic source or sink.

use streamgauge_base::{Chunk, Ecn, Event, Instant};

use crate::carrier::Carrier;

/// A channel of one end. Those that a flow begins with have the same number at both ends; one that a machine opens
/// or accepts has a number of that end alone. No number is used twice at one end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChannelId(pub u32);

/// A flow through a relay, as that relay counts them: from 0, in the plan's order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Peer(pub u16);

/// Why a stream channel closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The other end finished and every byte has arrived. This end may still write until it closes too.
    Finished,
    /// The other end reset the connection.
    Reset,
    /// The other end answers no more.
    TimedOut,
}

/// Why a channel could not be opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ChannelError {
    /// The other end answered with a reset.
    #[error("no listener on port {port} at the other end; let its machine listen first")]
    NoListener {
        /// The other end's port.
        port: u16,
    },
    /// The other end did not answer, or had no room in its backlog for as long as was tried.
    #[error("port {port} of the other end does not answer; check the path's loss and the listener's backlog")]
    TimedOut {
        /// The other end's port.
        port: u16,
    },
    /// A port that was asked for belongs to another channel of this end.
    #[error("port {port} is in use at this end; close its channel, or use another")]
    PortTaken {
        /// Ours.
        port: u16,
    },
    /// Every port that the host would choose from is taken.
    #[error(
        "no port is free from {first} to {last}: each is in use or in TIME-WAIT. Open fewer channels, or keep \
         them open"
    )]
    NoPort {
        /// The range's first.
        first: u16,
        /// The range's last.
        last: u16,
    },
    /// The host cannot fulfil the request: unknown settings, or the operating system's refusal.
    #[error("{0}")]
    Host(String),
}

/// An input of a machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Input<'a> {
    /// The flow's start time has come.
    Start,
    /// A stream channel is connected.
    Opened(ChannelId),
    /// The other end has connected to a listener of ours, or sent its first datagram there.
    Accepted {
        /// The new stream, or channel of datagrams.
        channel: ChannelId,
        /// The listener.
        on: ChannelId,
    },
    /// A channel could not be opened; no further input concerns it. A machine that tries again waits first:
    /// at this same time the answer is the same.
    Refused(ChannelId, &'a ChannelError),
    /// A datagram arrived.
    Datagram {
        /// The channel of its arrival.
        on: ChannelId,
        /// All of it.
        bytes: &'a Chunk,
        /// The IP header's ECN bits.
        ecn: Ecn,
        /// When it reached this host: by virtual time, or by the kernel's stamp. No later than the machine's
        /// input.
        at: Instant,
    },
    /// A stream channel has bytes to read.
    Readable(ChannelId),
    /// A stream channel takes bytes again after `write` took fewer than offered.
    Writable(ChannelId),
    /// A stream channel closed. After any reason but `Finished` no further input concerns it, and its unread
    /// data are lost.
    Closed(ChannelId, CloseReason),
    /// The time that `poll_timeout` named has come.
    Timeout,
    /// Stop sending for now; arrivals are still taken.
    Pause,
    /// Go on sending.
    Resume,
    /// End the flow at once: nothing more is written, and unsent data in a stream's buffer are given up.
    Stop,
}

impl<'a> Input<'a> {
    /// Returns a datagram without ECN that reached the host at `at`.
    pub fn datagram(on: ChannelId, bytes: &'a Chunk, at: Instant) -> Self {
        Input::Datagram { on, bytes, ecn: Ecn::NotEct, at }
    }
}

/// How a datagram leaves, beside its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Envelope {
    /// The IP header's ECN bits; `None` for those of the channel's carrier.
    pub ecn: Option<Ecn>,
    /// When it leaves; `None`, or a time that has passed, for at once. Datagrams of one channel must be given in the order in
    /// which they leave.
    pub departs: Option<Instant>,
}

/// The operations of a machine.
pub trait Io {
    /// Opens a channel of this end, at any time and as many as there are ports. Streams are reported by
    /// `Opened` or `Refused`; other channels, which need no answer, are open at once, or `Refused`.
    fn open(&mut self, carrier: &Carrier) -> ChannelId;
    /// Opens a channel as [`Io::open`], from a relay to the server of one of its flows: TCP, or UDP from a
    /// port at which it listens. An end that is no relay has one other end, which this is.
    fn open_to(&mut self, peer: Peer, carrier: &Carrier) -> ChannelId {
        let _ = peer;
        self.open(carrier)
    }
    /// Opens a channel as [`Io::open`], to another host than the other end, by its name. Only among strangers
    /// there are others.
    fn open_at(&mut self, host: &str, carrier: &Carrier) -> ChannelId {
        let _ = host;
        self.open(carrier)
    }
    /// Returns the peer of a relay's channel: the flow of the player that opened it, or of the server that it
    /// was opened to. `None` of a listener, and at an end that is no relay.
    fn peer(&self, channel: ChannelId) -> Option<Peer> {
        let _ = channel;
        None
    }
    /// Sends a datagram at once, with the ECN bits of the channel's carrier. Never blocks; datagrams that the
    /// network cannot accept are dropped.
    fn send(&mut self, channel: ChannelId, datagram: Chunk) {
        self.send_as(channel, datagram, Envelope::default());
    }
    /// Sends as [`Io::send`], with ECN bits and a time of its own. Datagrams of one call of the machine that
    /// leave at once leave the host together. Datagrams that wait for their time are lost if the channel
    /// closes.
    fn send_as(&mut self, channel: ChannelId, datagram: Chunk, how: Envelope);
    /// Writes to a stream and returns how many bytes its send buffer took; `Writable` follows if not all.
    fn write(&mut self, channel: ChannelId, chunk: Chunk) -> usize;
    /// Reads up to `max` bytes from a stream; `None` if there is nothing.
    fn read(&mut self, channel: ChannelId, max: usize) -> Option<Chunk>;
    /// Finishes a stream: written data are still sent, and the other end's data are still received. A channel
    /// of another kind is gone at once; with a listener go those that it has not accepted, with one of UDP
    /// all of its port.
    fn close(&mut self, channel: ChannelId);
    /// Ends a stream at once, both ways: unsent data are given up, and the other end's stream fails. No
    /// further input concerns it here. A host that owes strangers its written data finishes it instead.
    fn abort(&mut self, channel: ChannelId) {
        self.close(channel);
    }
    /// Returns our port of a channel; `None` if it was refused or is gone.
    fn port(&self, channel: ChannelId) -> Option<u16>;
    /// Datagrams of `channel` go to this port of the other end from now on.
    fn direct(&mut self, channel: ChannelId, port: u16);
    /// Returns whether sent filler arrives as filler, as in a simulator. Sockets carry it as zeros, which the
    /// other end cannot distinguish from real bytes.
    fn keeps_filler(&self) -> bool {
        false
    }
}

/// A state machine. After each `handle`, the driver reads `poll_event` until it is empty and asks
/// `poll_timeout` again.
pub trait App {
    /// Takes `input` at `now`.
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io);
    /// Returns when it needs `Input::Timeout`; `None` for never.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Returns its next event.
    fn poll_event(&mut self) -> Option<Event>;
    /// Returns whether it has left: it then reads, sends and reports nothing more, despite any input. False
    /// of a machine that stays to the end.
    fn is_gone(&self) -> bool {
        false
    }
}
