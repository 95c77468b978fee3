//! Messages and packets of media out of a connection's bytes, however they are cut.

use std::collections::VecDeque;

use streamgauge_base::Chunk;

use super::data::{DATA_HEADER_BYTES, size_of};
use super::fault::{Fault, Problem};
use super::message::{Message, SESSION, TCP_HEADER_BYTES, messages_of, parse};
use crate::incoming::{Incoming, Run};

/// Bytes that the messages of a packet may have: ten times what players and servers send.
pub const MOST_MESSAGE_BYTES: usize = 16 << 10;

/// Bytes by which both kinds of packets say how long they are.
const BEGINNING_BYTES: usize = 12;

/// What a connection carries.
#[derive(Clone, PartialEq, Debug)]
pub enum MmsItem {
    /// A message.
    Message(Message),
    /// A packet of media, for [`DataPacket::parse`](super::DataPacket::parse). Filler stays filler as far as nothing real is
    /// behind it.
    Data(Chunk),
}

/// Reads one direction of a connection. It is an iterator that may go on after `None`: push what arrives, then take
/// items until there is none. It keeps no more than one packet, and what was pushed and not yet taken. Filler in messages and
/// headers reads as zeros.
///
/// What begins here is a packet of messages if it has the session's number where these have it, and else media ([MS-MMSP]
/// section 3.1.5.2): a packet of media that has those bytes there would be the first of a file, and of 45,067 B.
#[derive(Clone, Debug)]
pub struct Reader {
    takes_data: bool,
    incoming: Incoming,
    /// Of a packet: its real bytes, the filler behind them, and how many there are to be, if that is known.
    real: Vec<u8>,
    filler: usize,
    size: Option<usize>,
    is_data: bool,
    waiting: VecDeque<Message>,
    ended: bool,
}

impl Reader {
    /// Reads what a player says: messages alone.
    pub fn of_requests() -> Self {
        Reader {
            takes_data: false,
            incoming: Incoming::default(),
            real: Vec::new(),
            filler: 0,
            size: None,
            is_data: false,
            waiting: VecDeque::new(),
            ended: false,
        }
    }

    /// Reads what a server says, with media.
    pub fn of_responses() -> Self {
        Reader { takes_data: true, ..Reader::of_requests() }
    }

    /// Takes the connection's next bytes.
    pub fn push(&mut self, chunk: Chunk) {
        if !self.ended {
            self.incoming.push(chunk);
        }
    }

    /// The reader is between packets, as far as it has been read: the connection may end here.
    pub fn is_between_packets(&self) -> bool {
        self.have() == 0 && self.waiting.is_empty()
    }

    fn have(&self) -> usize {
        self.real.len() + self.filler
    }

    /// Takes at most so many bytes of what came.
    fn take(&mut self, most: usize) -> Option<()> {
        match self.incoming.run(most)? {
            Run::Real(bytes) => {
                self.real.resize(self.real.len() + std::mem::take(&mut self.filler), 0);
                self.real.extend_from_slice(bytes);
            }
            Run::Filler(bytes) => self.filler += bytes,
        }
        Some(())
    }

    /// How long the packet is that begins with these bytes, and whether it is media; `None` until they say.
    fn size_of(&self, bytes: &[u8]) -> Result<Option<(usize, bool)>, Problem> {
        let Some(header) = bytes.first_chunk::<DATA_HEADER_BYTES>() else { return Ok(None) };
        if header[4..] != SESSION.to_le_bytes() {
            let size = size_of(header);
            return match self.takes_data {
                false => Err(Fault::NotMms.at(0)),
                true if size < DATA_HEADER_BYTES => Err(Fault::Length(size as u32).at(6)),
                true => Ok(Some((size, true))),
            };
        }
        let Some(length) = bytes[DATA_HEADER_BYTES..].first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length);
        match messages_of(length) {
            None => Err(Fault::Length(length).at(DATA_HEADER_BYTES)),
            Some(bytes) if bytes > MOST_MESSAGE_BYTES => Err(Fault::TooLong(length).at(DATA_HEADER_BYTES)),
            Some(bytes) => Ok(Some((TCP_HEADER_BYTES + bytes, false))),
        }
    }

    /// The next whole packet; nothing until more is pushed.
    fn packet(&mut self) -> Option<Result<Chunk, Problem>> {
        while self.size.is_none_or(|size| self.have() < size) {
            match self.size {
                Some(size) => self.take(size - self.have())?,
                None => {
                    // Media may have no more than its header.
                    let wanted =
                        if self.have() < DATA_HEADER_BYTES { DATA_HEADER_BYTES } else { BEGINNING_BYTES };
                    self.take(wanted - self.have())?;
                    let mut beginning = self.real.clone();
                    beginning.resize(self.have(), 0);
                    match self.size_of(&beginning) {
                        Ok(Some((size, is_data))) => (self.size, self.is_data) = (Some(size), is_data),
                        Ok(None) => {}
                        Err(problem) => return Some(Err(problem)),
                    }
                }
            }
        }
        self.size = None;
        let filler = std::mem::take(&mut self.filler) as u32;
        Some(Ok(Chunk::with_filler(std::mem::take(&mut self.real), filler)))
    }

    fn fail(&mut self, problem: Problem) -> Problem {
        let takes_data = self.takes_data;
        *self = Reader { takes_data, ended: true, ..Reader::of_requests() };
        problem
    }
}

impl Iterator for Reader {
    type Item = Result<MmsItem, Problem>;

    /// The next item; `None` until more is pushed, and for ever after a problem.
    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            if let Some(message) = self.waiting.pop_front() {
                return Some(Ok(MmsItem::Message(message)));
            }
            let packet = match self.packet()? {
                Ok(packet) if self.is_data => return Some(Ok(MmsItem::Data(packet))),
                Ok(packet) => packet,
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
