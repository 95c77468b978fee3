//! How RTP and RTCP travel: two UDP channels, or interleaved on a stream.

use std::collections::VecDeque;

use streamgauge_base::Chunk;
use streamgauge_wire::rtsp::{Item, Reader, interleave};

use super::{CONTROL, MEDIA};
use crate::app::{Input, Io};

/// The interleaved channel of RTP (RFC 2326 section 10.12); RTCP's is the next.
const RTP: u8 = 0;
const RTCP: u8 = 1;

/// What a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Rtp,
    Rtcp,
}

/// One end's way to the other.
pub enum Lane {
    Udp,
    Tcp {
        /// Framed packets that the stream has not taken yet.
        backlog: VecDeque<Chunk>,
        reader: Reader,
        open: bool,
    },
}

impl Lane {
    pub fn udp() -> Self {
        Lane::Udp
    }

    pub fn tcp() -> Self {
        Lane::Tcp { backlog: VecDeque::new(), reader: Reader::default(), open: false }
    }

    pub fn is_stream(&self) -> bool {
        matches!(self, Lane::Tcp { .. })
    }

    /// Sends a packet of real bytes `head` and `filler` more. On a stream that is full it waits in line.
    pub fn send(&mut self, io: &mut dyn Io, kind: Kind, head: &[u8], filler: u32) {
        match self {
            Lane::Udp => {
                let channel = if kind == Kind::Rtp { MEDIA } else { CONTROL };
                io.send(channel, Chunk::with_filler(head, filler));
            }
            Lane::Tcp { backlog, .. } => {
                let channel = if kind == Kind::Rtp { RTP } else { RTCP };
                backlog.push_back(interleave(channel, &Chunk::with_filler(head, filler)));
                self.flush(io);
            }
        }
    }

    fn flush(&mut self, io: &mut dyn Io) {
        let Lane::Tcp { backlog, open: true, .. } = self else { return };
        while let Some(mut chunk) = backlog.pop_front() {
            let taken = io.write(MEDIA, chunk.clone());
            let rest = chunk.split_off(taken);
            if !rest.is_empty() {
                backlog.push_front(rest);
                return;
            }
        }
    }

    /// Everything sent has been taken by the network.
    pub fn is_clear(&self) -> bool {
        match self {
            Lane::Udp => true,
            Lane::Tcp { backlog, open, .. } => *open && backlog.is_empty(),
        }
    }

    /// Takes what `input` brings and gives each packet's first bytes to `packet`.
    pub fn handle(&mut self, input: Input<'_>, io: &mut dyn Io, mut packet: impl FnMut(Kind, &[u8])) {
        match (&mut *self, input) {
            (Lane::Udp, Input::Datagram(MEDIA, datagram)) => packet(Kind::Rtp, datagram.head()),
            (Lane::Udp, Input::Datagram(CONTROL, datagram)) => packet(Kind::Rtcp, datagram.head()),
            (Lane::Tcp { reader, .. }, Input::Readable(MEDIA)) => {
                while let Some(chunk) = io.read(MEDIA, usize::MAX) {
                    reader.push(chunk);
                    // Nothing but frames is on it; a stream that is not framed as it should be ends the reading.
                    for item in reader.by_ref() {
                        match item {
                            Ok(Item::Interleaved { channel: RTP, packet: p }) => packet(Kind::Rtp, p.head()),
                            Ok(Item::Interleaved { channel: RTCP, packet: p }) => {
                                packet(Kind::Rtcp, p.head())
                            }
                            _ => {}
                        }
                    }
                }
            }
            (Lane::Tcp { open, .. }, Input::Opened(MEDIA)) => {
                *open = true;
                self.flush(io);
            }
            (Lane::Tcp { .. }, Input::Writable(MEDIA)) => self.flush(io),
            (Lane::Tcp { open, backlog, .. }, Input::Closed(MEDIA, _)) => {
                *open = false;
                backlog.clear();
            }
            _ => {}
        }
    }

    /// Ends the stream at once, with what it has not sent yet.
    pub fn abort(&mut self, io: &mut dyn Io) {
        if let Lane::Tcp { open, backlog, .. } = self {
            backlog.clear();
            *open = false;
            io.abort(MEDIA);
        }
    }

    /// Ends the stream after what was sent; nothing waits in line any more.
    pub fn close(&mut self, io: &mut dyn Io) {
        if let Lane::Tcp { open, backlog, .. } = self {
            backlog.clear();
            if std::mem::take(open) {
                io.close(MEDIA);
            }
        }
    }
}
