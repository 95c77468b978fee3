//! Two machines of one host that talk by streams within it: a player, and the proxy that it asks.
//!
//! Bytes that one writes can be read by the other at once. A stream holds as much unread as a socket does: a
//! reader that stops holds up the writer.

use std::collections::{BTreeMap, VecDeque};

use streamgauge_base::{Chunk, Event, Instant};

use crate::app::{App, ChannelError, ChannelId, CloseReason, Envelope, Input, Io};
use crate::carrier::Carrier;

/// Numbers of streams within the host begin here, far from those of its channels to others.
const FIRST_LOCAL: u32 = 1 << 24;

/// Bytes that wait unread in one direction of a stream at most.
const SOCKET_BYTES: usize = 64 << 10;

const PLAYER: usize = 0;
const PROXY: usize = 1;

/// One end's state of a stream.
#[derive(Default)]
struct Half {
    unread: VecDeque<Chunk>,
    unread_bytes: usize,
    /// The other end wrote less than it wanted.
    is_awaited: bool,
    /// This end has finished, or is gone.
    finished: bool,
}

enum Notice {
    Opened,
    Accepted,
    Readable,
    Writable,
    Closed(CloseReason),
    Refused,
}

/// The streams within a host.
#[derive(Default)]
struct Streams {
    next: u32,
    open: BTreeMap<ChannelId, [Half; 2]>,
    notices: VecDeque<(usize, ChannelId, Notice)>,
}

impl Streams {
    fn tell(&mut self, end: usize, channel: ChannelId, notice: Notice) {
        self.notices.push_back((end, channel, notice));
    }

    fn open(&mut self, is_stream: bool) -> ChannelId {
        let channel = ChannelId(FIRST_LOCAL + self.next);
        self.next += 1;
        if !is_stream {
            self.tell(PLAYER, channel, Notice::Refused);
            return channel;
        }
        self.open.insert(channel, Default::default());
        self.tell(PROXY, channel, Notice::Accepted);
        self.tell(PLAYER, channel, Notice::Opened);
        channel
    }

    fn write(&mut self, end: usize, channel: ChannelId, mut chunk: Chunk) -> usize {
        let Some(halves) = self.open.get_mut(&channel).filter(|halves| !halves[end].finished) else {
            return 0;
        };
        let other = &mut halves[1 - end];
        let room = SOCKET_BYTES.saturating_sub(other.unread_bytes);
        other.is_awaited |= room < chunk.len();
        chunk.split_off(room);
        let taken = chunk.len();
        if taken > 0 {
            other.unread_bytes += taken;
            other.unread.push_back(chunk);
            self.tell(1 - end, channel, Notice::Readable);
        }
        taken
    }

    fn read(&mut self, end: usize, channel: ChannelId, most: usize) -> Option<Chunk> {
        let own = &mut self.open.get_mut(&channel)?[end];
        let mut chunk = own.unread.pop_front()?;
        let rest = chunk.split_off(most);
        if !rest.is_empty() {
            own.unread.push_front(rest);
        }
        own.unread_bytes -= chunk.len();
        if std::mem::take(&mut own.is_awaited) {
            self.tell(1 - end, channel, Notice::Writable);
        }
        Some(chunk)
    }

    fn close(&mut self, end: usize, channel: ChannelId) {
        let Some(halves) = self.open.get_mut(&channel) else { return };
        if !std::mem::replace(&mut halves[end].finished, true) {
            if halves[1 - end].finished {
                self.open.remove(&channel);
            }
            self.tell(1 - end, channel, Notice::Closed(CloseReason::Finished));
        }
    }

    fn abort(&mut self, end: usize, channel: ChannelId) {
        if self.open.remove(&channel).is_some() {
            self.notices.retain(|(_, of, _)| *of != channel);
            self.tell(1 - end, channel, Notice::Closed(CloseReason::Reset));
        }
    }
}

/// The host's streams as one of its machines sees them, and behind them the way out.
struct HostIo<'a> {
    end: usize,
    streams: &'a mut Streams,
    outside: &'a mut dyn Io,
}

impl HostIo<'_> {
    fn is_local(channel: ChannelId) -> bool {
        channel.0 >= FIRST_LOCAL
    }
}

