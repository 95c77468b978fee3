//! A forwarder's way to another one: packets as datagrams, or one behind the other on a stream.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, Instant};
use streamgauge_wire::ndn::{
    self, Data, Fragmenter, Interest, LpPacket, Reader, Reassembler, ReassemblyLimits,
};

use super::forwarder::FacePacket;
use super::spec::Fragmentation;
use crate::app::{ChannelId, CloseReason, Input, Io};
use crate::carrier::Carrier;
use crate::outbox::Outbox;

/// Bytes read from a stream at once.
const READ_BYTES: usize = 64 << 10;

/// Packets that wait for a stream; later ones are dropped, as a forwarder's queue is finite.
const MOST_WAITING: usize = 1024;

/// The channel of a face that has not opened one.
const NO_CHANNEL: ChannelId = ChannelId(u32::MAX);

/// A datagram that an Ethernet frame carries whole.
const MOST_DATAGRAM: usize = 1472;

/// The same, whether by IPv4 or IPv6.
const MOST_ANY_DATAGRAM: usize = 1452;

/// A token in an Interest that its answer returns (NDNLPv2, PitToken).
pub type PitToken = Box<[u8]>;

/// The face on one of a host's channels.
pub struct Face {
    channel: ChannelId,
    way: Way,
    over: Over,
    is_gone: bool,
    /// Packets that were read and are wrong, or had no room.
    dropped: u64,
}

/// The way in which it gets its channel.
enum Way {
    /// It has it.
    There,
    /// It opens it at the start, and may do so again.
    Opens(Carrier),
    /// A connecting peer brings it; a later peer replaces an earlier one.
    Listens,
}

enum Over {
    Datagrams {
        /// `None` where the host cuts them.
        fragmenter: Option<Fragmenter>,
        reassembler: Reassembler,
    },
    Stream {
        reader: Reader,
        outgoing: VecDeque<Chunk>,
        is_open: bool,
    },
}

impl Face {
    /// Returns a face over UDP.
    pub fn udp(channel: ChannelId, fragmentation: Fragmentation) -> Self {
        let fragmenter = (fragmentation == Fragmentation::Ndnlp).then(|| Fragmenter::of(MOST_DATAGRAM, 0));
        Face::over(channel, Over::Datagrams { fragmenter, reassembler: Reassembler::default() })
    }

    /// Returns a face over UDP to a stranger, in datagrams that fit, by IPv4 or IPv6. The first that is a
    /// part has the number `sequence`, which should be drawn: the peer may have parts of an earlier face, and
    /// ndnd 1.5 reassembles none that begin with 0. At most `limits` of the peer's fragments are kept.
    pub fn datagrams(channel: ChannelId, sequence: u64, limits: ReassemblyLimits) -> Self {
        let fragmenter = Some(Fragmenter::of(MOST_ANY_DATAGRAM, sequence));
        Face::over(channel, Over::Datagrams { fragmenter, reassembler: Reassembler::of(limits) })
    }

    /// Returns a face over TCP, by a connection that is open or being opened.
    pub fn tcp(channel: ChannelId, is_open: bool) -> Self {
        let (reader, outgoing) = (Reader::default(), VecDeque::new());
        Face::over(channel, Over::Stream { reader, outgoing, is_open })
    }

    fn over(channel: ChannelId, over: Over) -> Self {
        Face { channel, way: Way::There, over, is_gone: false, dropped: 0 }
    }

    /// Returns a face over TCP, by a connection that it opens itself at the start.
    pub fn opening(carrier: Carrier) -> Self {
        Face { way: Way::Opens(carrier), ..Face::tcp(NO_CHANNEL, false) }
    }

    /// Returns a face over UDP to a stranger, by a channel that it opens itself at the start; `sequence` as
    /// of [`Face::datagrams`].
    pub fn opening_datagrams(carrier: Carrier, sequence: u64) -> Self {
        let face = Face::datagrams(NO_CHANNEL, sequence, ReassemblyLimits::default());
        Face { way: Way::Opens(carrier), ..face }
    }

    /// Returns a face over TCP, by the connection that another opens to a listener of its host.
    pub fn listening() -> Self {
        Face { way: Way::Listens, ..Face::tcp(NO_CHANNEL, false) }
    }

