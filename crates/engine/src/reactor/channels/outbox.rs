//! Datagrams that wait for their time. Those that are due leave together, a system call for each channel.

use std::collections::BTreeMap;

use streamgauge_base::{Chunk, Ecn, Instant};
use streamgauge_systems::ChannelId;

use super::{Channels, Socket};
use crate::net::batch::MOST;
use crate::sys::monotonic_ns;

/// Waiting data of one end, by time and then in the order given.
#[derive(Default)]
pub struct Outbox {
    /// CLOCK_MONOTONIC when the machine's time is zero, ns.
    epoch_ns: Option<i64>,
    waiting: BTreeMap<(i64, u64), (ChannelId, Chunk, Option<Ecn>)>,
    given: u64,
}

impl Outbox {
    /// Keeps a datagram until the machine's time is `at`. Gives it back if there is no such time: then it leaves at once.
    pub fn keep(
        &mut self,
        at: Instant,
        channel: ChannelId,
        datagram: Chunk,
        ecn: Option<Ecn>,
    ) -> Result<(), Chunk> {
        let Some(epoch) = self.epoch_ns else { return Err(datagram) };
        self.given += 1;
        let at_ns = epoch.saturating_add_unsigned(at.as_nanos());
        self.waiting.insert((at_ns, self.given), (channel, datagram, ecn));
        Ok(())
    }

    /// Returns when the first is to leave, of CLOCK_MONOTONIC, ns.
    pub fn first_ns(&self) -> Option<i64> {
        self.waiting.first_key_value().map(|(&(at, _), _)| at)
    }

    /// Takes those that are due, in order.
    fn due(&mut self, now_ns: i64) -> BTreeMap<(i64, u64), (ChannelId, Chunk, Option<Ecn>)> {
        if self.first_ns().is_none_or(|at| at > now_ns) {
            return BTreeMap::new();
        }
        let later = self.waiting.split_off(&(now_ns + 1, 0));
        std::mem::replace(&mut self.waiting, later)
    }
}

impl Channels {
    /// Sets the machine's time zero as a reading of CLOCK_MONOTONIC, ns: from now on datagrams may wait for
    /// their time.
    pub fn count_from(&mut self, epoch_ns: i64) {
        self.outbox.epoch_ns = Some(epoch_ns);
    }

    /// Sends data that are due.
    pub(super) fn send_due(&mut self) {
        let mut due = self.outbox.due(monotonic_ns()).into_values().peekable();
        let mut batch = Vec::new();
        while let Some((channel, datagram, ecn)) = due.next() {
            batch.push((datagram, ecn));
            if batch.len() == MOST || due.peek().is_none_or(|(next, ..)| *next != channel) {
                self.send_together(channel, &batch);
                batch.clear();
            }
        }
    }

    /// Sends datagrams of one channel by one system call.
    pub(super) fn send_together(&mut self, channel: ChannelId, batch: &[(Chunk, Option<Ecn>)]) {
        let sent = match self.list.get_mut(&channel).map(|entry| &mut entry.socket) {
            Some(Socket::Udp(udp, _)) => udp.send_batch(batch),
            Some(&mut Socket::OfListener(listener, there)) => {
                self.shared(listener).map_or(0, |udp| udp.send_batch(there, batch))
            }
            _ => return,
        };
        self.counts.datagrams_sent += sent as u64;
        self.counts.datagram_bytes_sent +=
            batch[..sent].iter().map(|(datagram, _)| datagram.len() as u64).sum::<u64>();
        self.counts.send_errors += (batch.len() - sent) as u64;
    }
}
