//! A program's written data as Linux 6.1 keeps it: in blocks, some with a push, and bounded by the send buffer's
//! memory. (`tcp_sendmsg_locked`, `tcp_push`, `forced_push` and `tcp_xmit_size_goal` in net/ipv4/tcp.c, `tso_fragment`
//! in tcp_output.c, `tcp_check_space` and `tcp_shift_skb_data` in tcp_input.c, `sk_stream_write_space` in
//! net/core/stream.c.)
//!
//! A block is as many full segments as fit into half of the peer's largest window, or into a super-segment. The program
//! writes until memory runs out, and continues once a third of it is free. If the sender has by then sent from the last
//! block, its rest is filled up to the size of a block, so that block boundaries move. The last data that the program
//! wrote pushes. A segment that pushes and arrives alone is acknowledged at once, so that this decides how
//! acknowledgements pair.

use std::collections::VecDeque;

use crate::tcp::config::Config;
use crate::tcp::send_buffer::{Allowance, OVERHEAD, block_bytes, is_a_third_free};
use crate::tcp::window_growth::is_asked;

/// Bytes that a program writes at a time (iperf3's).
const WRITE: u64 = 131_072;

/// The data that may leave after a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Push {
    /// As much as the windows allow.
    All,
    /// One super-segment: the block just filled is the next to be sent (`tcp_push_one`).
    One,
}

/// Why the program does not write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stopped {
    Writing,
    /// It has nothing to write.
    Done,
    /// The program stopped for want of memory.
    Full,
}

/// Memory that may be used.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// Bytes that the program asked for.
    Asked(u64),
    Tuned(Allowance),
}

impl Limit {
    fn bytes(self) -> u64 {
        match self {
            Limit::Asked(bytes) => bytes,
            Limit::Tuned(allowance) => allowance.bytes(),
        }
    }
    fn grow(&mut self, segments: u64) {
        if let Limit::Tuned(allowance) = self {
            allowance.grow(segments);
        }
    }
}

/// Sent together, or split and merged since: it ends before `end`.
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    sacked: bool,
}

/// To be sent.
#[derive(Clone, Copy, Debug)]
struct Block {
    end: u64,
    push: bool,
}

/// The sender's state that the queue needs. Bytes.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The program has written up to here in all.
    pub offered: u64,
    /// The next byte to be sent.
    pub next: u64,
    /// The peer's largest window.
    pub max_window: u64,
    /// Bytes in flight, and the congestion window.
    pub pipe: u64,
    pub window: u64,
}

/// The write queue of one sender. Sequence numbers are 64 bits wide.
#[derive(Clone, Debug)]
pub struct WriteQueue {
    mss: u64,
    start: u64,
    limit: Limit,
    /// Up to here is written, and something pushed.
    written: u64,
    pushed: u64,
    stopped: Stopped,
    /// Whether a write is in progress; it has added data.
    writing: bool,
    copied: bool,
    /// Whether a write began when it was last asked for.
    began: bool,
    /// Whether one super-segment may leave; it has left.
    one: bool,
    held: bool,
    /// Whether an acknowledgement has arrived since memory was checked.
    heard: bool,
    /// Whether the last one sent continues.
    open: bool,
    waiting: VecDeque<Block>,
    sent: VecDeque<Sent>,
    una: u64,
}

impl WriteQueue {
    /// Makes an empty queue with its first byte at `start`.
    pub fn new(start: u64, config: &Config) -> Self {
        let limit = match is_asked(config) {
            true => Limit::Asked(2 * config.receive_window),
            false => Limit::Tuned(Allowance::new(config)),
        };
        WriteQueue {
            mss: u64::from(config.mss),
            start,
            limit,
            written: start,
            pushed: start,
            stopped: Stopped::Done,
            writing: false,
            copied: false,
            began: false,
            one: false,
            held: false,
            heard: false,
            open: false,
            waiting: VecDeque::new(),
            sent: VecDeque::new(),
            una: start,
        }
    }

    /// Returns the end of the bytes that may be sent.
    #[inline]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns the bytes from `next` to the end of its block.
    #[inline]
    pub fn in_block(&self, next: u64) -> u64 {
        self.waiting.front().map_or(0, |block| block.end.saturating_sub(next))
    }

