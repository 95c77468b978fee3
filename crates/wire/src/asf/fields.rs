//! Little-endian fields of an object, one after another.

use super::fault::{Fault, Problem};
use super::guid::Guid;

/// The rest of an object.
pub struct Fields<'a> {
    object: Guid,
    /// Where `rest` begins in the file.
    at: usize,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    /// Returns the fields in `rest`, which begins at byte `at` of the file.
    pub fn of(object: Guid, at: usize, rest: &'a [u8]) -> Self {
        Fields { object, at, rest }
    }

    /// Returns where the next field begins in the file.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the remaining bytes.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the next `count` bytes.
    pub fn bytes(&mut self, field: &'static str, count: usize) -> Result<&'a [u8], Problem> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            let missing = (count - self.rest.len()) as u64;
            return Err(Fault::Field { object: self.object, field, missing }.at(self.at));
        };
        self.at += count;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Problem> {
        self.bytes(field, N).map(|bytes| bytes.try_into().expect("as many as were asked for"))
    }

    /// Returns a number of 16 bits.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, Problem> {
        self.array(field).map(u16::from_le_bytes)
    }

    /// Returns a number of 32 bits.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, Problem> {
        self.array(field).map(u32::from_le_bytes)
    }

    /// Returns a number of 64 bits.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, Problem> {
        self.array(field).map(u64::from_le_bytes)
    }

    /// Returns the name of a kind.
    pub fn guid(&mut self, field: &'static str) -> Result<Guid, Problem> {
        self.array(field).map(Guid)
    }

    /// Returns a stream's number in the lowest 7 bits of 16, and the others.
    pub fn stream(&mut self) -> Result<(u8, u16), Problem> {
        let at = self.at;
        let flags = self.u16("stream number")?;
        match (flags & 0x7f) as u8 {
            0 => Err(Fault::StreamNumber(0).at(at)),
            number => Ok((number, flags & !0x7f)),
        }
    }
}

/// An object of a file or within another, before its content is parsed.
pub struct RawObject<'a> {
    /// Its kind.
    pub id: Guid,
    /// Where it begins in the file.
    pub at: usize,
    /// Behind its header, as far as there is some.
    pub content: &'a [u8],
    /// Its declared length.
    pub bytes: u64,
}

/// Bytes of an object's header: its name and its length.
pub const OBJECT_HEADER_BYTES: usize = 24;

impl<'a> RawObject<'a> {
    /// Returns the object that `rest` begins with, which is at byte `at` of the file. Its content may end
    /// with `rest`, before the object does.
    pub fn read(rest: &'a [u8], at: usize) -> Result<Self, Problem> {
        let Some((header, content)) = rest.split_at_checked(OBJECT_HEADER_BYTES) else {
            let missing = (OBJECT_HEADER_BYTES - rest.len()) as u64;
            return Err(Fault::Truncated { what: "an object's header", missing }.at(at));
        };
        let mut fields = Fields::of(Guid::default(), at, header);
        let (id, bytes) = (fields.guid("name")?, fields.u64("length")?);
        let length = usize::try_from(bytes).unwrap_or(usize::MAX).saturating_sub(OBJECT_HEADER_BYTES);
        Ok(RawObject { id, at, content: &content[..content.len().min(length)], bytes })
    }

    /// Returns itself, if all of it is there.
    pub fn whole(self) -> Result<Self, Problem> {
        let found = (OBJECT_HEADER_BYTES + self.content.len()) as u64;
        if self.bytes < OBJECT_HEADER_BYTES as u64 {
            return Err(Fault::ObjectLength { object: self.id, bytes: self.bytes }.at(self.at));
        }
        if found < self.bytes {
            return Err(Fault::Truncated { what: "an object", missing: self.bytes - found }.at(self.at));
        }
        Ok(self)
    }

    /// Returns a reader of its content.
    pub fn fields(&self) -> Fields<'a> {
        Fields::of(self.id, self.at + OBJECT_HEADER_BYTES, self.content)
    }
}
