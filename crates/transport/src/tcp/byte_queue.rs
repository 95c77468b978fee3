//! A stretch of a byte stream, addressed by sequence number. Filler costs nothing, however long it is.

use std::collections::VecDeque;

use streamgauge_base::Chunk;

#[derive(Clone, Debug)]
struct Piece {
    start: u64,
    /// Its head is at `start`; every byte from there to the next piece is filler, regardless of the chunk's own length.
    data: Chunk,
}

/// Contiguous bytes `start..end`.
#[derive(Clone, Debug)]
pub struct ByteQueue {
    /// Those that begin with real bytes; before the first there is filler.
    pieces: VecDeque<Piece>,
    start: u64,
    end: u64,
}

impl ByteQueue {
    /// Makes an empty queue at sequence number `start`.
    pub fn new(start: u64) -> Self {
        ByteQueue { pieces: VecDeque::new(), start, end: start }
    }
    /// Returns the first byte held.
    #[inline]
    pub fn start(&self) -> u64 {
        self.start
    }
    /// Returns one past the last byte held.
    #[inline]
    pub fn end(&self) -> u64 {
        self.end
    }
    /// Returns the bytes held.
    #[inline]
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Appends.
    pub fn push(&mut self, chunk: Chunk) {
        if chunk.is_empty() {
            return;
        }
        let start = self.end;
        self.end += chunk.len() as u64;
        if !chunk.head().is_empty() {
            self.pieces.push_back(Piece { start, data: chunk });
        }
    }

    /// Frees memory, as nothing is held.
    pub fn rest(&mut self) {
        debug_assert!(self.len() == 0);
        self.pieces = VecDeque::new();
    }

    /// Forgets everything before `seq`.
    pub fn release(&mut self, seq: u64) {
        debug_assert!(self.start <= seq && seq <= self.end);
        self.start = seq;
        while !self.pieces.is_empty() && self.end_of(0) <= seq {
            self.pieces.pop_front();
        }
    }

    /// Returns one past the last byte of the piece at `index`.
    fn end_of(&self, index: usize) -> u64 {
        self.pieces.get(index + 1).map_or(self.end, |next| next.start)
    }

    /// Returns a copy of `seq..seq + len`, which must be held. Allocates only where there are real bytes; filler before
    /// a real byte becomes zeros.
    #[inline]
    pub fn slice(&self, seq: u64, len: u32) -> Chunk {
        // Bulk data is nothing else; not worth a call.
        if self.pieces.is_empty() { Chunk::filler(len) } else { self.assemble(seq, len) }
    }

    fn assemble(&self, seq: u64, len: u32) -> Chunk {
        let end = seq + u64::from(len);
        debug_assert!(self.start <= seq && end <= self.end);
        // The last that does not begin behind `seq`.
        let first = self.pieces.partition_point(|piece| piece.start <= seq).saturating_sub(1);
        let heads = self.pieces.range(first..).take_while(|piece| piece.start < end).filter_map(|piece| {
            let head = piece.data.head();
            let from = seq.saturating_sub(piece.start).min(head.len() as u64) as usize;
            let to = (end - piece.start).min(head.len() as u64) as usize;
            (from < to).then(|| ((piece.start + from as u64 - seq) as usize, &head[from..to]))
        });
        let Some((at, last)) = heads.clone().last() else {
            return Chunk::filler(len);
        };
        let mut bytes = Vec::with_capacity(at + last.len());
        for (at, head) in heads {
            bytes.resize(at, 0);
            bytes.extend_from_slice(head);
        }
        let filler = len - bytes.len() as u32;
        Chunk::with_filler(bytes, filler)
    }

    /// Removes up to `max` bytes from the front, never past the end of the data that one `push` of real bytes began.
    pub fn take(&mut self, max: usize) -> Option<Chunk> {
        let end = match self.pieces.front() {
            Some(piece) if piece.start <= self.start => self.end_of(0),
            Some(piece) => piece.start,
            None => self.end,
        };
        let len = (end - self.start).min(max as u64).min(u64::from(u32::MAX));
        if len == 0 {
            return None;
        }
        let whole = self.start + len == end;
        let chunk = match self.pieces.front_mut() {
            Some(piece) if whole && self.start == piece.start && piece.data.len() as u64 == len => {
                std::mem::take(&mut piece.data)
            }
            _ => self.slice(self.start, len as u32),
        };
        self.release(self.start + len);
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filler_merges_and_slices_without_bytes() {
        let mut queue = ByteQueue::new(100);
        for _ in 0..1000 {
            queue.push(Chunk::filler(1448));
        }
        assert_eq!((queue.pieces.len(), queue.len()), (0, 1_448_000));
        assert_eq!(queue.slice(5000, 1448), Chunk::filler(1448));
        queue.release(100 + 1_448_000);
        assert_eq!((queue.pieces.len(), queue.len()), (0, 0));
    }

    #[test]
    fn real_bytes_come_out_where_they_went_in_however_it_is_cut() {
        let mut expected = Vec::new();
        let mut queue = ByteQueue::new(7);
        for i in 1..=9u8 {
            queue.push(Chunk::with_filler([i, i, i], 4));
            queue.push(Chunk::filler(2));
            expected.extend_from_slice(&[i, i, i, 0, 0, 0, 0, 0, 0]);
        }
        for from in 0..expected.len() {
            for len in 0..=expected.len() - from {
                let chunk = queue.slice(7 + from as u64, len as u32);
                assert_eq!(chunk.len(), len);
                let mut flat = chunk.head().to_vec();
                flat.resize(len, 0);
                assert_eq!(flat, expected[from..from + len]);
            }
        }
        for max in 1..12 {
            let (mut copy, mut flat) = (queue.clone(), Vec::new());
            while let Some(chunk) = copy.take(max) {
                assert!(chunk.len() <= max);
                let end = flat.len() + chunk.len();
                flat.extend_from_slice(chunk.head());
                flat.resize(end, 0);
            }
            assert_eq!(flat, expected);
        }
    }
}
