//! The face of a machine: a server, a player, a traffic source or sink.

use streamgauge_base::{Chunk, Event, Instant};

use crate::carrier::Carrier;

/// A channel of one end. Those that a flow begins with have the same number at both ends; one that a machine opens
/// or accepts has a number of that end alone. No number is used twice at one end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChannelId(pub u32);

/// A flow that goes through a relay, as that relay counts them: from 0, in the plan's order.
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
    #[error("nobody listens on port {port} at the other end; let its machine listen before this one opens")]
    NoListener {
        /// The other end's port.
        port: u16,
    },
    /// The other end did not answer, or had no room in its backlog for as long as was tried.
    #[error(
        "port {port} of the other end does not answer; look at the path's loss and at the listener's backlog"
    )]
    TimedOut {
        /// The other end's port.
        port: u16,
    },
    /// A port that was asked for belongs to another channel of this end.
    #[error("port {port} is taken at this end; close the channel that has it, or take another")]
    PortTaken {
        /// Ours.
        port: u16,
    },
    /// Every port that the host would choose from is taken.
    #[error(
        "no port is left of {first} to {last}: each is in use or waits in TIME-WAIT; open fewer channels, or keep \
         them open"
    )]
    NoPort {
        /// The range's first.
        first: u16,
        /// The range's last.
        last: u16,
    },
    /// The host cannot do what was asked for: settings that it does not know, or the operating system's refusal.
    #[error("{0}")]
    Host(String),
}

/// What happens to a machine.
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
    /// A channel that was to be opened could not be; nothing more is said of it. Who tries again waits first: at this
    /// same time the answer is the same.
    Refused(ChannelId, &'a ChannelError),
    /// A datagram arrived.
    Datagram(ChannelId, &'a Chunk),
    /// A stream channel has bytes to read.
    Readable(ChannelId),
    /// A stream channel takes bytes again after `write` took fewer than offered.
    Writable(ChannelId),
    /// A stream channel closed. After any reason but `Finished` nothing more is said of it, and what has not been read
    /// is lost with it.
    Closed(ChannelId, CloseReason),
    /// The time that `poll_timeout` named has come.
    Timeout,
    /// Stop sending for now; arrivals are still taken.
    Pause,
    /// Go on sending.
    Resume,
    /// End the flow at once: nothing more is written, and what waits unsent in a stream's buffer is given up.
    Stop,
}

/// What a machine can do to the world.
pub trait Io {
    /// Opens a channel of this end, at any time and as many as there are ports. Streams are told by `Opened` or
    /// `Refused`; what else rides on nobody's answer is there at once, or `Refused`.
    fn open(&mut self, carrier: &Carrier) -> ChannelId;
    /// As [`Io::open`], from a relay to the server of one of its flows: TCP, or UDP from a port at which it listens. An end
    /// that is no relay has one other end, which this is.
    fn open_to(&mut self, peer: Peer, carrier: &Carrier) -> ChannelId {
        let _ = peer;
        self.open(carrier)
    }
    /// As [`Io::open`], to another host than the other end, by its name. Only among strangers there are others.
    fn open_at(&mut self, host: &str, carrier: &Carrier) -> ChannelId {
        let _ = host;
        self.open(carrier)
    }
    /// Whose a relay's channel is: the flow of the player that opened it, or of the server that it was opened to. `None` of
    /// a listener, and at an end that is no relay.
    fn peer(&self, channel: ChannelId) -> Option<Peer> {
        let _ = channel;
        None
    }
    /// Sends a datagram. Never blocks; what the network cannot take it drops.
    fn send(&mut self, channel: ChannelId, datagram: Chunk);
    /// Writes to a stream and returns how many bytes its send buffer took; `Writable` follows if not all.
    fn write(&mut self, channel: ChannelId, chunk: Chunk) -> usize;
    /// Reads up to `max` bytes from a stream; `None` if there is nothing.
    fn read(&mut self, channel: ChannelId, max: usize) -> Option<Chunk>;
    /// Finishes a stream: what was written still goes out, and what the other end writes still comes in. A channel of
    /// another kind is gone at once; with a listener go those that it has not accepted, with one of UDP all of its port.
    fn close(&mut self, channel: ChannelId);
    /// Ends a stream at once, both ways: what was written and not yet sent is given up, and the other end's stream
    /// fails. Nothing more is said of it here. A host that owes strangers what was written finishes it instead.
    fn abort(&mut self, channel: ChannelId) {
        self.close(channel);
    }
    /// Our port of a channel; `None` if it was refused or is gone.
    fn port(&self, channel: ChannelId) -> Option<u16>;
    /// Datagrams of `channel` go to this port of the other end from now on.
    fn direct(&mut self, channel: ChannelId, port: u16);
    /// What is sent as filler comes as filler, as in a simulator. Sockets carry it as zeros, which the other end cannot tell
    /// from real bytes.
    fn keeps_filler(&self) -> bool {
        false
    }
}

/// A state machine. After each `handle`, the driver reads `poll_event` until it is empty and asks
/// `poll_timeout` again.
pub trait App {
    /// Takes `input` at `now`.
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io);
    /// When it wants `Input::Timeout`; `None` for never.
    fn poll_timeout(&self) -> Option<Instant>;
    /// The next thing it has to say.
    fn poll_event(&mut self) -> Option<Event>;
    /// It has left: it reads, sends and says nothing any more, whatever still comes. False of a machine that stays to the end.
    fn is_gone(&self) -> bool {
        false
    }
}
