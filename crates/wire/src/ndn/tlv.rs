//! Elements: a type, a length and a value (NDN Packet Format Specification version 0.3, "Type-Length-Value (TLV)
//! Encoding").
//!
//! Nothing here recurses: the callers fix the depth to which elements are read, and opaque content is not
//! opened.

use streamgauge_base::Chunk;

use super::fault::{Fault, Problem};
use super::types::MOST_PACKET_BYTES;

/// Writes a TLV-VAR-NUMBER in its shortest form, as the specification demands.
pub fn put_number(to: &mut Vec<u8>, number: u64) {
    match number {
        0..=252 => to.push(number as u8),
        253..=0xffff => {
            to.push(253);
            to.extend((number as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            to.push(254);
            to.extend((number as u32).to_be_bytes());
        }
        _ => {
            to.push(255);
            to.extend(number.to_be_bytes());
        }
    }
}

/// Returns the bytes of a TLV-VAR-NUMBER.
pub const fn number_bytes(number: u64) -> usize {
    match number {
        0..=252 => 1,
        253..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    }
}

/// Returns the bytes of an element with a value of `value` bytes.
pub const fn element_bytes(kind: u32, value: usize) -> usize {
    number_bytes(kind as u64) + number_bytes(value as u64) + value
}

/// Writes an element's type and length.
pub fn put_header(to: &mut Vec<u8>, kind: u32, value: usize) {
    put_number(to, u64::from(kind));
    put_number(to, value as u64);
}

/// Writes an element.
pub fn put_element(to: &mut Vec<u8>, kind: u32, value: &[u8]) {
    put_header(to, kind, value.len());
    to.extend(value);
}

/// Returns the bytes of a NonNegativeInteger: 1, 2, 4 or 8.
pub const fn integer_bytes(integer: u64) -> usize {
    match integer {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

/// Writes an element with a NonNegativeInteger.
pub fn put_integer(to: &mut Vec<u8>, kind: u32, integer: u64) {
    let bytes = integer_bytes(integer);
    put_header(to, kind, bytes);
    to.extend(&integer.to_be_bytes()[8 - bytes..]);
}

/// Returns the NonNegativeInteger that a value is, in 1, 2, 4 or 8 bytes; more of them than it takes are no
/// error.
pub fn integer(value: &[u8]) -> Option<u64> {
    matches!(value.len(), 1 | 2 | 4 | 8)
        .then(|| value.iter().fold(0, |integer, &byte| integer << 8 | u64::from(byte)))
}

/// Returns whether a type has to be understood ("Considerations for Evolvability of TLV-Based Encoding");
/// others are skipped.
pub const fn is_critical(kind: u32) -> bool {
    kind <= 31 || kind & 1 == 1
}

/// An element that was read. Its value may lie in filler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Element {
    /// TLV-TYPE.
    pub kind: u32,
    /// Where its type begins.
    pub start: usize,
    /// Where its value begins.
    pub from: usize,
    /// Where its value ends.
    pub to: usize,
}

impl Element {
    /// Returns the problem of a value of another length than it may have.
    pub fn length_fault(&self) -> Problem {
        Fault::Length { element: self.kind, bytes: (self.to - self.from) as u64 }.at(self.from)
    }
}

/// Reads elements, one after the other, of some real bytes and a counted filler behind them.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    real: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Elements<'a> {
    /// Returns the elements of a chunk.
    pub fn of(chunk: &'a Chunk) -> Self {
        Elements { real: chunk.head(), at: 0, end: chunk.len() }
    }

    /// Returns the elements of these bytes.
    pub fn of_bytes(bytes: &'a [u8]) -> Self {
        Elements { real: bytes, at: 0, end: bytes.len() }
    }

    /// Returns the elements in the value of one.
    pub fn within(&self, element: &Element) -> Self {
        Elements { real: self.real, at: element.from, end: element.to }
    }

    /// Returns where the next begins.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns where the last ends.
    pub fn end(&self) -> usize {
        self.end
    }

    /// Returns whether there is no more.
    pub fn is_empty(&self) -> bool {
        self.at == self.end
    }

    /// Returns the real bytes from `from` to `to`.
    pub fn bytes(&self, from: usize, to: usize) -> Result<&'a [u8], Problem> {
        self.real.get(from..to).ok_or(Fault::Filler.at(self.real.len()))
    }

    /// Returns the bytes of an element's value.
    pub fn value(&self, element: &Element) -> Result<&'a [u8], Problem> {
        self.bytes(element.from, element.to)
    }

    /// Returns the bytes of an element's value, which must be `N` long.
    pub fn array<const N: usize>(&self, element: &Element) -> Result<[u8; N], Problem> {
        if element.to - element.from != N {
            return Err(element.length_fault());
        }
        <[u8; N]>::try_from(self.value(element)?).map_err(|_| element.length_fault())
    }

    /// Returns the NonNegativeInteger that is an element's value.
    pub fn integer(&self, element: &Element) -> Result<u64, Problem> {
        if !matches!(element.to - element.from, 1 | 2 | 4 | 8) {
            return Err(element.length_fault());
        }
        integer(self.value(element)?).ok_or(element.length_fault())
    }

    fn number(&mut self) -> Result<u64, Problem> {
        let start = self.at;
        let take = |at: usize, bytes: usize| {
            let missing = (at + bytes).saturating_sub(self.end);
            if missing > 0 {
                return Err(Fault::Truncated { missing: missing as u64 }.at(start));
            }
            self.bytes(at, at + bytes)
        };
        let (number, bytes) = match take(start, 1)?[0] {
            first @ ..=252 => (u64::from(first), 1),
            first => {
                let more = 2 << (first - 253);
                let number =
                    take(start + 1, more)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
                (number, 1 + more)
            }
        };
        if bytes != number_bytes(number) {
            return Err(Fault::NotShortest.at(start));
        }
        self.at = start + bytes;
        Ok(number)
    }

    /// Returns the next element; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Element>, Problem> {
        if self.is_empty() {
            return Ok(None);
        }
        let start = self.at;
        let kind = self.number()?;
        let kind = u32::try_from(kind).ok().filter(|&kind| kind > 0).ok_or(Fault::TypeRange.at(start))?;
        let length_at = self.at;
        let length = self.number()?;
        let left = (self.end - self.at) as u64;
        if length > left {
            return Err(Fault::Truncated { missing: length - left }.at(length_at));
        }
        let from = self.at;
        self.at = from + length as usize;
        Ok(Some(Element { kind, start, from, to: self.at }))
    }

    /// Returns the next element, if it is of this type.
    pub fn next_if(&mut self, kind: u32) -> Result<Option<Element>, Problem> {
        let before = self.at;
        match self.next()? {
            Some(element) if element.kind == kind => Ok(Some(element)),
            _ => {
                self.at = before;
                Ok(None)
            }
        }
    }

    /// Returns the next element of this type, which has to be here.
    pub fn expect(&mut self, kind: u32) -> Result<Element, Problem> {
        let at = self.at;
        self.next_if(kind)?.ok_or(Fault::Missing { expected: kind }.at(at))
    }

    /// Returns the next of the elements that come in the order of `kinds`, with its place there; `from` is
    /// the place of the first that may come. An unknown, repeated or misplaced element is an error if its
    /// type is critical, else skipped.
    pub fn next_of(&mut self, kinds: &[u32], from: usize) -> Result<Option<(usize, Element)>, Problem> {
        while let Some(element) = self.next()? {
            match kinds.iter().skip(from).position(|&kind| kind == element.kind) {
                Some(place) => return Ok(Some((from + place, element))),
                None if is_critical(element.kind) => {
                    return Err(Fault::Critical(element.kind).at(element.start));
                }
                None => {}
            }
        }
        Ok(None)
    }
}

/// Returns the elements of the one packet of this type that a chunk is, no longer than packets may be.
pub fn packet(chunk: &Chunk, kind: u32) -> Result<Elements<'_>, Problem> {
    if chunk.len() > MOST_PACKET_BYTES {
        return Err(Fault::TooLong { bytes: chunk.len() as u64, limit: MOST_PACKET_BYTES as u64 }.at(0));
    }
    let mut elements = Elements::of(chunk);
    let whole = elements.expect(kind)?;
    if !elements.is_empty() {
        return Err(Fault::Trailing((elements.end() - elements.at()) as u64).at(elements.at()));
    }
    Ok(elements.within(&whole))
}
