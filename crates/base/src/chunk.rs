//! Application bytes: real bytes followed by a counted filler.

/// Some real bytes and then `filler` bytes that are never read. Bulk data and media payloads are all filler, so they
/// cost no memory; protocol headers are real.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Chunk {
    head: Box<[u8]>,
    filler: u32,
}

impl Chunk {
    /// Makes a chunk of `bytes` filler bytes.
    #[inline]
    pub fn filler(bytes: u32) -> Self {
        Chunk { head: Box::default(), filler: bytes }
    }
    /// Makes a chunk of real bytes only.
    pub fn bytes(head: impl Into<Box<[u8]>>) -> Self {
        Chunk { head: head.into(), filler: 0 }
    }
    /// Makes a chunk of real bytes, then `filler` filler bytes.
    pub fn with_filler(head: impl Into<Box<[u8]>>, filler: u32) -> Self {
        Chunk { head: head.into(), filler }
    }
    /// Returns the length in bytes, filler included.
    #[inline]
    pub fn len(&self) -> usize {
        self.head.len() + self.filler as usize
    }
    /// Returns whether there is nothing in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the real bytes at its start.
    #[inline]
    pub fn head(&self) -> &[u8] {
        &self.head
    }
    /// Returns a copy of the bytes from `from` to `to`, with the filler among them.
    pub fn part(&self, from: usize, to: usize) -> Chunk {
        let real = self.head.len();
        let filler = to.saturating_sub(from.max(real));
        let head = &self.head[from.min(real)..to.min(real).max(from.min(real))];
        Chunk::with_filler(head, u32::try_from(filler).unwrap_or(u32::MAX))
    }
    /// Cuts after `at` bytes: `self` keeps the first part, the rest is returned. `at` past the end cuts nothing.
    pub fn split_off(&mut self, at: usize) -> Chunk {
        if at >= self.head.len() {
            let rest = self.filler - (at - self.head.len()).min(self.filler as usize) as u32;
            self.filler -= rest;
            return Chunk::filler(rest);
        }
        let tail = Chunk::with_filler(&self.head[at..], self.filler);
        *self = Chunk::bytes(&self.head[..at]);
        tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitting_keeps_every_byte() {
        for at in 0..12 {
            let mut first = Chunk::with_filler(*b"head", 6);
            let rest = first.split_off(at);
            assert_eq!(first.len(), at.min(10));
            assert_eq!(first.len() + rest.len(), 10);
            assert_eq!([first.head(), rest.head()].concat(), b"head");
            let whole = Chunk::with_filler(*b"head", 6);
            assert_eq!((whole.part(0, at.min(10)), whole.part(at.min(10), 10)), (first, rest));
        }
    }
}