impl Io for HostIo<'_> {
    fn open(&mut self, carrier: &Carrier) -> ChannelId {
        match self.end {
            PLAYER => self.streams.open(matches!(carrier, Carrier::Tcp { .. })),
            _ => self.outside.open(carrier),
        }
    }

    fn send_as(&mut self, channel: ChannelId, datagram: Chunk, _: Envelope) {
        if !Self::is_local(channel) {
            self.outside.send(channel, datagram);
        }
    }

    fn write(&mut self, channel: ChannelId, chunk: Chunk) -> usize {
        match Self::is_local(channel) {
            true => self.streams.write(self.end, channel, chunk),
            false => self.outside.write(channel, chunk),
        }
    }

    fn read(&mut self, channel: ChannelId, max: usize) -> Option<Chunk> {
        match Self::is_local(channel) {
            true => self.streams.read(self.end, channel, max),
            false => self.outside.read(channel, max),
        }
    }

    fn close(&mut self, channel: ChannelId) {
        match Self::is_local(channel) {
            true => self.streams.close(self.end, channel),
            false => self.outside.close(channel),
        }
    }

    fn abort(&mut self, channel: ChannelId) {
        match Self::is_local(channel) {
            true => self.streams.abort(self.end, channel),
            false => self.outside.abort(channel),
        }
    }

    fn port(&self, channel: ChannelId) -> Option<u16> {
        if Self::is_local(channel) { None } else { self.outside.port(channel) }
    }

    fn direct(&mut self, channel: ChannelId, port: u16) {
        if !Self::is_local(channel) {
            self.outside.direct(channel, port);
        }
    }

    fn keeps_filler(&self) -> bool {
        self.outside.keeps_filler()
    }
}

/// A player with a proxy in its host as the peer of all its streams; the proxy has the host's channels to
/// others.
pub struct Host<P, R> {
    player: P,
    proxy: R,
    streams: Streams,
}

impl<P: App, R: App> Host<P, R> {
    /// Returns both of them.
    pub fn new(player: P, proxy: R) -> Self {
        Host { player, proxy, streams: Streams::default() }
    }

    /// Returns the player.
    pub fn player(&self) -> &P {
        &self.player
    }

    /// Returns the same.
    pub fn player_mut(&mut self) -> &mut P {
        &mut self.player
    }

    /// Returns its proxy.
    pub fn proxy(&self) -> &R {
        &self.proxy
    }

    fn give(&mut self, end: usize, now: Instant, input: Input<'_>, outside: &mut dyn Io) {
        let io = &mut HostIo { end, streams: &mut self.streams, outside };
        match end {
            PLAYER => self.player.handle(now, input, io),
            _ => self.proxy.handle(now, input, io),
        }
    }

    /// Passes each one's output to the other, until both are quiet.
    fn settle(&mut self, now: Instant, outside: &mut dyn Io) {
        while let Some((end, channel, notice)) = self.streams.notices.pop_front() {
            let refused = ChannelError::Host("this host has streams to its proxy alone".into());
            let input = match notice {
                Notice::Opened => Input::Opened(channel),
                Notice::Accepted => Input::Accepted { channel, on: channel },
                Notice::Readable => Input::Readable(channel),
                Notice::Writable => Input::Writable(channel),
                Notice::Closed(why) => Input::Closed(channel, why),
                Notice::Refused => Input::Refused(channel, &refused),
            };
            self.give(end, now, input, outside);
        }
    }
}

impl<P: App, R: App> App for Host<P, R> {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        match input {
            Input::Start | Input::Stop => {
                self.give(PROXY, now, input, io);
                self.give(PLAYER, now, input, io);
            }
            Input::Timeout => {
                if self.proxy.poll_timeout().is_some_and(|at| at <= now) {
                    self.give(PROXY, now, input, io);
                }
                if self.player.poll_timeout().is_some_and(|at| at <= now) {
                    self.give(PLAYER, now, input, io);
                }
            }
            Input::Pause | Input::Resume => self.give(PLAYER, now, input, io),
            _ => self.give(PROXY, now, input, io),
        }
        self.settle(now, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.player.poll_timeout().into_iter().chain(self.proxy.poll_timeout()).min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.player.poll_event().or_else(|| self.proxy.poll_event())
    }
}
