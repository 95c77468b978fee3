//! Written data that is not yet acknowledged, bounded, so that a writer feels back-pressure: by a number of bytes, or
//! as Linux bounds it where no program has set its send buffer (`tcp_sendmsg_locked` in net/ipv4/tcp.c,
//! `tcp_sndbuf_expand`, `tcp_should_expand_sndbuf` and `tcp_new_space` in tcp_input.c, `sk_stream_write_space` in
//! net/core/stream.c).
//!
//! Linux counts memory, in blocks: data written while a block waits to be sent is added to it, as long as there is room
//! in it, and only a new block asks for memory. The buffer grows to a few congestion windows whenever the sender has
//! less to send than the window admits.

use streamgauge_base::Chunk;

use super::byte_queue::ByteQueue;
use super::config::Config;

/// Memory that a block, or a part sent from one, uses beside its bytes: a head of 1,024 B and `struct sk_buff`.
pub const OVERHEAD: u64 = 1_280;
/// Linux's estimate for a segment beside its payload, rounded up to a power of two, and for its `struct sk_buff`.
const HEADERS: u64 = 256 + 320;
const STRUCTURE: u64 = 256;
/// Segments for which the first buffer is made, and the most memory (`tcp_wmem`).
const FIRST_SEGMENTS: u64 = 10;
const MOST_MEMORY: u64 = 4 << 20;
/// Most bytes of a block: `gso_max_size` less the headers (`sk_setup_caps`).
const MOST_BLOCK: u64 = 65_536 - 256 - 1;

/// Returns the bytes of a block: as many full segments as fit into half of the peer's largest window, or into a
/// super-segment.
pub fn block_bytes(mss: u64, max_window: u64) -> u64 {
    ((max_window / 2).min(MOST_BLOCK) / mss).max(1) * mss
}

/// Returns whether a third of the limit is free: a waiting writer is woken then, as in Linux, not for every segment.
pub fn is_a_third_free(taken: u64, limit: u64) -> bool {
    taken < limit && taken / 2 <= limit - taken
}

/// The memory that Linux allows a send buffer that no program has set.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    mss: u64,
    /// How many times the congestion window.
    windows: u64,
    bytes: u64,
}

impl Allowance {
    /// Makes the allowance of a new connection.
    pub fn new(config: &Config) -> Self {
        let windows = config.congestion.buffered_windows();
        let mut first = Allowance { mss: u64::from(config.mss), windows, bytes: 0 };
        first.grow(FIRST_SEGMENTS);
        first
    }
    /// Returns the bytes of memory.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Grows for a congestion window of `segments`.
    pub fn grow(&mut self, segments: u64) {
        let each = (self.mss + HEADERS).next_power_of_two() + STRUCTURE;
        let wanted = self.windows * segments.max(FIRST_SEGMENTS) * each;
        self.bytes = self.bytes.max(wanted.min(MOST_MEMORY));
    }
}

/// The sender's state that its buffer needs. Bytes, but `outstanding`.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The next byte to be sent.
    pub next: u64,
    /// Segments sent and not acknowledged.
    pub outstanding: u64,
    /// The peer's largest window.
    pub max_window: u64,
    /// Bytes in flight, and the congestion window.
    pub pipe: u64,
    pub window: u64,
}

#[derive(Clone, Debug)]
enum Limit {
    /// Bytes.
    Set(u64),
    Tuned {
        allowance: Allowance,
        /// Start of the last block.
        block: u64,
    },
}

/// The send buffer of one connection.
#[derive(Clone, Debug)]
pub struct SendBuffer {
    queue: ByteQueue,
    limit: Limit,
    /// Whether a write was cut short, so the writer waits for room.
    starved: bool,
}

impl SendBuffer {
    /// Makes an empty buffer with its first byte at `start`.
    pub fn new(start: u64, config: &Config) -> Self {
        let limit = match config.send_buffer {
            Some(bytes) => Limit::Set(bytes),
            None => Limit::Tuned { allowance: Allowance::new(config), block: start },
        };
        SendBuffer { queue: ByteQueue::new(start), limit, starved: false }
    }
    /// Returns one past the last byte written.
    #[inline]
    pub fn end(&self) -> u64 {
        self.queue.end()
    }

    /// Returns how many bytes of `offered` a write would accept, and where the last block would begin.
    fn takes(&self, offered: u64, view: View) -> (u64, u64) {
        let (allowance, mut block) = match &self.limit {
            Limit::Set(limit) => return (limit.saturating_sub(self.queue.len()).min(offered), 0),
            Limit::Tuned { allowance, block } => (allowance, *block),
        };
        let full = block_bytes(allowance.mss, view.max_window);
        let mut end = self.queue.end();
        let mut memory = self.memory(full, view);
        let offered = end + offered;
        while end < offered {
            let mut last = end.saturating_sub(block.max(view.next));
            if last == 0 || last >= full {
                if memory >= allowance.bytes() {
                    break;
                }
                (block, last) = (end, 0);
                memory += OVERHEAD;
            }
            let filled = offered.min(end + full - last);
            memory += filled - end;
            end = filled;
        }
        (end - self.queue.end(), block)
    }

