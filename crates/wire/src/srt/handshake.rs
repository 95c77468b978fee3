//! Handshakes and their extensions (section 3.2.1).

use super::control::put;
use super::fault::{Fault, Problem};
use super::fields::Fields;
use super::sequence::SequenceNumber;
use crate::body::Written;

/// The extension field of a listener's answer to an induction (section 4.3.1.1).
pub const MAGIC: u16 = 0x4a17;

/// Flags of the extension message (section 3.2.1.1.1).
pub mod flags {
    /// The sender stamps packets for delivery by time.
    pub const TSBPD_SENDER: u32 = 1;
    /// The receiver delivers by time.
    pub const TSBPD_RECEIVER: u32 = 2;
    /// The field of keys in a data packet has a meaning. Always set.
    pub const CRYPT: u32 = 4;
    /// Packets that are too late are dropped.
    pub const TOO_LATE_DROP: u32 = 8;
    /// Loss reports are repeated.
    pub const PERIODIC_NAK: u32 = 0x10;
    /// The flag of repeated packets has a meaning. Always set.
    pub const RETRANSMIT_FLAG: u32 = 0x20;
    /// Bytes in place of messages: the mode of files.
    pub const STREAM: u32 = 0x40;
    /// Filters of packets, such as error correction, may be agreed on.
    pub const PACKET_FILTER: u32 = 0x80;
}

/// Bits of a conclusion's extension field (section 3.2.1).
pub mod extension_fields {
    /// A handshake extension message follows.
    pub const HS: u16 = 1;
    /// Key material follows.
    pub const KM: u16 = 2;
    /// A stream's name or another configuration follows.
    pub const CONFIG: u16 = 4;
}

/// The step of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandshakeKind {
    /// The first of a caller, and its answer.
    Induction,
    /// The first of a rendezvous.
    WaveAHand,
    /// The second of a caller, and its answer.
    Conclusion,
    /// The last of a rendezvous.
    Agreement,
    /// The end of a handshake.
    Done,
    /// A refusal, by the codes of section 4.3; or a number without a meaning.
    Rejection(u32),
}

impl HandshakeKind {
    const NAMED: [(u32, HandshakeKind); 5] = [
        (0, HandshakeKind::WaveAHand),
        (1, HandshakeKind::Induction),
        (0xffff_ffff, HandshakeKind::Conclusion),
        (0xffff_fffe, HandshakeKind::Agreement),
        (0xffff_fffd, HandshakeKind::Done),
    ];

    fn read(number: u32) -> Self {
        let named = Self::NAMED.iter().find(|(code, _)| *code == number);
        named.map_or(HandshakeKind::Rejection(number), |(_, kind)| *kind)
    }

    fn get(self) -> u32 {
        match self {
            HandshakeKind::Rejection(code) => code,
            kind => Self::NAMED.iter().find(|(_, named)| *named == kind).map_or(0, |(code, _)| *code),
        }
    }
}

/// The content of a handshake extension message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Latencies {
    /// The version of the sender's library: major * 0x10000 + minor * 0x100 + patch.
    pub version: u32,
    /// See [`flags`].
    pub flags: u32,
    /// The delay of received packets, in milliseconds.
    pub receiver_ms: u16,
    /// The least delay that it asks of its peer for sent packets, in milliseconds.
    pub sender_ms: u16,
}

/// An extension of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extension<'a> {
    /// A caller's handshake extension message.
    Request(Latencies),
    /// A listener's.
    Response(Latencies),
    /// Another, not read: its type and its contents, in whole words of four bytes.
    Other {
        /// Its type: 3 and 4 are key material, 5 a stream's name, 6 a congestion control, 7 a filter, 8 a group.
        kind: u16,
        /// Its bytes.
        contents: &'a [u8],
    },
}

/// Types of the two extension messages.
const REQUEST: u16 = 1;
const RESPONSE: u16 = 2;
/// Bytes of an extension message's contents.
const MESSAGE_BYTES: usize = 12;

