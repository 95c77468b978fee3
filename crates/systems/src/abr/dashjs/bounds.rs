//! Rules that only hold others back.

use std::collections::VecDeque;

use super::super::Situation;
use super::{EMPTY_S, Measured};

/// `insufficientBufferRule.parameters`.
const SHARE: f64 = 0.7;
const IGNORED: usize = 2;
/// `switchHistoryRule.parameters`.
const ASKS: usize = 8;
const DROPS_PER_OTHER: f64 = 0.075;

/// InsufficientBufferRule: after two segments, R at most 0.7 T B/d; the lowest level with an empty buffer.
pub fn insufficient_buffer(now: &Situation<'_>, measured: &Measured, came: usize) -> Option<(usize, String)> {
    let buffer_s = now.buffer.as_secs_f64();
    if came < IGNORED {
        return None;
    }
    if buffer_s <= EMPTY_S {
        return Some((0, "the lowest: the buffer is empty".into()));
    }
    let bps = SHARE * measured.bps()? * buffer_s / now.ladder.segment.as_secs_f64();
    let why = || format!("{buffer_s:.1} s in the buffer are enough for {:.0} kbit/s", bps / 1e3);
    (bps > 0.0).then(|| (now.ladder.at_most(bps), why()))
}

/// SwitchHistoryRule and its memory: the last eight asks, from which level and whether down.
#[derive(Default)]
pub struct SwitchHistory {
    asks: VecDeque<(usize, bool)>,
}

impl SwitchHistory {
    /// The rules asked for `to` while `from` was selected.
    pub fn push(&mut self, from: usize, to: usize) {
        self.asks.push_back((from, to < from));
        if self.asks.len() > ASKS {
            self.asks.pop_front();
        }
    }

    /// From the lowest level up, the first up to which eight asks were made and more than 0.075 of them for each other
    /// one were drops: that level, or the one below if it was itself dropped from.
    pub fn propose(&self) -> Option<(usize, String)> {
        let top = self.asks.iter().map(|ask| ask.0).max()?;
        let count = |level, down| self.asks.iter().filter(|&&ask| ask == (level, down)).count();
        let (mut drops, mut others) = (0, 0);
        for level in 0..=top {
            drops += count(level, true);
            others += count(level, false);
            if drops + others >= ASKS && drops as f64 > DROPS_PER_OTHER * others as f64 {
                let to = if count(level, true) > 0 { level.saturating_sub(1) } else { level };
                return Some((to, format!("no higher: {drops} of the last {ASKS} asks were drops")));
            }
        }
        None
    }
}
