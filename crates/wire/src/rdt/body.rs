//! Bytes of a packet, and the fields in them.

use streamgauge_base::Chunk;

use super::SequenceNumber;
use super::fault::{Fault, Problem};

/// Bytes that somebody else keeps, and filler behind them, as a [`Chunk`] has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Body<'a> {
    head: &'a [u8],
    filler: u32,
}

impl<'a> Body<'a> {
    /// `bytes` filler bytes.
    pub fn filler(bytes: u32) -> Self {
        Body { head: &[], filler: bytes }
    }

    /// The real bytes at its start.
    pub fn head(&self) -> &'a [u8] {
        self.head
    }

    /// Filler bytes behind them.
    pub fn filler_bytes(&self) -> u32 {
        self.filler
    }

    /// Length in bytes, filler included.
    pub fn len(&self) -> usize {
        self.head.len() + self.filler as usize
    }

    /// True if there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of its own.
    pub fn to_chunk(&self) -> Chunk {
        Chunk::with_filler(self.head, self.filler)
    }

    /// Its first `at` bytes, of which it has that many, and the rest.
    fn split_at(self, at: usize) -> (Self, Self) {
        let real = at.min(self.head.len());
        let (head, tail) = self.head.split_at(real);
        let filler = ((at - real) as u32).min(self.filler);
        (Body { head, filler }, Body { head: tail, filler: self.filler - filler })
    }
}

impl<'a> From<&'a [u8]> for Body<'a> {
    fn from(head: &'a [u8]) -> Self {
        Body { head, filler: 0 }
    }
}

impl<'a> From<&'a Chunk> for Body<'a> {
    fn from(chunk: &'a Chunk) -> Self {
        Body { head: chunk.head(), filler: (chunk.len() - chunk.head().len()) as u32 }
    }
}

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

    /// Everything that is left.
    pub fn rest(&mut self) -> Body<'a> {
        self.at += self.rest.len();
        std::mem::take(&mut self.rest)
    }

    /// The next bytes as fields of their own.
    pub fn part(&mut self, bytes: usize) -> Result<Fields<'a>, Problem> {
        if let Some(missing) = bytes.checked_sub(self.rest.len()).filter(|missing| *missing > 0) {
            return Err(Fault::Truncated { missing: missing as u64 }.at(self.at));
        }
        let (part, rest) = self.rest.split_at(bytes);
        let fields = Fields::of(part, self.at);
        (self.rest, self.at) = (rest, self.at + bytes);
        Ok(fields)
    }

    /// The next bytes, which have to be real.
    pub fn bytes(&mut self, bytes: usize) -> Result<&'a [u8], Problem> {
        let at = self.at;
        let part = self.part(bytes)?.rest;
        if part.filler > 0 { Err(Fault::Filler.at(at)) } else { Ok(part.head) }
    }

    /// What is left, which has to be real.
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

    /// The rest of a packet that began at `start` and says here, where `is_present`, how long it is; if it does not say,
    /// it is everything.
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

/// Bytes of packets as they are written.
#[derive(Debug, Default)]
pub(super) struct Written {
    head: Vec<u8>,
    filler: u32,
}

impl Written {
    /// With room for so many real bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Written { head: Vec::with_capacity(bytes), filler: 0 }
    }

    pub fn len(&self) -> usize {
        self.head.len() + self.filler as usize
    }

    /// Filler before real bytes is written as zeros.
    pub fn put(&mut self, bytes: &[u8]) {
        if self.filler > 0 && !bytes.is_empty() {
            self.head.resize(self.len(), 0);
            self.filler = 0;
        }
        self.head.extend_from_slice(bytes);
    }

    pub fn put_body(&mut self, body: Body<'_>) {
        self.put(body.head);
        self.filler += body.filler;
    }

    /// Room for a length; see [`set_length`](Self::set_length).
    pub fn put_length(&mut self) -> usize {
        self.put(&[0; 2]);
        self.head.len() - 2
    }

    /// At `place`, which is real: the length of what began at `start`. Panics above 65535 B.
    pub fn set_length(&mut self, place: usize, start: usize) {
        let length = u16::try_from(self.len() - start).expect("packets are below 64 kB");
        self.head[place..place + 2].copy_from_slice(&length.to_be_bytes());
    }

    pub fn into_chunk(self) -> Chunk {
        Chunk::with_filler(self.head, self.filler)
    }
}
