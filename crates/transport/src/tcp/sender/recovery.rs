//! Loss recovery: the meaning of an acknowledgement and its consequences. The course of things is Linux's
//! (net/ipv4/tcp_input.c), where RFC 6675, 8985, 5682 and 4015 leave a choice.

use streamgauge_base::{Duration, Instant};

use super::timers::{ProbeAnswer, Purpose};
use super::{Phase, Sender};
use crate::tcp::clock::stamp;
use crate::tcp::congestion::Ack;
use crate::tcp::prr::Reduction;
use crate::tcp::scoreboard::Learned;

/// An acknowledgement as it arrived. Sequence numbers are 64 bits wide.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub ack: u64,
    /// The peer's right edge.
    pub edge: u64,
    /// The timestamp it echoes.
    pub echo: u32,
    /// Whether it carries payload.
    pub data: bool,
    /// Whether it echoes congestion experienced (RFC 3168).
    pub congested: bool,
    /// Its ACE field, where feedback is accurate (RFC 9768).
    pub ace: Option<u8>,
}

/// The facts found in an acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Facts {
    echo: u32,
    /// Whether it echoes congestion experienced.
    congested: bool,
    /// The first byte outstanding before it.
    prior_una: u64,
    /// Whether it acknowledges new data.
    advanced: bool,
    /// Whether it is a duplicate in RFC 5681's sense: it carries and changes nothing.
    duplicate: bool,
    /// Whether it reports duplicates (RFC 2883), and those are of the loss probe.
    dsack: bool,
    dsack_of_probe: bool,
}

/// The state before it.
#[derive(Clone, Copy, Debug)]
struct Before {
    in_flight: u64,
    lost: u64,
}

/// Result of the search for losses.
#[derive(Clone, Copy, Debug)]
struct Judgement {
    timer_set: bool,
    copies_lost: bool,
}

/// Data that may be sent again after an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resend {
    /// All lost data, as the window allows.
    Lost,
    /// New data first, to see whether a timeout was spurious (RFC 5682); lost data only if there is none.
    NewFirst,
    /// Nothing, until the late arrivals are known.
    Nothing,
}

impl Sender {
    /// Handles an acknowledgement with its SACK blocks.
    pub fn on_ack(
        &mut self,
        now: Instant,
        arrival: Arrival,
        blocks: impl Iterator<Item = (u64, u64)> + Clone,
    ) {
        let Arrival { ack, edge, echo, data, congested, ace } = arrival;
        if ack > self.next {
            return;
        }
        let moved = self.offer(ack, edge);
        let before = Before { in_flight: self.pipe(), lost: self.board.lost_ever() };
        let idle = self.board.is_empty();
        let latest_copy = now - self.rto.min_rtt();
        let mut learned = self.board.learn(self.phase_end, Some(echo), latest_copy);
        let mut facts = Facts {
            echo,
            congested,
            prior_una: self.una,
            advanced: ack > self.una,
            duplicate: ack == self.una && !data && !moved,
            dsack: false,
            dsack_of_probe: false,
        };
        self.take_duplicates(&mut facts, ack, blocks.clone(), &mut learned);
        if facts.advanced {
            self.una = ack;
            self.board.acknowledge(ack, &mut learned);
            self.buffer.release(ack);
            if self.board.is_empty() && ack >= self.buffer.end() {
                // A connection falls idle.
                self.board.rest();
                self.buffer.rest();
            }
        }
        if idle {
            self.window_spoke(now);
        }
        if facts.advanced || idle {
            self.unanswered = 0;
        }
        if idle && !facts.dsack {
            return;
        }
        let una = self.una;
        let fresh = blocks.filter(|&(left, right)| left < right && right > una && right <= self.next);
        if fresh.clone().next().is_some() {
            fresh.clone().for_each(|(left, right)| self.board.sack(left.max(una), right, &mut learned));
            self.board.remember(fresh.clone());
        }
        if let Some(writes) = &mut self.writes {
            writes.acknowledged(una, fresh);
        }
        if let Some(ace) = ace {
            facts.congested |= self.take_marks(ace, ack, learned.delivered);
        }
        self.note_reordering(&learned);
        self.board.note_newest(now, &learned, self.mechanisms.rack_last);
        let (rtt, renew) = self.measure(now, &learned, &facts);
        let nothing_new = facts.duplicate && !learned.sacked;
        let answer = ProbeAnswer { duplicate: facts.dsack_of_probe, nothing_new };
        self.answer_loss_probe(now, ack, answer);
        let timer_set = self.alert(now, &facts, &learned);
        if renew && !timer_set && !self.schedule_loss_probe(now, true) {
            self.rearm_timeout(now);
        }
        if self.mechanisms.rack_reordering {
            self.board.adapt_reordering();
        }
        self.control(now, &learned, &facts, before, rtt);
    }

