//! Datagrams that wait for the time at which they leave. It is exact: the host's own delays are those of its machines,
//! not of a time handed to a network card.

use std::collections::BTreeMap;

use streamgauge_base::{Chunk, Ecn, Instant};
use streamgauge_systems::ChannelId;

use super::Channels;
use crate::network::Network;
use crate::recorder::Recorder;

/// By time, and then in the order given.
#[derive(Default)]
pub struct Outbox {
    waiting: BTreeMap<(Instant, u64), (ChannelId, Chunk, Option<Ecn>)>,
    given: u64,
}

impl Channels {
    /// Keeps a datagram until it is to leave.
    pub fn keep(&mut self, at: Instant, channel: ChannelId, datagram: Chunk, ecn: Option<Ecn>) {
        let outbox = self.outbox.get_or_insert_default();
        outbox.given += 1;
        outbox.waiting.insert((at, outbox.given), (channel, datagram, ecn));
    }

    /// Returns when the next one leaves.
    #[inline]
    pub fn next_departure(&self) -> Instant {
        let first = self.outbox.as_ref().and_then(|outbox| outbox.waiting.first_key_value());
        first.map_or(Instant::FAR_FUTURE, |(&(at, _), _)| at)
    }

    /// Sends those that have reached their time.
    #[inline]
    pub fn send_due<R: Recorder>(&mut self, now: Instant, network: &mut Network<R>) {
        while self.next_departure() <= now {
            let Some(outbox) = &mut self.outbox else { return };
            let Some((_, (channel, datagram, ecn))) = outbox.waiting.pop_first() else { return };
            self.send(now, channel, datagram, ecn, network);
        }
    }
}
