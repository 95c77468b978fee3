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
    pub fn of(rest: Body<'a>, at: usize) -> Self {
        Fields { rest, at }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the remaining bytes.
    pub fn rest(&mut self) -> Body<'a> {
        self.at += self.rest.len();
        std::mem::take(&mut self.rest)
    }

    /// Returns the next bytes as fields of their own.
    pub fn part(&mut self, bytes: usize) -> Result<Fields<'a>, Problem> {
        if let Some(missing) = bytes.checked_sub(self.rest.len()).filter(|missing| *missing > 0) {
            return Err(Fault::Truncated { missing: missing as u64 }.at(self.at));
        }
        let (part, rest) = self.rest.split_at(bytes);
        let fields = Fields::of(part, self.at);
        (self.rest, self.at) = (rest, self.at + bytes);
        Ok(fields)
    }

    /// Returns the next bytes, which have to be real.
    pub fn bytes(&mut self, bytes: usize) -> Result<&'a [u8], Problem> {
        let at = self.at;
        let part = self.part(bytes)?.rest;
        if part.filler_bytes() > 0 { Err(Fault::Filler.at(at)) } else { Ok(part.head()) }
    }

    /// Returns the remaining bytes, which must be real.
    pub fn real_rest(&mut self) -> Result<&'a [u8], Problem> {
        self.bytes(self.rest.len())
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], Problem> {
        self.bytes(BYTES).map(|bytes| *bytes.first_chunk().expect("so many were asked for"))
    }

    pub fn u8(&mut self) -> Result<u8, Problem> {
        self.array().map(u8::from_be_bytes)
    }

    pub fn u16(&mut self) -> Result<u16, Problem> {
        self.array().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Problem> {
        self.array().map(u32::from_be_bytes)
    }

    pub fn sequence(&mut self) -> Result<SequenceNumber, Problem> {
        let at = self.at;
        let number = self.u16()?;
        SequenceNumber::new(number).ok_or_else(|| Fault::Sequence(number).at(at))
    }

    /// Returns the rest of a packet that began at `start` and has its length here, where `is_present`;
    /// without a length, it is everything.
    pub fn of_length(&mut self, start: usize, is_present: bool) -> Result<Fields<'a>, Problem> {
        if !is_present {
            return self.part(self.rest.len());
        }
        let at = self.at;
        let length = self.u16()?;
        match usize::from(length).checked_sub(self.at - start) {
            Some(left) => self.part(left),
            None => Err(Fault::Length(length).at(at)),
        }
    }
}
