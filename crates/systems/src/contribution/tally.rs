//! Counts that are reported each second.

use streamgauge_base::{Duration, Instant};

use crate::outbox::Outbox;

const EVERY: Duration = Duration::from_millis(1000);

/// Packets of `N` kinds since the last report.
pub struct Tally<const N: usize> {
    names: [&'static str; N],
    packets: [u64; N],
    next: Option<Instant>,
}

impl<const N: usize> Tally<N> {
    pub fn new(names: [&'static str; N]) -> Self {
        Tally { names, packets: [0; N], next: None }
    }

    pub fn start(&mut self, now: Instant) {
        self.next = Some(now + EVERY);
    }

    pub fn add(&mut self, kind: usize, packets: u64) {
        self.packets[kind] += packets;
    }

    /// Returns when the next report is due.
    pub fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Reports the counts above 0 if a second has passed; true if so.
    pub fn tell(&mut self, now: Instant, events: &mut Outbox) -> bool {
        let is_due = self.next.is_some_and(|next| next <= now);
        if is_due {
            self.next = Some(now + EVERY);
            self.flush(now, events);
        }
        is_due
    }

    /// Reports the counts above 0.
    pub fn flush(&mut self, now: Instant, events: &mut Outbox) {
        for (&name, packets) in self.names.iter().zip(&mut self.packets) {
            if *packets > 0 {
                events.say(now, name, std::mem::take(packets) as f64, "packets", "");
            }
        }
    }
}