    /// Returns whether the block that is sent next may get more data.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.waiting.len() < 2
    }

    /// Returns whether only data that has already left was to leave.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Notes that new data up to `next` leaves; `ends`: a super-segment ends with it. True if it pushes.
    pub fn takes(&mut self, next: u64, ends: bool) -> bool {
        match self.sent.back_mut().filter(|_| self.open) {
            Some(sent) => sent.end = next,
            None => self.sent.push_back(Sent { end: next, sacked: false }),
        }
        self.open = !ends;
        self.held = ends && self.one;
        let push = self.waiting.front().is_some_and(|block| block.end <= next && block.push);
        if self.in_block(next) == 0 {
            self.waiting.pop_front();
        }
        push
    }

    /// Notes that the sender falls silent.
    pub fn rests(&mut self) {
        self.open = false;
    }

    /// Notes that a sent range leaves again, by itself.
    pub fn repeats(&mut self, from: u64, to: u64) {
        for edge in [from, to] {
            let at = self.sent.partition_point(|sent| sent.end <= edge);
            let left = if at == 0 { self.una } else { self.sent[at - 1].end };
            if edge > left && at < self.sent.len() {
                self.sent.insert(at, Sent { end: edge, ..self.sent[at] });
            }
        }
    }

    /// Notes that everything before `una` is acknowledged, and so are `blocks` beyond it.
    pub fn acknowledged(&mut self, una: u64, blocks: impl Iterator<Item = (u64, u64)>) {
        self.heard = true;
        self.una = self.una.max(una);
        while self.sent.front().is_some_and(|sent| sent.end <= self.una) {
            self.sent.pop_front();
        }
        for (left, right) in blocks {
            self.repeats(left.max(self.una), right);
            let mut from = self.una;
            for sent in &mut self.sent {
                sent.sacked |= left <= from && sent.end <= right;
                from = sent.end;
            }
            // Acknowledged data is merged with the data before it, if that is acknowledged too.
            let mut kept = VecDeque::with_capacity(self.sent.len());
            for sent in self.sent.drain(..) {
                match kept.back_mut() {
                    Some(Sent { end, sacked: true }) if sent.sacked => *end = sent.end,
                    _ => kept.push_back(sent),
                }
            }
            self.sent = kept;
        }
    }

    /// Lets the program write on, until something may leave. `None` if it does not, or nothing may.
    pub fn write_on(&mut self, view: View) -> Option<Push> {
        (self.one, self.held, self.began) = (false, false, false);
        if !self.resumes(view) {
            return None;
        }
        let half = view.max_window / 2;
        let block = block_bytes(self.mss, view.max_window);
        loop {
            if self.written >= view.offered {
                return self.stop(Stopped::Done);
            }
            self.began |= !std::mem::replace(&mut self.writing, true);
            let last = self.last_bytes(view.next);
            if last == 0 || last >= block {
                if self.memory() >= self.limit.bytes() {
                    return self.stop(Stopped::Full);
                }
                self.waiting.push_back(Block { end: self.written, push: false });
            }
            let had = if last >= block { 0 } else { last };
            let wanted = WRITE - (self.written - self.start) % WRITE;
            let taken = (block - had).min(wanted).min(view.offered - self.written);
            self.written += taken;
            let push = !std::mem::replace(&mut self.copied, true);
            if let Some(last) = self.waiting.back_mut() {
                last.end = self.written;
                last.push &= !push;
            }
            if taken == wanted {
                self.push();
                (self.writing, self.copied) = (false, false);
                return Some(Push::All);
            }
            if had + taken < block {
                continue;
            }
            if self.written > self.pushed + half {
                self.push();
                return Some(Push::All);
            }
            if self.waiting.len() == 1 {
                self.one = true;
                return Some(Push::One);
            }
        }
    }

    /// Returns whether the program began a write when it was last woken: then, and not while the write continues, Linux
    /// checks whether the program holds the sender back (`tcp_rate_check_app_limited`). iperf3's server does not wait
    /// in a write but for a socket that can be written to, so that each time it is woken it begins one.
    #[inline]
    pub fn began(&self) -> bool {
        self.began
    }

    /// Returns whether the program may write, or continue a write.
    fn resumes(&mut self, view: View) -> bool {
        let heard = std::mem::take(&mut self.heard);
        match self.stopped {
            Stopped::Writing => return true,
            Stopped::Done if view.offered <= self.written => return false,
            Stopped::Done => {}
            Stopped::Full => {
                if heard && view.pipe < view.window {
                    self.limit.grow(view.window / self.mss);
                }
                if !heard || !is_a_third_free(self.memory(), self.limit.bytes()) {
                    return false;
                }
            }
        }
        (self.stopped, self.copied) = (Stopped::Writing, false);
        true
    }

    /// Stops the program; its last data pushes.
    fn stop(&mut self, why: Stopped) -> Option<Push> {
        (self.stopped, self.writing) = (why, false);
        std::mem::take(&mut self.copied).then(|| {
            self.push();
            Push::All
        })
    }

    fn push(&mut self) {
        if let Some(last) = self.waiting.back_mut() {
            last.push = true;
        }
        self.pushed = self.written;
    }

    /// Returns the bytes of the last block that are still to be sent.
    fn last_bytes(&self, next: u64) -> u64 {
        let count = self.waiting.len();
        let from = if count < 2 { next } else { self.waiting[count - 2].end };
        self.waiting.back().map_or(0, |last| last.end - from)
    }

    /// Returns the memory in use.
    fn memory(&self) -> u64 {
        self.written.saturating_sub(self.una) + OVERHEAD * (self.waiting.len() + self.sent.len()) as u64
    }
}

#[cfg(test)]
#[path = "write_queue_tests.rs"]
mod tests;
