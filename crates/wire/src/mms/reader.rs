//! Messages and packets of media out of a connection's bytes, however they are cut.

use std::collections::VecDeque;

use streamgauge_base::Chunk;

use super::data::{DATA_HEADER_BYTES, size_of};
use super::fault::{Fault, Problem};
use super::message::{MmsMessage, SESSION, TCP_HEADER_BYTES, messages_of, parse};
use crate::incoming::{Gathered, Incoming};

/// Limit of the bytes of a packet's messages: ten times the size that players and servers send.
pub const MOST_MESSAGE_BYTES: usize = 16 << 10;

/// Bytes within which both kinds of packets have their length.
const BEGINNING_BYTES: usize = 12;

/// Items of a connection.
#[derive(Clone, PartialEq, Debug)]
pub enum MmsItem {
    /// A message.
    Message(MmsMessage),
    /// A packet of media, for [`DataPacket::parse`](super::DataPacket::parse). Filler stays filler as far as nothing real is
    /// behind it.
    Data(Chunk),
}

/// Reads one direction of a connection. It is an iterator that may continue after `None`: push arriving data,
/// then take items until there is none. It keeps at most one packet, and pushed data not yet taken. Filler in
/// messages and headers reads as zeros.
///
/// A packet is one of messages if it has the session's number in that place, and else media ([MS-MMSP]
/// section 3.1.5.2): a packet of media that has those bytes there would be the first of a file, and of 45,067
/// B.
#[derive(Clone, Debug)]
pub struct Reader {
    takes_data: bool,
    incoming: Incoming,
    /// A packet, and how many bytes it is to have and whether it is media, if that is known.
    gathered: Gathered,
    size: Option<(usize, bool)>,
    waiting: VecDeque<MmsMessage>,
    ended: bool,
}

impl Reader {
    /// Reads a player's side: messages alone.
    pub fn of_requests() -> Self {
        Reader {
            takes_data: false,
            incoming: Incoming::default(),
            gathered: Gathered::default(),
            size: None,
            waiting: VecDeque::new(),
            ended: false,
        }
    }

    /// Reads a server's side, with media.
    pub fn of_responses() -> Self {
        Reader { takes_data: true, ..Reader::of_requests() }
    }

    /// Takes the connection's next bytes.
    pub fn push(&mut self, chunk: Chunk) {
        if !self.ended {
            self.incoming.push(chunk);
        }
    }

    /// Returns whether the reader is between packets, as far as it has been read: the connection may end
    /// here.
    pub fn is_between_packets(&self) -> bool {
        self.gathered.len() == 0 && self.waiting.is_empty()
    }

    /// Returns the length of the packet that has begun, and whether it is media; `None` until its bytes
    /// reveal it.
    fn size_of(&self) -> Result<Option<(usize, bool)>, Problem> {
        let Some(header) = self.gathered.first::<DATA_HEADER_BYTES>() else { return Ok(None) };
        if header[4..] != SESSION.to_le_bytes() {
            let size = size_of(&header);
            return match self.takes_data {
                false => Err(Fault::NotMms.at(0)),
                true if size < DATA_HEADER_BYTES => Err(Fault::Length(size as u32).at(6)),
                true => Ok(Some((size, true))),
            };
        }
        let Some([.., a, b, c, d]) = self.gathered.first::<BEGINNING_BYTES>() else { return Ok(None) };
        let length = u32::from_le_bytes([a, b, c, d]);
        match messages_of(length) {
            None => Err(Fault::Length(length).at(DATA_HEADER_BYTES)),
            Some(bytes) if bytes > MOST_MESSAGE_BYTES => Err(Fault::TooLong(length).at(DATA_HEADER_BYTES)),
            Some(bytes) => Ok(Some((TCP_HEADER_BYTES + bytes, false))),
        }
    }

    /// Returns the next whole packet, and whether it is media; nothing until more is pushed.
    fn packet(&mut self) -> Option<Result<(Chunk, bool), Problem>> {
        loop {
            let have = self.gathered.len();
            let wanted = match self.size {
                Some((size, is_data)) if have == size => {
                    self.size = None;
                    return Some(Ok((self.gathered.chunk(), is_data)));
                }
                Some((size, _)) => size,
                // Media may have no more than its header.
                None if have < DATA_HEADER_BYTES => DATA_HEADER_BYTES,
                None => BEGINNING_BYTES,
            };
            self.gathered.take(&mut self.incoming, wanted - have)?;
            if self.size.is_none() {
                match self.size_of() {
                    Ok(size) => self.size = size,
                    Err(problem) => return Some(Err(problem)),
                }
            }
        }
    }

    fn fail(&mut self, problem: Problem) -> Problem {
        let takes_data = self.takes_data;
        *self = Reader { takes_data, ended: true, ..Reader::of_requests() };
        problem
    }
}

impl Iterator for Reader {
    type Item = Result<MmsItem, Problem>;

    /// Returns the next item; `None` until more is pushed, and for ever after a problem.
    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            if let Some(message) = self.waiting.pop_front() {
                return Some(Ok(MmsItem::Message(message)));
            }
            let packet = match self.packet()? {
                Ok((packet, true)) => return Some(Ok(MmsItem::Data(packet))),
                Ok((packet, false)) => packet,
                Err(problem) => return Some(Err(self.fail(problem))),
            };
            let mut bytes = packet.head().to_vec();
            bytes.resize(packet.len(), 0);
            match parse(&bytes) {
                Ok((_, messages)) => self.waiting.extend(messages),
                Err(problem) => return Some(Err(self.fail(problem))),
            }
        }
        None
    }
}