    /// Duplicates that the receiver reports in the first block: below the acknowledgement, or within the second block
    /// (RFC 2883 section 4).
    fn take_duplicates(
        &mut self,
        facts: &mut Facts,
        ack: u64,
        mut blocks: impl Iterator<Item = (u64, u64)>,
        learned: &mut Learned,
    ) {
        let Some((left, right)) = blocks.next() else { return };
        let repeats = left < ack || blocks.next().is_some_and(|(outer, end)| outer <= left && right <= end);
        // Bytes that were never sent, or more of them than a window holds, are no report.
        if !repeats || left >= right || right > self.next || right - left > self.max_window {
            return;
        }
        let segments = (right - left).div_ceil(self.mss).min(u64::from(u32::MAX)) as u32;
        facts.dsack_of_probe = self.loss_probe.is_some_and(|probe| probe.high == right);
        self.duplicates += u64::from(segments);
        if self.duplicates > self.counts.retransmits {
            // The network copies segments: a report is no sign that one was sent again for nothing.
            return;
        }
        facts.dsack = true;
        self.board.repeated(segments, learned);
        if !facts.dsack_of_probe {
            self.board.rack.note_duplicates();
        }
        let marker = self.undo.marker().unwrap_or(u64::MAX);
        let outstanding = self.board.duplicated(left, right, marker, learned);
        let forgotten = if right <= facts.prior_una && right > marker { segments } else { 0 };
        self.undo.reported(outstanding.max(forgotten));
    }

    /// Reads the count of marks of an acknowledgement. True if the controller answers to it as to an echo: once in a
    /// window.
    fn take_marks(&mut self, ace: u8, ack: u64, delivered: u32) -> bool {
        // An acknowledgement that was overtaken counts less than one before it.
        if ack < self.una {
            return false;
        }
        let marked = self.reported.take(ace, delivered);
        if self.counts_marks {
            self.marked += marked;
        }
        marked > 0 && !self.counts_marks
    }

    /// Handles the peer's announced window while nothing is outstanding.
    fn window_spoke(&mut self, now: Instant) {
        let left = self.buffer.end().saturating_sub(self.next);
        if self.edge.saturating_sub(self.next) >= self.full().min(left) {
            // The window lets a segment out: the data waiting for it starts with a fresh timeout, as in Linux.
            self.rto.end_backoff();
            self.timer.stop();
        } else if self.timer.purpose == Purpose::WindowProbe {
            self.await_window(now);
        }
    }

    fn note_reordering(&mut self, learned: &Learned) {
        if let Some(start) = learned.reordered
            && (self.phase != Phase::Loss || self.undo.marker().is_some())
        {
            self.note_reordering_from(start);
        }
    }

    fn note_reordering_from(&mut self, start: u64) {
        let segments = self.board.overtaken_by(start);
        if self.mechanisms.rack_reordering && segments > 0 {
            self.board.rack.note_reordering(segments);
        }
    }

    /// Feeds the timeout. Returns the round trip of the newest segment covered, and whether the timer is to be
    /// restarted.
    fn measure(&mut self, now: Instant, learned: &Learned, facts: &Facts) -> (Option<Duration>, bool) {
        let mut renew = facts.advanced;
        let (first, last) = match learned.sent {
            Some((first, last)) => (now - first, now - last),
            // Karn: only the timestamp shows which copy was acknowledged. Its clock may not have moved on.
            None if facts.advanced && learned.ambiguous => {
                let echoed = stamp(now).wrapping_sub(facts.echo).max(1);
                let rtt = Duration::from_millis(u64::from(echoed));
                (rtt, rtt)
            }
            None => return (None, renew),
        };
        if !facts.advanced && self.board.oldest().is_some_and(|oldest| first > now - oldest.sent_at()) {
            // The arrived data was sent before the oldest was last sent.
            renew = true;
        }
        // A short segment alone may have been acknowledged late, on purpose.
        let runt = facts.advanced && learned.delivered == 1 && self.una - facts.prior_una < self.mss;
        if !runt || last < self.rto.min_rtt() {
            self.rto.note_least(last);
        }
        self.rto.sample(first, self.una, self.next);
        (Some(last), renew)
    }

    /// Returns whether something outstanding has been overtaken, or has been sent again: Linux's state "Disorder".
    pub(super) fn disordered(&self) -> bool {
        self.board.sacked() > 0 || self.board.lost() > 0 || self.board.any_resent()
    }

    /// Looks for losses.
    fn judge(&mut self, now: Instant) -> Judgement {
        let copies = self.board.resent_in_flight();
        let due = self.board.judge(now, self.reordering_window());
        if let Some(due) = due {
            self.await_judgement(now, due);
        }
        Judgement { timer_set: due.is_some(), copies_lost: self.board.resent_in_flight() < copies }
    }

