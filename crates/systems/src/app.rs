//! The face of a machine: a server, a player, a traffic source or sink.

use streamgauge_base::{Chunk, Event, Instant};

/// A channel between the two ends of a flow. Both ends use the same number for the same channel; which
/// transport it rides on is declared beside the machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChannelId(pub u8);

/// Why a stream channel closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The other end finished and every byte has arrived.
    Finished,
    /// The connection was reset or gave up.
    Failed,
}

/// What happens to a machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Input<'a> {
    /// The flow's start time has come.
    Start,
    /// A stream channel is connected.
    Opened(ChannelId),
    /// A datagram arrived.
    Datagram(ChannelId, &'a Chunk),
    /// A stream channel has bytes to read.
    Readable(ChannelId),
    /// A stream channel takes bytes again after `write` took fewer than offered.
    Writable(ChannelId),
    /// A stream channel closed.
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
    /// Sends a datagram. Never blocks; what the network cannot take it drops.
    fn send(&mut self, channel: ChannelId, datagram: Chunk);
    /// Writes to a stream and returns how many bytes its send buffer took; `Writable` follows if not all.
    fn write(&mut self, channel: ChannelId, chunk: Chunk) -> usize;
    /// Reads up to `max` bytes from a stream; `None` if there is nothing.
    fn read(&mut self, channel: ChannelId, max: usize) -> Option<Chunk>;
    /// Finishes a stream: what was written still goes out.
    fn close(&mut self, channel: ChannelId);
    /// Ends a stream at once, both ways: what was written and not yet sent is given up, and the other end's stream
    /// fails. Nothing more is said of it here. A host that owes strangers what was written finishes it instead.
    fn abort(&mut self, channel: ChannelId) {
        self.close(channel);
    }
    /// The port of `rtp`, which is even; the channel after it, for RTCP, has the next (RFC 3550 section 11).
    /// Both are bound if they were not. `None` if the host has no pair left. A trial fixes all ports.
    fn bind_pair(&mut self, rtp: ChannelId) -> Option<u16>;
    /// Datagrams of `channel` go to this port of the other end from now on. In a trial both ends use the same
    /// port, and nothing changes.
    fn direct(&mut self, channel: ChannelId, port: u16);
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
}