    /// Packets that wait for a stream.
    pub fn waiting(&self) -> usize {
        if let Over::Stream { outgoing, .. } = &self.over { outgoing.len() } else { 0 }
    }

    /// Returns whether some of a packet has come by its stream, and the rest of it is awaited.
    pub fn awaits_rest(&self) -> bool {
        matches!(&self.over, Over::Stream { reader, .. } if !self.is_gone && !reader.is_between_packets())
    }

    /// Returns whether it can no longer carry anything.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Packets that were wrong, or had no room.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Processes an input of the driver, and returns its packets.
    pub(super) fn input(
        &mut self,
        now: Instant,
        input: &Input<'_>,
        io: &mut dyn Io,
        events: &mut Outbox,
    ) -> Vec<FacePacket> {
        let mut came = Vec::new();
        match (*input, &mut self.over) {
            (Input::Datagram { on: channel, bytes: datagram, .. }, Over::Datagrams { .. })
                if channel == self.channel =>
            {
                came.extend(self.datagram(now, datagram).map(|(packet, _)| packet));
            }
            (Input::Start, _) => {
                if let Way::Opens(carrier) = &self.way {
                    self.channel = io.open(carrier);
                }
            }
            (Input::Accepted { channel, .. }, Over::Stream { .. }) if matches!(self.way, Way::Listens) => {
                self.fail(io);
                *self = Face { way: Way::Listens, dropped: self.dropped, ..Face::tcp(channel, true) };
            }
            (Input::Opened(channel), Over::Stream { is_open, .. }) if channel == self.channel => {
                *is_open = true;
                self.flush(io);
            }
            (Input::Writable(channel), Over::Stream { .. }) if channel == self.channel => self.flush(io),
            (Input::Readable(channel), Over::Stream { .. }) if channel == self.channel => {
                return std::iter::from_fn(|| self.next(now, io, events)).map(|(packet, _)| packet).collect();
            }
            (Input::Closed(channel, why), Over::Stream { .. }) if channel == self.channel => {
                let why = match why {
                    CloseReason::Finished => "the other end finished",
                    CloseReason::Reset => "the connection was reset",
                    CloseReason::TimedOut => "the other end answers no more",
                };
                if !std::mem::replace(&mut self.is_gone, true) {
                    io.close(channel);
                    events.say(now, "face_down", None, "", why);
                }
            }
            (Input::Refused(channel, why), _) if channel == self.channel => {
                self.is_gone = true;
                events.say(now, "face_down", None, "", why.to_string());
            }
            _ => {}
        }
        came
    }

    /// Returns the packet that a datagram contains or completes, with the token to be returned with its
    /// answer.
    pub(super) fn datagram(
        &mut self,
        now: Instant,
        datagram: &Chunk,
    ) -> Option<(FacePacket, Option<PitToken>)> {
        let Over::Datagrams { reassembler, .. } = &mut self.over else { return None };
        match LpPacket::read(datagram.clone()) {
            Ok(packet) => {
                let mut packet = reassembler.push(now, packet)?;
                let token = packet.pit_token.take();
                Some((self.opened(packet)?, token))
            }
            Err(_) => {
                self.dropped += 1;
                None
            }
        }
    }

    /// Opens a new channel in place of one that is gone, if this face opens its channels itself.
    pub(super) fn reopen(&mut self, io: &mut dyn Io) -> bool {
        let (Way::Opens(carrier), true) = (&self.way, self.is_gone) else { return false };
        self.channel = io.open(carrier);
        self.is_gone = false;
        if let Over::Stream { reader, outgoing, is_open } = &mut self.over {
            (*reader, *is_open) = (Reader::default(), false);
            outgoing.clear();
        }
        true
    }