    fn reordering_window(&self) -> Duration {
        let repairing = matches!(self.phase, Phase::Recovery | Phase::Loss);
        let srtt = self.rto.srtt().unwrap_or(Duration::ZERO);
        self.board.rack.window(repairing, self.board.sacked(), self.rto.min_rtt(), srtt)
    }

    /// Moves between the phases. True if RACK or a suspicion has set the timer.
    fn alert(&mut self, now: Instant, facts: &Facts, learned: &Learned) -> bool {
        self.resend_mode = Resend::Lost;
        if self.phase == Phase::Open {
            if !self.board.any_resent() {
                self.undo.forget_copies();
            }
            let calm = !facts.duplicate && !facts.dsack && !learned.sacked && !facts.congested;
            if calm && self.board.sacked() == 0 && self.board.lost() == 0 {
                return false;
            }
        }
        if facts.congested {
            // The congestion signal is real in any case.
            self.undo.justify();
        }
        if facts.advanced && self.board.oldest().is_some_and(|oldest| oldest.is_sacked()) {
            self.await_reneging(now);
            return true;
        }
        match self.phase {
            Phase::Reduced if self.una > self.phase_end => self.phase = Phase::Open,
            Phase::Recovery if self.una >= self.phase_end => self.recovered(now, facts.echo),
            _ => {}
        }
        let mut timer_set = false;
        match self.phase {
            Phase::Recovery => {
                if facts.advanced && self.mechanisms.undo && self.undo.first_copy(facts.echo) {
                    // The hole was filled by a late segment, not by a copy.
                    self.note_reordering_from(facts.prior_una);
                    if self.board.resent_in_flight() > 0 {
                        self.resend_mode = Resend::Nothing;
                        return false;
                    }
                    self.undo_reduction(now, true);
                    self.phase = Phase::Open;
                }
                if self.undo_by_duplicates(now) {
                    self.phase = Phase::Open;
                }
                timer_set |= self.judge(now).timer_set;
                if self.phase != Phase::Recovery && self.board.lost() > 0 {
                    self.enter_recovery(now, facts.congested);
                }
                return timer_set;
            }
            Phase::Loss => {
                self.after_timeout(now, facts, learned);
                let judgement = self.judge(now);
                timer_set |= judgement.timer_set;
                if self.phase == Phase::Loss && !judgement.copies_lost {
                    return timer_set;
                }
                self.resend_mode = Resend::Lost;
            }
            Phase::Open | Phase::Reduced => {}
        }
        if self.phase == Phase::Open {
            self.undo_by_duplicates(now);
        }
        timer_set |= self.judge(now).timer_set;
        if self.board.lost() > 0 {
            self.enter_recovery(now, facts.congested);
            return timer_set;
        }
        if !self.board.any_resent() {
            self.undo.forget_copies();
        }
        if facts.congested && self.phase == Phase::Open {
            // At most once in a window of data (RFC 3168 section 6.1.2).
            self.begin_reduction(now);
            self.phase = Phase::Reduced;
            self.counts.ecn_reductions += 1;
        }
        timer_set
    }

    /// Begins fast recovery; `congested`: with an acknowledgement that echoes congestion.
    fn enter_recovery(&mut self, now: Instant, congested: bool) {
        if !self.board.any_resent() {
            self.undo.forget_copies();
        }
        let probe = u32::from(self.loss_probe.is_some_and(|probe| probe.repeats));
        let justified = congested || self.phase == Phase::Reduced;
        self.undo.begin(self.una, self.board.resent_in_flight() + probe, justified);
        if self.phase != Phase::Reduced {
            self.begin_reduction(now);
        }
        self.phase = Phase::Recovery;
        self.counts.recoveries += 1;
    }

    fn begin_reduction(&mut self, now: Instant) {
        self.phase_end = self.next;
        self.loss_probe = None;
        self.tells_reduced = true;
        self.reduction = Reduction::begin(self.segments(self.window()));
        self.controller.on_congestion_event(now);
    }

    /// Ends a repair: everything outstanding when it began is acknowledged.
    fn recovered(&mut self, now: Instant, echo: u32) {
        if self.mechanisms.undo && self.undo.may_undo(echo) {
            self.undo_reduction(now, false);
        } else {
            self.board.rack.calm_recovery();
        }
        self.phase = Phase::Open;
    }

    /// Undoes a reduction that was for nothing; `unmark`: and nothing was lost.
    fn undo_reduction(&mut self, now: Instant, unmark: bool) {
        if unmark {
            self.board.unmark_losses();
        }
        if !self.undo.is_justified() {
            self.controller.on_undo(now);
        }
        self.counts.undos += 1;
        self.undo.end();
        self.board.rack.look_again();
    }

