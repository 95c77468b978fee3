//! A connection's bytes that have come and were not yet looked at.

use std::collections::VecDeque;

use streamgauge_base::Chunk;

/// Pieces in order, taken from the front.
#[derive(Clone, Debug, Default)]
pub struct Incoming {
    waiting: VecDeque<Chunk>,
    /// Bytes taken of the first that waits.
    taken: usize,
}

/// Some bytes of one sort.
pub enum Run<'a> {
    Real(&'a [u8]),
    Filler(usize),
}

impl Incoming {
    /// Adds received data.
    pub fn push(&mut self, chunk: Chunk) {
        if !chunk.is_empty() {
            self.waiting.push_back(chunk);
        }
    }

    /// Forgets all of it.
    pub fn clear(&mut self) {
        *self = Incoming::default();
    }

    fn drop_spent(&mut self) -> Option<()> {
        while self.waiting.front()?.len() == self.taken {
            self.waiting.pop_front();
            self.taken = 0;
        }
        Some(())
    }

    /// Returns the next bytes, at most `most`.
    pub fn run(&mut self, most: usize) -> Option<Run<'_>> {
        self.drop_spent()?;
        let (front, at) = (self.waiting.front()?, self.taken);
        let run = match front.head().get(at..).filter(|rest| !rest.is_empty()) {
            Some(rest) => Run::Real(&rest[..rest.len().min(most)]),
            None => Run::Filler((front.len() - at).min(most)),
        };
        self.taken += match run {
            Run::Real(bytes) => bytes.len(),
            Run::Filler(bytes) => bytes,
        };
        Some(run)
    }

    /// Returns the next byte; filler reads as zeros.
    pub fn byte(&mut self) -> Option<u8> {
        self.run(1).map(|run| match run {
            Run::Real(bytes) => bytes[0],
            Run::Filler(_) => 0,
        })
    }

    /// Returns the next bytes as received, at most `most`: filler stays filler.
    pub fn chunk(&mut self, most: u64) -> Option<Chunk> {
        self.drop_spent()?;
        let mut front = self.waiting.pop_front()?;
        if self.taken > 0 {
            front = front.split_off(std::mem::take(&mut self.taken));
        }
        let rest = front.split_off(usize::try_from(most).unwrap_or(usize::MAX));
        if !rest.is_empty() {
            self.waiting.push_front(rest);
        }
        Some(front)
    }
}

/// A packet as far as it has come. Filler stays filler as far as nothing real is behind it.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    real: Vec<u8>,
    filler: usize,
}

impl Gathered {
    pub fn len(&self) -> usize {
        self.real.len() + self.filler
    }

    /// Takes at most this many bytes; nothing if none have arrived.
    pub fn take(&mut self, incoming: &mut Incoming, most: usize) -> Option<()> {
        match incoming.run(most)? {
            Run::Real(bytes) => {
                self.real.resize(self.real.len() + std::mem::take(&mut self.filler), 0);
                self.real.extend_from_slice(bytes);
            }
            Run::Filler(bytes) => self.filler += bytes,
        }
        Some(())
    }

    /// Returns its first bytes, if this many have arrived; filler reads as zeros.
    pub fn first<const BYTES: usize>(&self) -> Option<[u8; BYTES]> {
        let real = &self.real[..self.real.len().min(BYTES)];
        let mut first = [0; BYTES];
        first[..real.len()].copy_from_slice(real);
        (self.len() >= BYTES).then_some(first)
    }

    /// Returns all received data and leaves none.
    pub fn chunk(&mut self) -> Chunk {
        let Gathered { real, filler } = std::mem::take(self);
        Chunk::with_filler(real, filler as u32)
    }
}
