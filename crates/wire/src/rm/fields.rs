//! Big-endian fields of a chunk, one after another.

use super::fault::{ChunkName, Fault, Problem};

/// The rest of a chunk.
pub struct Fields<'a> {
    chunk: ChunkName,
    /// Where `rest` begins in the file.
    at: usize,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Returns the fields in `rest`, which begins at byte `at` of the file.
    pub fn of(chunk: ChunkName, at: usize, rest: &'a [u8]) -> Self {
        Fields { chunk, at, rest }
    }

    /// Returns the next `count` bytes.
    pub fn bytes(&mut self, field: &'static str, count: usize) -> Result<&'a [u8], Problem> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            let missing = (count - self.rest.len()) as u64;
            return Err(Fault::Field { chunk: self.chunk, field, missing }.at(self.at));
        };
        self.at += count;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Problem> {
        self.bytes(field, N).map(|bytes| bytes.try_into().expect("as many as were asked for"))
    }

    /// Returns a number of 8 bits.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, Problem> {
        self.array(field).map(u8::from_be_bytes)
    }

    /// Returns a number of 16 bits.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, Problem> {
        self.array(field).map(u16::from_be_bytes)
    }

    /// Returns a number of 32 bits.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, Problem> {
        self.array(field).map(u32::from_be_bytes)
    }

    /// Returns `count` bytes as text, a character each (ISO 8859-1): files do not declare their encoding.
    pub fn text(&mut self, field: &'static str, count: usize) -> Result<String, Problem> {
        Ok(self.bytes(field, count)?.iter().copied().map(char::from).collect())
    }
}
