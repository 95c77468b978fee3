//! Segments that are given up for another level while they come.

use streamgauge_base::Instant;

use super::DashPlayer;
use super::exchange::What;
use super::track::Chosen;
use crate::abr::{Decision, Fetched, Progress, Situation};
use crate::app::Io;

impl DashPlayer {
    /// Asks the rule about the segment at a line's front, and gives it up if the rule decides so.
    pub(super) fn consider_abandoning(&mut self, now: Instant, line: usize, io: &mut dyn Io) {
        self.page_reads(now, line);
        let Some(exchange) = self.lines[line].exchanges.front() else { return };
        let What::Segment(track, ..) = exchange.what else { return };
        let step = self.tracks[track].rule.asked_each();
        if exchange.asked_rule.is_some_and(|asked| now.saturating_since(asked) < step) {
            return;
        }
        let (of, read) = (exchange.length, exchange.read);
        if let Some(decision) = self.abandonment(now, line, (read, of)) {
            let fetched = self.given_up(now, line, &decision);
            self.drop_exchanges(line, io);
            self.give_up_for(now, &decision, fetched);
        }
    }

    /// Gives up a complete segment if the rule decides so: its connection stays.
    pub(super) fn gives_up_whole(&mut self, now: Instant, line: usize) -> bool {
        let Some(exchange) = self.lines[line].exchanges.front() else { return false };
        let bytes = exchange.bytes;
        let What::Segment(track, ..) = exchange.what else { return false };
        let seen = now + self.late_at_end(now, track);
        let Some(decision) = self.abandonment(seen, line, (bytes, Some(bytes))) else { return false };
        let fetched = self.given_up(now, line, &decision);
        if let Some(exchange) = self.lines[line].exchanges.pop_front() {
            self.next_again(&exchange);
        }
        self.give_up_for(now, &decision, fetched);
        true
    }

    /// Returns another level if the rule gives up for it the segment at a line's front, after these many bytes were
    /// read out of these many.
    fn abandonment(
        &mut self,
        now: Instant,
        line: usize,
        (bytes, of): (u64, Option<u64>),
    ) -> Option<Decision> {
        let exchange = self.lines[line].exchanges.front()?;
        let What::Segment(track, level, ordinal) = exchange.what else { return None };
        self.lines[line].requester.front_written().or(exchange.first_byte)?;
        let progress = Progress {
            segment: ordinal as usize,
            level,
            bytes,
            of,
            asked: self.since(exchange.asked),
            first_byte: exchange.first_byte.map(|first| self.since(first)),
        };
        let decision = self.with_rule(now, track, |rule, now| {
            rule.abandon(&progress, &Situation { segment: ordinal as usize, level: Some(level), ..*now })
        });
        if let Some(exchange) = self.lines[line].exchanges.front_mut() {
            exchange.asked_rule = Some(now);
        }
        decision.filter(|decision| decision.level != level)
    }

    /// Reports that the segment at a line's front is given up, with its received bytes.
    fn given_up(&mut self, now: Instant, line: usize, decision: &Decision) -> Option<(usize, Fetched)> {
        let exchange = self.lines[line].exchanges.front()?;
        let What::Segment(track, level, ordinal) = exchange.what else { return None };
        let rate = |level: usize| self.tracks[track].ladder.in_words(level);
        let reason =
            format!("segment {ordinal} at {}, for {}: {}", rate(level), rate(decision.level), decision.why);
        self.events.say(now, "segment_abandoned", exchange.bytes as f64, "B", reason);
        Some((track, self.fetched_of(now, line, true)?))
    }

    fn give_up_for(&mut self, now: Instant, decision: &Decision, given_up: Option<(usize, Fetched)>) {
        let Some((track, fetched)) = given_up else { return };
        self.tell(now, track, &fetched);
        let one = &mut self.tracks[track];
        one.chosen = Some(Chosen { level: decision.level, from: now });
        one.gave_up = Some(now);
    }
}