impl<'a> Extension<'a> {
    fn read(fields: &mut Fields<'a>) -> Result<Self, Problem> {
        let kind = fields.u16()?;
        let words = fields.u16()?;
        let length = usize::from(words) * 4;
        if !matches!(kind, REQUEST | RESPONSE) || length != MESSAGE_BYTES {
            return Ok(Extension::Other { kind, contents: fields.bytes(length)? });
        }
        let latencies = Latencies {
            version: fields.u32()?,
            flags: fields.u32()?,
            receiver_ms: fields.u16()?,
            sender_ms: fields.u16()?,
        };
        Ok(if kind == REQUEST { Extension::Request(latencies) } else { Extension::Response(latencies) })
    }

    fn write(&self, out: &mut Written) {
        let (kind, latencies) = match self {
            Extension::Request(latencies) => (REQUEST, latencies),
            Extension::Response(latencies) => (RESPONSE, latencies),
            Extension::Other { kind, contents } => {
                let words = contents.len().div_ceil(4);
                out.put(&kind.to_be_bytes());
                out.put(&u16::try_from(words).expect("an extension is below 256 kB").to_be_bytes());
                out.put(contents);
                return out.put(&[0; 3][..words * 4 - contents.len()]);
            }
        };
        out.put(&kind.to_be_bytes());
        out.put(&((MESSAGE_BYTES / 4) as u16).to_be_bytes());
        put(out, latencies.version);
        put(out, latencies.flags);
        out.put(&latencies.receiver_ms.to_be_bytes());
        out.put(&latencies.sender_ms.to_be_bytes());
    }
}

/// The content of a handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Handshake<'a> {
    /// 5; of a caller's induction 4.
    pub version: u32,
    /// Cipher and key size, 0 for none.
    pub encryption: u16,
    /// 2 of a caller's induction, [`MAGIC`] of its answer, [`extension_fields`] of a conclusion.
    pub extension: u16,
    /// The number of the first data packet.
    pub initial: SequenceNumber,
    /// The largest IP packet.
    pub mtu: u32,
    /// Packets that may be in flight.
    pub flow_window: u32,
    /// Its step.
    pub kind: HandshakeKind,
    /// The sender's socket.
    pub socket: u32,
    /// The listener's cookie.
    pub cookie: u32,
    /// The address of its sender, or zeros.
    pub address: [u8; 16],
    /// Its extensions, in order.
    pub extensions: Vec<Extension<'a>>,
}

impl<'a> Handshake<'a> {
    /// Returns the extension message, a request or a response.
    pub fn latencies(&self) -> Option<Latencies> {
        self.extensions.iter().find_map(|extension| match extension {
            Extension::Request(latencies) | Extension::Response(latencies) => Some(*latencies),
            Extension::Other { .. } => None,
        })
    }

    /// Returns the contents of the first extension of that type, of those that are not read.
    pub fn other(&self, wanted: u16) -> Option<&'a [u8]> {
        self.extensions.iter().find_map(|extension| match extension {
            Extension::Other { kind, contents } if *kind == wanted => Some(*contents),
            _ => None,
        })
    }

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Self, Problem> {
        let mut handshake = Handshake {
            version: fields.u32()?,
            encryption: fields.u16()?,
            extension: fields.u16()?,
            initial: fields.sequence()?,
            mtu: fields.u32()?,
            flow_window: fields.u32()?,
            kind: HandshakeKind::read(fields.u32()?),
            socket: fields.u32()?,
            cookie: fields.u32()?,
            address: fields.address()?,
            extensions: Vec::new(),
        };
        while fields.left() >= 4 {
            handshake.extensions.push(Extension::read(fields)?);
        }
        match fields.left() {
            0 => Ok(handshake),
            left => Err(Fault::Tail(left as u64).at(fields.at())),
        }
    }

    pub(super) fn write(&self, out: &mut Written) {
        put(out, self.version);
        out.put(&self.encryption.to_be_bytes());
        out.put(&self.extension.to_be_bytes());
        for field in
            [self.initial.get(), self.mtu, self.flow_window, self.kind.get(), self.socket, self.cookie]
        {
            put(out, field);
        }
        out.put(&self.address);
        self.extensions.iter().for_each(|extension| extension.write(out));
    }
}
