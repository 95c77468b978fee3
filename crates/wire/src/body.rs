//! Bytes of a packet that another owner keeps, and bytes as they are written: real ones with filler behind
//! them.

use streamgauge_base::Chunk;

/// Bytes that another owner keeps, and filler behind them, as a [`Chunk`] has them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Body<'a> {
    head: &'a [u8],
    filler: u32,
}

impl<'a> Body<'a> {
    /// Returns `bytes` filler bytes.
    pub fn filler(bytes: u32) -> Self {
        Body { head: &[], filler: bytes }
    }

    /// Returns the real bytes at its start.
    pub fn head(&self) -> &'a [u8] {
        self.head
    }

    /// Returns the filler bytes behind them.
    pub fn filler_bytes(&self) -> u32 {
        self.filler
    }

    /// Returns the length in bytes, filler included.
    pub fn len(&self) -> usize {
        self.head.len() + self.filler as usize
    }

    /// Returns true if there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a copy of its own.
    pub fn to_chunk(&self) -> Chunk {
        Chunk::with_filler(self.head, self.filler)
    }

    /// Splits off its first `at` bytes, which it must have, and returns them and the rest.
    pub(crate) fn split_at(self, at: usize) -> (Self, Self) {
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

/// Bytes of packets as they are written.
#[derive(Debug, Default)]
pub(crate) struct Written {
    head: Vec<u8>,
    filler: u32,
}

impl Written {
    /// Returns a body with room for this many real bytes.
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

    /// Returns room for a length; see [`set_length`](Self::set_length).
    pub fn put_length(&mut self) -> usize {
        self.put(&[0; 2]);
        self.head.len() - 2
    }

    /// Writes at `place`, which is real, the length of the part that began at `start`. Panics above 65535 B.
    pub fn set_length(&mut self, place: usize, start: usize) {
        let length = u16::try_from(self.len() - start).expect("packets are below 64 kB");
        self.head[place..place + 2].copy_from_slice(&length.to_be_bytes());
    }

    pub fn into_chunk(self) -> Chunk {
        Chunk::with_filler(self.head, self.filler)
    }
}
