//! The fields of a packet.

use super::SequenceNumber;
use super::fault::{Fault, Problem};
use crate::body::Body;

/// Reads fields one after the other.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    rest: Body<'a>,
    /// Bytes of the datagram before it.
    at: usize,
}

impl<'a> Fields<'a> {
    pub fn of(rest: Body<'a>) -> Self {
        Fields { rest, at: 0 }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns how many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Returns the remaining bytes, filler included.
    pub fn rest(&mut self) -> Body<'a> {
        self.at += self.rest.len();
        std::mem::take(&mut self.rest)
    }

    /// Returns the next bytes, which have to be real.
    pub fn bytes(&mut self, bytes: usize) -> Result<&'a [u8], Problem> {
        if let Some(missing) = bytes.checked_sub(self.rest.len()).filter(|missing| *missing > 0) {
            return Err(Fault::Truncated { missing: missing as u64 }.at(self.at));
        }
        let (part, rest) = self.rest.split_at(bytes);
        if part.filler_bytes() > 0 {
            return Err(Fault::Filler.at(self.at));
        }
        (self.rest, self.at) = (rest, self.at + bytes);
        Ok(part.head())
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], Problem> {
        self.bytes(BYTES).map(|bytes| *bytes.first_chunk().expect("so many were asked for"))
    }

    pub fn u16(&mut self) -> Result<u16, Problem> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Problem> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn sequence(&mut self) -> Result<SequenceNumber, Problem> {
        let at = self.at;
        SequenceNumber::new(self.u32()?).ok_or(Fault::Sequence.at(at))
    }

    pub fn address(&mut self) -> Result<[u8; 16], Problem> {
        self.array()
    }
}
