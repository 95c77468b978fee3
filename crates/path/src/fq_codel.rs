//! FQ-CoDel: a CoDel queue a flow, served by deficit round robin, new flows first (RFC 8290).

use std::cmp::Reverse;
use std::collections::VecDeque;

use streamgauge_base::{Cause, Instant, QueueDepth, RandomStream};

use crate::codel::{Control, Law};
use crate::fifo::{Fifo, depth};
use crate::queue::{Queue, QueuedPacket, TransmitState};
use crate::spec::{FqCodelSpec, Limit};

/// Packets that may be given up at once for lack of room (RFC 8290 section 4.1).
const BATCH: u64 = 64;

/// Flow queues by the hash of addresses and ports.
#[derive(Clone, Debug)]
pub struct FqCodel {
    limit: Limit,
    quantum: i64,
    law: Law,
    /// Which flows share a queue differs from seed to seed.
    perturbation: u64,
    queues: Vec<FlowQueue>,
    /// Indices of queues that have just become active; served first.
    new: VecDeque<u32>,
    /// The other active queues, in turn.
    old: VecDeque<u32>,
    packets: u64,
    bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct FlowQueue {
    fifo: Fifo,
    control: Control,
    /// Bytes it may still send in this round.
    credits: i64,
    /// Whether it is in `new` or `old`.
    active: bool,
}

impl FqCodel {
    /// Makes the queues without packets; the hash is perturbed by a draw from `random`.
    pub fn new(spec: &FqCodelSpec, mut random: RandomStream) -> Self {
        let law =
            Law { target: spec.target, interval: spec.interval, ecn: spec.ecn, mtu: u64::from(spec.mtu) };
        FqCodel {
            limit: spec.limit,
            quantum: i64::from(spec.quantum),
            law,
            perturbation: random.bits(),
            queues: vec![FlowQueue::default(); spec.flows as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    /// Returns the queue of a flow with this hash, in `0..flows`.
    #[inline]
    pub fn queue_of(&self, hash: u32) -> usize {
        // Two multiplications spread hashes that differ in a few bits; an odd factor loses none.
        let mut mixed = (u64::from(hash) ^ self.perturbation).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        ((u128::from(mixed) * self.queues.len() as u128) >> 64) as usize
    }

    /// Makes room: the queue with the most bytes loses half of its packets from its head, at most a batch of them (RFC
    /// 8290 section 4.1; by packets, where Linux drops half of the bytes).
    fn give_up(&mut self, drop: &mut impl FnMut(QueuedPacket, Cause)) {
        let active = self.new.iter().chain(&self.old);
        let longest = active.max_by_key(|&&index| (self.queues[index as usize].fifo.bytes(), Reverse(index)));
        let Some(&index) = longest else { return };
        let queue = &mut self.queues[index as usize];
        let batch = (queue.fifo.packets() / 2).clamp(1, BATCH);
        for _ in 0..batch {
            let Some(packet) = queue.fifo.pop() else { break };
            self.packets -= 1;
            self.bytes -= u64::from(packet.bytes);
            drop(packet, Cause::QueueFull);
        }
        queue.control.overflowed(batch as u32);
    }
}

impl Queue for FqCodel {
    fn push(
        &mut self,
        _now: Instant,
        packet: QueuedPacket,
        transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) {
        let index = self.queue_of(packet.item.hash);
        let queue = &mut self.queues[index];
        self.packets += 1;
        self.bytes += u64::from(packet.bytes);
        queue.fifo.push(packet);
        if !queue.active {
            queue.active = true;
            queue.credits = self.quantum;
            self.new.push_back(index as u32);
        }
        while self.packets > 0 && !self.limit.holds(self.packets, self.bytes, transmit) {
            self.give_up(drop);
        }
    }

    fn pop(
        &mut self,
        now: Instant,
        _transmit: &TransmitState,
        drop: &mut impl FnMut(QueuedPacket, Cause),
    ) -> Option<QueuedPacket> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let queue = &mut self.queues[index as usize];
            if queue.credits <= 0 {
                queue.credits += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (packets, bytes) = (queue.fifo.packets(), queue.fifo.bytes());
            let packet = queue.control.pop(now, &mut queue.fifo, &self.law, drop);
            self.packets -= packets - queue.fifo.packets();
            self.bytes -= bytes - queue.fifo.bytes();
            if let Some(packet) = packet {
                queue.credits -= i64::from(packet.bytes);
                return Some(packet);
            }
            list.pop_front();
            if is_new {
                // A turn among the old ones first, or a flow that sends now and then would always be new.
                self.old.push_back(index);
            } else {
                queue.active = false;
            }
        }
    }

    fn set_limit(&mut self, limit: Limit) -> bool {
        self.limit = limit;
        true
    }

    fn set_ecn(&mut self, ecn: bool) -> bool {
        self.law.ecn = ecn;
        true
    }

    fn take(&mut self) -> Option<QueuedPacket> {
        loop {
            let list = if self.new.is_empty() { &mut self.old } else { &mut self.new };
            let index = *list.front()?;
            let queue = &mut self.queues[index as usize];
            if let Some(packet) = queue.fifo.pop() {
                self.packets -= 1;
                self.bytes -= u64::from(packet.bytes);
                return Some(packet);
            }
            queue.active = false;
            list.pop_front();
        }
    }

    #[inline]
    fn depth(&self) -> QueueDepth {
        depth(self.packets, self.bytes)
    }
}