    fn undo_by_duplicates(&mut self, now: Instant) -> bool {
        let undoes = self.mechanisms.undo && self.undo.all_reported();
        if undoes {
            self.board.rack.spurious_recovery();
            self.undo_reduction(now, false);
        }
        undoes
    }

    /// Handles an acknowledgement after a timeout: F-RTO (RFC 5682 section 3.1) with SACK.
    fn after_timeout(&mut self, now: Instant, facts: &Facts, learned: &Learned) {
        let repaired = self.una >= self.phase_end;
        let undoes = facts.advanced && self.undo.may_undo(facts.echo);
        let spurious = self.frto && learned.original;
        if spurious || (undoes && self.mechanisms.undo) {
            self.undo_reduction(now, true);
            self.unanswered = 0;
            self.phase = Phase::Open;
            return;
        }
        if self.frto {
            if self.next > self.phase_end {
                // Step 3.a: new data was sent, and the gap is still there.
                self.frto &= !(learned.sacked || facts.duplicate);
            } else if facts.advanced && !repaired {
                // Step 2.b: new data will decide.
                self.phase_end = self.next;
                if self.has_new() {
                    self.resend_mode = Resend::NewFirst;
                    return;
                }
                self.frto = false;
            }
        }
        if repaired {
            self.recovered(now, facts.echo);
        }
    }

    /// Handles an expired retransmission timer.
    pub(super) fn time_out(&mut self, now: Instant) {
        let fresh = matches!(self.phase, Phase::Open | Phase::Reduced);
        // Once in a phase is enough: a timeout during a recovery does not halve again.
        let reduces = self.phase == Phase::Open
            || self.una >= self.phase_end
            || (self.phase == Phase::Loss && self.unanswered == 1);
        if self.phase == Phase::Open && self.board.sacked() >= 3 {
            self.board.rack.doubt_reordering();
        }
        self.board.time_out(now);
        if reduces {
            self.undo.begin(self.una, self.board.resent_in_flight(), false);
        }
        self.controller.on_timeout(now, !reduces);
        self.tells_reduced = true;
        self.phase = Phase::Loss;
        self.phase_end = self.next;
        self.loss_probe = None;
        self.frto = self.mechanisms.frto && (fresh || self.unanswered > 1);
        self.counts.timeouts += 1;
        self.resend_mode = Resend::Lost;
        self.forced = true;
        self.expire_pacing(now);
        self.timer.set(now, self.timeout(), Purpose::Timeout);
    }

    /// Handles the end of RACK's reordering window.
    pub(super) fn reordering_over(&mut self, now: Instant) {
        let in_flight = self.board.in_flight();
        self.board.judge_by_time(now, self.reordering_window());
        if self.board.in_flight() != in_flight {
            if self.phase != Phase::Recovery {
                self.enter_recovery(now, false);
                self.reduce(1, false);
            }
            self.resend_mode = Resend::Lost;
        }
        if self.timer.purpose != Purpose::Timeout {
            self.rearm_timeout(now);
        }
    }

    fn reduce(&mut self, delivered: u32, progress: bool) {
        let ssthresh = self.segments(self.controller.ssthresh());
        self.reduction.on_ack(delivered, self.board.in_flight(), ssthresh, progress);
    }

    /// Returns the whole segments in `bytes`.
    fn segments(&self, bytes: u64) -> u32 {
        (bytes / self.mss).min(u64::from(u32::MAX)) as u32
    }

    /// Informs the controller, or meters the reduction in progress.
    fn control(
        &mut self,
        now: Instant,
        learned: &Learned,
        facts: &Facts,
        before: Before,
        rtt: Option<Duration>,
    ) {
        let lost = self.board.lost_ever() - before.lost;
        let rate = self.board.rate_sample(now, self.rto.min_rtt());
        let tells = if self.controller.governs_recovery() {
            learned.delivered > 0 || lost > 0 || self.marked > 0
        } else if matches!(self.phase, Phase::Recovery | Phase::Reduced) {
            self.reduce(learned.delivered, facts.advanced && lost == 0);
            false
        } else {
            facts.advanced || (learned.sacked && self.board.rack.reorders_much())
        };
        if tells {
            self.controller.on_ack(&Ack {
                now,
                delivered: u64::from(learned.delivered) * self.mss,
                segments: learned.delivered,
                marked: std::mem::take(&mut self.marked),
                lost,
                una: self.una,
                next: self.next,
                prior_in_flight: before.in_flight,
                in_flight: self.pipe(),
                rtt,
                srtt: self.rto.srtt().unwrap_or(Duration::ZERO),
                min_rtt: self.rto.min_rtt(),
                window_limited: self.window_limited(),
                repair: self.repair(),
                rate,
                departs: self.next_departure(now),
            });
            if self.controller.limits_itself() {
                self.board.starve();
            }
        }
    }
}