    /// Returns the memory in use, with blocks of `full` bytes.
    fn memory(&self, full: u64, view: View) -> u64 {
        let waiting = self.queue.end().saturating_sub(view.next).div_ceil(full);
        self.queue.len() + OVERHEAD * (view.outstanding + waiting)
    }

    /// Returns the bytes that a write would accept now.
    pub fn room(&self, view: View) -> u64 {
        self.takes(u64::from(u32::MAX), view).0
    }

    /// Accepts as much as fits and returns that amount.
    pub fn write(&mut self, mut chunk: Chunk, view: View) -> usize {
        let offered = chunk.len();
        let (taken, last_block) = self.takes(offered as u64, view);
        if let Limit::Tuned { block, .. } = &mut self.limit {
            *block = last_block;
        }
        if taken < offered as u64 {
            self.starved = true;
            drop(chunk.split_off(taken as usize));
        }
        self.queue.push(chunk);
        taken as usize
    }
    /// Frees memory, as nothing is left.
    pub fn rest(&mut self) {
        self.queue.rest();
    }
    /// Returns the payload of a segment.
    pub fn slice(&self, seq: u64, len: u32) -> Chunk {
        self.queue.slice(seq, len)
    }
    /// Drops the acknowledged data.
    pub fn release(&mut self, seq: u64) {
        self.queue.release(seq.min(self.queue.end()));
    }

    /// Returns, after an acknowledgement, whether a starved writer should now be woken.
    pub fn wakes(&mut self, view: View) -> bool {
        if !self.starved {
            return false;
        }
        let unsent = self.queue.end().saturating_sub(view.next);
        if let Limit::Tuned { allowance, .. } = &mut self.limit
            && view.pipe + unsent < view.window
        {
            allowance.grow(view.window / allowance.mss);
        }
        self.starved = !match &self.limit {
            Limit::Set(limit) => is_a_third_free(self.queue.len(), *limit),
            Limit::Tuned { allowance, .. } => {
                let memory = self.memory(block_bytes(allowance.mss, view.max_window), view);
                is_a_third_free(memory, allowance.bytes())
            }
        };
        !self.starved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1448;

    fn buffer(send_buffer: Option<u64>) -> SendBuffer {
        SendBuffer::new(1, &Config { send_buffer, ..Config::default() })
    }

    /// Makes the view of a sender that has sent up to `next`, with a window of ten segments.
    fn view(una: u64, next: u64) -> View {
        let outstanding = (next - una).div_ceil(MSS);
        View { next, outstanding, max_window: 65_536, pipe: outstanding * MSS, window: 10 * MSS }
    }

    #[test]
    fn takes_no_more_than_its_limit_and_wakes_once_at_a_third_free() {
        let mut buffer = buffer(Some(3000));
        let release = |buffer: &mut SendBuffer, seq| {
            buffer.release(seq);
            buffer.wakes(view(seq, seq))
        };
        assert_eq!(buffer.write(Chunk::filler(2500), view(1, 1)), 2500);
        assert!(!release(&mut buffer, 501), "nobody was turned away");
        assert_eq!(buffer.write(Chunk::with_filler([1; 999], 400), view(501, 501)), 1000);
        assert_eq!((buffer.room(view(501, 501)), buffer.end()), (0, 3501));
        assert!(!release(&mut buffer, 1500));
        assert!(release(&mut buffer, 1501));
        assert!(!release(&mut buffer, 1502));
    }

    #[test]
    fn a_new_block_asks_for_memory_and_the_one_begun_does_not() {
        // 46,080 B of memory; blocks of 22 segments.
        let full = block_bytes(MSS, 65_536);
        assert_eq!(full, 31_856);
        let mut buffer = buffer(None);
        assert_eq!(buffer.room(view(1, 1)), 2 * full, "two blocks begin below 46,080 B");
        // Each write leaves at once, with a block of its own.
        let (mut next, mut writes) = (1, 0);
        while buffer.write(Chunk::filler(654), View { outstanding: writes, ..view(1, next) }) == 654 {
            (next, writes) = (next + 654, writes + 1);
        }
        assert_eq!(writes, 46_080_u64.div_ceil(654 + OVERHEAD));
        // The window admits more than there is, and the buffer grows with the window; not while more waits.
        let idle = |window| View { outstanding: 8, pipe: 8 * MSS, window, ..view(1, next) };
        buffer.release(next - 8 * 654);
        assert!(buffer.wakes(idle(40 * MSS)));
        assert_eq!(buffer.room(idle(40 * MSS)), 6 * full, "four windows' memory");
        buffer.write(Chunk::filler(1 << 20), idle(40 * MSS));
        assert!(!buffer.wakes(idle(100 * MSS)) && buffer.wakes(idle(400 * MSS)));
    }
}
