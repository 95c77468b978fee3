//! How RTP and RTCP travel: two UDP channels, or interleaved on a stream.

use streamgauge_base::Chunk;
use streamgauge_wire::rtsp::{Reader, RtspItem, interleave};

use super::{CONTROL, MEDIA};
use crate::app::{Input, Io};
use crate::rtsp::Backlog;

/// The interleaved channel of RTP (RFC 2326 section 10.12); RTCP's is the next.
const RTP: u8 = 0;
const RTCP: u8 = 1;

/// The kind of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Rtp,
    Rtcp,
}

/// One end's way to the other.
pub enum RtpTransport {
    Udp,
    Tcp {
        /// Framed packets that the stream has not accepted yet.
        backlog: Backlog,
        reader: Reader,
    },
}

impl RtpTransport {
    pub fn udp() -> Self {
        RtpTransport::Udp
    }

    pub fn tcp() -> Self {
        RtpTransport::Tcp { backlog: Backlog::new(MEDIA), reader: Reader::default() }
    }

    pub fn is_stream(&self) -> bool {
        matches!(self, RtpTransport::Tcp { .. })
    }

    /// Sends a packet of real bytes `head` and `filler` more. On a stream that is full it waits in line.
    pub fn send(&mut self, io: &mut dyn Io, kind: Kind, head: &[u8], filler: u32) {
        match self {
            RtpTransport::Udp => {
                let channel = if kind == Kind::Rtp { MEDIA } else { CONTROL };
                io.send(channel, Chunk::with_filler(head, filler));
            }
            RtpTransport::Tcp { backlog, .. } => {
                let channel = if kind == Kind::Rtp { RTP } else { RTCP };
                backlog.push(interleave(channel, &Chunk::with_filler(head, filler)), io);
            }
        }
    }

    /// Returns whether the network has accepted everything sent.
    pub fn is_clear(&self) -> bool {
        match self {
            RtpTransport::Udp => true,
            RtpTransport::Tcp { backlog, .. } => backlog.is_open() && backlog.is_clear(),
        }
    }

    /// Reads the data of `input` and gives each packet to `packet`.
    pub fn handle(&mut self, input: Input<'_>, io: &mut dyn Io, mut packet: impl FnMut(Kind, &Chunk)) {
        match (&mut *self, input) {
            (RtpTransport::Udp, Input::Datagram { on: MEDIA, bytes: datagram, .. }) => {
                packet(Kind::Rtp, datagram)
            }
            (RtpTransport::Udp, Input::Datagram { on: CONTROL, bytes: datagram, .. }) => {
                packet(Kind::Rtcp, datagram)
            }
            (RtpTransport::Tcp { reader, .. }, Input::Readable(MEDIA)) => {
                while let Some(chunk) = io.read(MEDIA, usize::MAX) {
                    reader.push(chunk);
                    // Nothing but frames is on it; a stream that is not framed as it should be ends the reading.
                    for item in reader.by_ref() {
                        match item {
                            Ok(RtspItem::Interleaved { channel: RTP, packet: p }) => packet(Kind::Rtp, &p),
                            Ok(RtspItem::Interleaved { channel: RTCP, packet: p }) => packet(Kind::Rtcp, &p),
                            _ => {}
                        }
                    }
                }
            }
            (RtpTransport::Tcp { backlog, .. }, Input::Opened(MEDIA)) => {
                backlog.open();
                backlog.flush(io);
            }
            (RtpTransport::Tcp { backlog, .. }, Input::Writable(MEDIA)) => backlog.flush(io),
            (RtpTransport::Tcp { backlog, .. }, Input::Closed(MEDIA, _)) => backlog.forget(),
            _ => {}
        }
    }

    /// Ends the stream at once, with its unsent data.
    pub fn abort(&mut self, io: &mut dyn Io) {
        if let RtpTransport::Tcp { backlog, .. } = self {
            backlog.abort(io);
        }
    }

    /// Ends the stream after its sent data; nothing waits in line any more.
    pub fn close(&mut self, io: &mut dyn Io) {
        if let RtpTransport::Tcp { backlog, .. } = self {
            backlog.close(io);
        }
    }
}
