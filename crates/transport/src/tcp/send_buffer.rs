//! What was written and is not yet acknowledged, bounded, so that a writer feels back-pressure.

use streamgauge_base::Chunk;

use super::byte_queue::ByteQueue;

/// The send buffer of one connection.
#[derive(Clone, Debug)]
pub struct SendBuffer {
    queue: ByteQueue,
    limit: u64,
    /// A write was cut short, so the writer wants to hear of room.
    starved: bool,
}

impl SendBuffer {
    /// Empty, with its first byte at `start`, for at most `limit` bytes.
    pub fn new(start: u64, limit: u64) -> Self {
        SendBuffer { queue: ByteQueue::new(start), limit, starved: false }
    }
    /// One past the last byte written.
    #[inline]
    pub fn end(&self) -> u64 {
        self.queue.end()
    }
    /// Bytes that a write would take now.
    #[inline]
    pub fn room(&self) -> u64 {
        self.limit.saturating_sub(self.queue.len())
    }
    /// Takes what fits and says how much that was.
    pub fn write(&mut self, mut chunk: Chunk) -> usize {
        let offered = chunk.len();
        let taken = self.room().min(offered as u64) as usize;
        if taken < offered {
            self.starved = true;
            drop(chunk.split_off(taken));
        }
        self.queue.push(chunk);
        taken
    }
    /// Nothing is left: gives back memory.
    pub fn rest(&mut self) {
        self.queue.rest();
    }
    /// The payload of a segment.
    pub fn slice(&self, seq: u64, len: u32) -> Chunk {
        self.queue.slice(seq, len)
    }
    /// Forgets what is acknowledged; true if a starved writer should now be told. As Linux does, that is once
    /// a third of the buffer is free, lest a writer wake for every segment.
    pub fn release(&mut self, seq: u64) -> bool {
        self.queue.release(seq.min(self.queue.end()));
        let wake = self.starved && self.room() >= self.queue.len() / 2;
        self.starved &= !wake;
        wake
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_no_more_than_its_limit_and_wakes_once_at_a_third_free() {
        let mut buffer = SendBuffer::new(1, 3000);
        assert_eq!(buffer.write(Chunk::filler(2500)), 2500);
        assert!(!buffer.release(501), "nobody was turned away");
        assert_eq!(buffer.write(Chunk::with_filler([1; 999], 400)), 1000);
        assert_eq!((buffer.room(), buffer.end()), (0, 3501));
        assert!(!buffer.release(1500));
        assert!(buffer.release(1501));
        assert!(!buffer.release(1502));
    }
}
