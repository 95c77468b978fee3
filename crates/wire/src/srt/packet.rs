//! The packet of a datagram.

use streamgauge_base::Chunk;

use super::HEADER_BYTES;
use super::control::{self, AckReport, DropRequest, LossRange, put};
use super::fault::Problem;
use super::fields::Fields;
use super::handshake::Handshake;
use super::sequence::SequenceNumber;
use crate::body::{Body, Written};

/// The place of a packet in its message (section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Position {
    /// Neither first nor last.
    Middle,
    /// The last.
    Last,
    /// The first.
    First,
    /// The only one.
    #[default]
    Only,
}

impl Position {
    const ALL: [Position; 4] = [Position::Middle, Position::Last, Position::First, Position::Only];
}

/// A data packet (section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Data<'a> {
    /// Its number.
    pub sequence: SequenceNumber,
    /// Its place in its message.
    pub position: Position,
    /// Messages are to be delivered in order.
    pub in_order: bool,
    /// The key that it is encrypted with: 0 for none, 1 the even one, 2 the odd one.
    pub key: u8,
    /// It was sent before.
    pub is_retransmitted: bool,
    /// The number of its message, 26 bits.
    pub message: u32,
    /// The message.
    pub payload: Body<'a>,
}

impl<'a> Data<'a> {
    fn read(first: u32, second: u32, fields: &mut Fields<'a>) -> Self {
        Data {
            sequence: SequenceNumber::of(first.into()),
            position: Position::ALL[(second >> 30) as usize],
            in_order: second >> 29 & 1 == 1,
            key: (second >> 27 & 3) as u8,
            is_retransmitted: second >> 26 & 1 == 1,
            message: second & ((1 << 26) - 1),
            payload: fields.rest(),
        }
    }

    fn second_word(&self) -> u32 {
        (self.position as u32) << 30
            | u32::from(self.in_order) << 29
            | u32::from(self.key & 3) << 27
            | u32::from(self.is_retransmitted) << 26
            | self.message & ((1 << 26) - 1)
    }
}

/// The content of a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PacketContent<'a> {
    /// Media.
    Data(Data<'a>),
    /// Connection set-up.
    Handshake(Handshake<'a>),
    /// The connection is kept.
    KeepAlive,
    /// Received packets. Full ones have a number above 0, which is to be acknowledged in turn.
    Ack {
        /// The acknowledgement's own number.
        number: u32,
        /// Its content.
        ack: AckReport,
    },
    /// Lost packets.
    Nak(Vec<LossRange>),
    /// Reserved.
    CongestionWarning,
    /// The connection ends.
    Shutdown,
    /// An acknowledgement has arrived.
    AckAck {
        /// Its number.
        number: u32,
    },
    /// Packets that will not come again.
    DropRequest(DropRequest),
    /// A failure of the receiver of a file.
    PeerError {
        /// 4000 is that of a file system.
        code: u32,
    },
    /// A control packet of another type, not read.
    Other {
        /// Its type, 15 bits.
        control_type: u16,
        /// Its subtype.
        subtype: u16,
        /// Its type-specific information.
        information: u32,
        /// The bytes behind its header.
        body: Body<'a>,
    },
}

/// One packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// Microseconds since the connection began: of sending, or of data's origin.
    pub timestamp_us: u32,
    /// The receiver's socket, 0 for a request for a connection.
    pub socket: u32,
    /// The rest.
    pub content: PacketContent<'a>,
}

/// Types of control packets (section 3.2).
const HANDSHAKE: u16 = 0;
const KEEP_ALIVE: u16 = 1;
const ACK: u16 = 2;
const NAK: u16 = 3;
const CONGESTION_WARNING: u16 = 4;
const SHUTDOWN: u16 = 5;
const ACK_ACK: u16 = 6;
const DROP_REQUEST: u16 = 7;
const PEER_ERROR: u16 = 8;

/// Set in the first word of control packets.
const IS_CONTROL: u32 = 1 << 31;

