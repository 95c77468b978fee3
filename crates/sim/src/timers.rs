//! One heap for the timers of all endpoints.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use streamgauge_base::Instant;

/// At most one live entry an endpoint. A timer that moves later leaves its entry where it is: it is reached early and
/// is put back. A retransmission timer that every acknowledgement restarts therefore costs a heap operation a timeout,
/// not one a packet.
#[derive(Debug)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Per endpoint: when it is due, and the time of its live entry; `FAR_FUTURE` for never.
    state: Vec<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    wanted: Instant,
    entry: Instant,
}

impl Timers {
    pub fn new(endpoints: usize) -> Self {
        let never = State { wanted: Instant::FAR_FUTURE, entry: Instant::FAR_FUTURE };
        Timers { heap: BinaryHeap::new(), state: vec![never; endpoints] }
    }

    /// Makes `endpoint` due at `at`, and at no other time.
    #[inline]
    pub fn set(&mut self, endpoint: usize, at: Instant) {
        let state = &mut self.state[endpoint];
        state.wanted = at;
        if at < state.entry {
            state.entry = at;
            self.heap.push(Reverse((at, endpoint as u32)));
        }
    }

    /// Returns when [`Timers::pop`] next has an entry.
    #[inline]
    pub fn next(&self) -> Instant {
        self.heap.peek().map_or(Instant::FAR_FUTURE, |Reverse((at, _))| *at)
    }

    /// Looks at the earliest entry, which is due: the endpoint to call, or `None` if its timer has moved.
    pub fn pop(&mut self) -> Option<usize> {
        let Reverse((at, endpoint)) = self.heap.pop()?;
        let state = &mut self.state[endpoint as usize];
        if state.entry != at {
            // An earlier entry has replaced it.
            return None;
        }
        if state.wanted > at {
            state.entry = state.wanted;
            if state.wanted < Instant::FAR_FUTURE {
                self.heap.push(Reverse((state.wanted, endpoint)));
            }
            return None;
        }
        *state = State { wanted: Instant::FAR_FUTURE, entry: Instant::FAR_FUTURE };
        Some(endpoint as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    fn drain(timers: &mut Timers) -> Vec<(u64, usize)> {
        let mut fired = Vec::new();
        while timers.next() < Instant::FAR_FUTURE {
            let now = timers.next().as_nanos();
            fired.extend(timers.pop().map(|endpoint| (now, endpoint)));
        }
        fired
    }

    #[test]
    fn the_last_time_set_is_the_one_that_counts() {
        let mut timers = Timers::new(3);
        timers.set(0, at(10));
        timers.set(0, at(30));
        timers.set(1, at(20));
        timers.set(1, at(5));
        timers.set(2, at(7));
        timers.set(2, Instant::FAR_FUTURE);
        assert_eq!(drain(&mut timers), [(5, 1), (30, 0)]);
    }

    #[test]
    fn a_timer_restarted_by_every_packet_keeps_one_entry() {
        let mut timers = Timers::new(1);
        for n in 0..10_000 {
            timers.set(0, at(200 + n));
        }
        assert_eq!(timers.heap.len(), 1);
        assert_eq!(drain(&mut timers), [(10_199, 0)]);
    }
    #[test]
    fn an_entry_whose_place_was_taken_is_dropped() {
        let mut timers = Timers::new(1);
        timers.set(0, at(20));
        timers.set(0, at(5));
        assert_eq!(timers.pop(), Some(0));
        timers.set(0, at(30));
        while timers.next() < at(30) {
            assert_eq!(timers.pop(), None);
        }
        assert_eq!(timers.heap.len(), 1);
        assert_eq!(drain(&mut timers), [(30, 0)]);
    }
}