    /// Returns the next packet of a stream, with the token to be returned with its answer. It reads no
    /// further than for that packet. Bytes that are none of NDN's end the face.
    pub(super) fn next(
        &mut self,
        now: Instant,
        io: &mut dyn Io,
        events: &mut Outbox,
    ) -> Option<(FacePacket, Option<PitToken>)> {
        loop {
            let (Over::Stream { reader, .. }, false) = (&mut self.over, self.is_gone) else { return None };
            let packet = reader.next().map(|packet| {
                let refilled = |packet| if io.keeps_filler() { ndn::refilled(packet) } else { packet };
                packet.map(refilled).and_then(LpPacket::read)
            });
            match packet {
                Some(Ok(mut packet)) => {
                    let token = packet.pit_token.take();
                    if let Some(packet) = self.opened(packet) {
                        return Some((packet, token));
                    }
                }
                Some(Err(problem)) => {
                    self.fail(io);
                    events.say(now, "face_down", None, "", problem.to_string());
                }
                None => reader.push(io.read(self.channel, READ_BYTES)?),
            }
        }
    }

    /// Ends it.
    pub(super) fn fail(&mut self, io: &mut dyn Io) {
        if std::mem::replace(&mut self.is_gone, true) {
            return;
        }
        if let Over::Stream { outgoing, .. } = &mut self.over {
            outgoing.clear();
        }
        if self.channel != NO_CHANNEL {
            io.abort(self.channel);
        }
    }

    /// Returns the content of a link's packet. An Interest without a nonce is none on a link.
    fn opened(&mut self, packet: LpPacket) -> Option<FacePacket> {
        // An idle packet has its header fields alone.
        let fragment = packet.fragment?;
        let read = match packet.nack {
            Some(reason) => Interest::read(&fragment).map(|interest| FacePacket::Nack(reason, interest)),
            None => ndn::Packet::read(&fragment).map(|packet| match packet {
                ndn::Packet::Interest(interest) => FacePacket::Interest(interest),
                ndn::Packet::Data(data) => FacePacket::Data(data),
            }),
        };
        let is_sound =
            |packet: &FacePacket| !matches!(packet, FacePacket::Interest(Interest { nonce: None, .. }));
        let found = read.ok().filter(is_sound);
        self.dropped += u64::from(found.is_none());
        found
    }

    /// Sends a packet, if the face takes it.
    pub fn send(&mut self, packet: &FacePacket, io: &mut dyn Io) {
        self.answer(packet, None, io);
    }

    /// Sends the answer to an Interest that brought `token`.
    pub fn answer(&mut self, packet: &FacePacket, token: Option<PitToken>, io: &mut dyn Io) {
        if self.is_gone {
            self.dropped += 1;
            return;
        }
        match &mut self.over {
            Over::Datagrams { .. } => {
                let datagrams = self.datagrams_of(packet, token);
                datagrams.into_iter().for_each(|datagram| io.send(self.channel, datagram));
            }
            Over::Stream { outgoing, .. } => {
                if outgoing.len() >= MOST_WAITING {
                    self.dropped += 1;
                    return;
                }
                outgoing.push_back(bare(packet, token).write());
                self.flush(io);
            }
        }
    }

    /// Returns the datagrams of a packet; none over a stream, and for one that has no room in them.
    pub fn datagrams_of(&mut self, packet: &FacePacket, token: Option<PitToken>) -> Vec<Chunk> {
        let bare = bare(packet, token);
        match &mut self.over {
            Over::Datagrams { fragmenter: None, .. } => vec![bare.write()],
            Over::Datagrams { fragmenter: Some(fragmenter), .. } => {
                fragmenter.cut(&bare).unwrap_or_else(|_| {
                    self.dropped += 1;
                    Vec::new()
                })
            }
            Over::Stream { .. } => Vec::new(),
        }
    }

    fn flush(&mut self, io: &mut dyn Io) {
        let Over::Stream { outgoing, is_open, .. } = &mut self.over else { return };
        if !*is_open || self.is_gone {
            return;
        }
        while let Some(mut chunk) = outgoing.pop_front() {
            let taken = io.write(self.channel, chunk.clone());
            let rest = chunk.split_off(taken);
            if !rest.is_empty() {
                outgoing.push_front(rest);
                break;
            }
        }
    }
}

/// Returns a packet as a link carries it, with its Interest's token.
fn bare(packet: &FacePacket, token: Option<PitToken>) -> LpPacket {
    let bare = match packet {
        FacePacket::Interest(interest) => LpPacket::of(interest.write()),
        FacePacket::Data(data) => LpPacket::of(Data::write(data)),
        FacePacket::Nack(reason, interest) => LpPacket::nack(*reason, interest.write()),
    };
    LpPacket { pit_token: token, ..bare }
}
