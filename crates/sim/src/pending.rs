//! Pending work of an end of a flow.

use std::collections::VecDeque;

use streamgauge_systems::{ChannelError, ChannelId};

/// Pending work of the end in hand; empty between two.
#[derive(Debug, Default)]
pub struct Pending {
    /// Channels that may have events: mostly one alone.
    first: Option<ChannelId>,
    touched: VecDeque<ChannelId>,
    /// The channel that is being polled until it has no more events.
    current: Option<ChannelId>,
    /// Channels that could not be opened.
    pub refused: VecDeque<(ChannelId, ChannelError)>,
}

impl Pending {
    #[inline]
    pub fn touch(&mut self, channel: ChannelId) {
        if self.current == Some(channel) || self.first == Some(channel) {
            return;
        }
        if self.first.is_none() && self.touched.is_empty() {
            self.first = Some(channel);
        } else {
            self.touched.push_back(channel);
        }
    }

    /// Returns the next channel to listen to.
    #[inline]
    pub fn next_touched(&mut self) -> Option<ChannelId> {
        self.current = self.first.take();
        if self.current.is_none() && !self.touched.is_empty() {
            self.current = self.touched.pop_front();
        }
        self.current
    }

    pub fn next_refused(&mut self) -> Option<(ChannelId, ChannelError)> {
        self.refused.pop_front()
    }
}