impl<'a> Packet<'a> {
    /// Returns the packet of a datagram. Bytes behind packets that need none are left out, as libsrt has some there.
    pub fn parse(datagram: impl Into<Body<'a>>) -> Result<Self, Problem> {
        let mut fields = Fields::of(datagram.into());
        let (first, second) = (fields.u32()?, fields.u32()?);
        let (timestamp_us, socket) = (fields.u32()?, fields.u32()?);
        let content = if first & IS_CONTROL == 0 {
            PacketContent::Data(Data::read(first, second, &mut fields))
        } else {
            control((first >> 16 & 0x7fff) as u16, first as u16, second, &mut fields)?
        };
        Ok(Packet { timestamp_us, socket, content })
    }

    /// Returns the datagram.
    pub fn write(&self) -> Chunk {
        let room = if let PacketContent::Data(data) = &self.content { data.payload.head().len() } else { 64 };
        let mut out = Written::with_capacity(HEADER_BYTES + room);
        let (first, second) = match &self.content {
            PacketContent::Data(data) => (data.sequence.get(), data.second_word()),
            PacketContent::Other { control_type, subtype, information, .. } => {
                (control_word(*control_type) | u32::from(*subtype), *information)
            }
            PacketContent::Handshake(_) => (control_word(HANDSHAKE), 0),
            PacketContent::KeepAlive => (control_word(KEEP_ALIVE), 0),
            PacketContent::Ack { number, .. } => (control_word(ACK), *number),
            PacketContent::Nak(_) => (control_word(NAK), 0),
            PacketContent::CongestionWarning => (control_word(CONGESTION_WARNING), 0),
            PacketContent::Shutdown => (control_word(SHUTDOWN), 0),
            PacketContent::AckAck { number } => (control_word(ACK_ACK), *number),
            PacketContent::DropRequest(request) => (control_word(DROP_REQUEST), request.message),
            PacketContent::PeerError { code } => (control_word(PEER_ERROR), *code),
        };
        [first, second, self.timestamp_us, self.socket].into_iter().for_each(|word| put(&mut out, word));
        match &self.content {
            PacketContent::Data(data) => out.put_body(data.payload),
            PacketContent::Handshake(handshake) => handshake.write(&mut out),
            PacketContent::Ack { ack, .. } => ack.write(&mut out),
            PacketContent::Nak(losses) => control::write_losses(losses, &mut out),
            PacketContent::DropRequest(DropRequest { packets, .. }) => {
                put(&mut out, packets.first.get());
                put(&mut out, packets.last.get());
            }
            PacketContent::Other { body, .. } => out.put_body(*body),
            // libsrt sends a word of zeros where a control packet has no content, and reads either.
            PacketContent::KeepAlive
            | PacketContent::CongestionWarning
            | PacketContent::Shutdown
            | PacketContent::AckAck { .. }
            | PacketContent::PeerError { .. } => put(&mut out, 0),
        }
        out.into_chunk()
    }
}

fn control_word(control_type: u16) -> u32 {
    IS_CONTROL | u32::from(control_type & 0x7fff) << 16
}

fn control<'a>(
    control_type: u16,
    subtype: u16,
    information: u32,
    fields: &mut Fields<'a>,
) -> Result<PacketContent<'a>, Problem> {
    Ok(match control_type {
        HANDSHAKE => PacketContent::Handshake(Handshake::read(fields)?),
        KEEP_ALIVE => PacketContent::KeepAlive,
        ACK => PacketContent::Ack { number: information, ack: AckReport::read(fields)? },
        NAK => PacketContent::Nak(control::read_losses(fields)?),
        CONGESTION_WARNING => PacketContent::CongestionWarning,
        SHUTDOWN => PacketContent::Shutdown,
        ACK_ACK => PacketContent::AckAck { number: information },
        DROP_REQUEST => {
            let (first, last) = (fields.sequence()?, fields.sequence()?);
            PacketContent::DropRequest(DropRequest {
                message: information,
                packets: LossRange { first, last },
            })
        }
        PEER_ERROR => PacketContent::PeerError { code: information },
        _ => PacketContent::Other { control_type, subtype, information, body: fields.rest() },
    })
}
