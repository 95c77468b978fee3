//! What is outstanding: which segments arrived, which are lost (RFC 8985), which went out again (RFC 6675).
//!
//! Every operation is O(1) amortised over the life of a segment. An acknowledgement pops from the front; a
//! SACK block is walked only where it differs from a block of the previous acknowledgement; a cursor passes
//! over each segment once to judge it lost and once to send it again.

use std::collections::VecDeque;

use streamgauge_base::{Duration, Instant};

use super::rate_sample::{RateSample, Sampler};

/// The receiver holds it (SACK).
const SACKED: u8 = 1;
/// Judged lost.
const LOST: u8 = 2;
/// Sent again since it was judged lost, and that copy is in flight.
const RESENT: u8 = 4;
/// Sent more than once, so that its round trip says nothing (Karn).
const AMBIGUOUS: u8 = 8;
/// Ends with a FIN, which takes one sequence number.
const FIN: u8 = 16;

/// Segments that must be SACKed above one before it is lost without further delay (RFC 8985 section 6.2,
/// step 4).
const DUP_THRESH: u32 = 3;

/// One segment outstanding.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// First sequence number.
    pub start: u64,
    /// Sequence numbers taken, a FIN included.
    pub len: u32,
    state: u8,
    /// Which of all transmissions it was last sent by, and when.
    sent: Transmission,
}

impl Sent {
    /// One past its last sequence number.
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.len)
    }
    /// It ends with a FIN.
    pub fn has_fin(&self) -> bool {
        self.state & FIN != 0
    }
    fn is(&self, bit: u8) -> bool {
        self.state & bit != 0
    }
}

/// What an acknowledgement taught.
#[derive(Clone, Copy, Debug, Default)]
pub struct Learned {
    /// Bytes newly known to have arrived.
    pub delivered: u64,
    /// The cumulative acknowledgement covers a segment that was sent more than once.
    pub ambiguous: bool,
    /// When the first and the last of the newly arrived segments that were sent once had been sent.
    pub sent: Option<(Instant, Instant)>,
    /// The last sent of the newly arrived segments: of those sent once, and of those sent again.
    newest: [Option<Transmission>; 2],
}

/// The number and the time of a transmission. Numbers count up: they put those of one burst in order.
type Transmission = (u64, Instant);

impl Learned {
    fn arrived(&mut self, sent: &Sent) {
        self.delivered += u64::from(sent.len);
        let newest = &mut self.newest[usize::from(sent.is(AMBIGUOUS))];
        *newest = (*newest).max(Some(sent.sent));
        if !sent.is(AMBIGUOUS) {
            let (_, at) = sent.sent;
            let first = self.sent.map_or(at, |(first, _)| first);
            self.sent = Some((first, at));
        }
    }
}

/// The segments outstanding, oldest first, and sums over them.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    ring: VecDeque<Sent>,
    /// Index of the ring's front, counted from the connection's start; cursors count alike.
    base: u64,
    outstanding: u64,
    transmissions: u64,
    sacked: u64,
    lost: u64,
    /// Bytes judged lost since the start, again and again.
    lost_ever: u64,
    resent: u64,
    sacked_segments: u32,
    /// Everything before it has been SACKed or judged lost.
    judged: u64,
    /// No lost segment before it waits to be sent again.
    resend: u64,
    /// The blocks of the last acknowledgement that had any.
    known: [(u64, u64); 4],
    /// What was sent again, in that order: its number and that transmission. Stale entries are skipped.
    again: VecDeque<(u64, Transmission)>,
    /// The last sent of all segments known to have arrived, and how long ago that was when it was learned.
    newest: Option<(Transmission, Duration)>,
    /// Measures the delivery rate, for a controller that asks for it.
    sampler: Option<Box<Sampler>>,
}

impl Scoreboard {
    /// Bytes sent and not cumulatively acknowledged.
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }
    /// RFC 6675's pipe: bytes thought to be in the network.
    pub fn pipe(&self) -> u64 {
        self.outstanding + self.resent - self.sacked - self.lost
    }
    /// Bytes judged lost and not yet known to have arrived.
    pub fn lost(&self) -> u64 {
        self.lost
    }
    /// Something judged lost has not been sent again.
    pub fn waits_to_resend(&self) -> bool {
        self.lost > self.resent
    }
    /// Bytes judged lost since the connection began; a copy judged lost too counts again.
    pub fn lost_ever(&self) -> u64 {
        self.lost_ever
    }
    /// True if nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// From now on delivery rates are measured. Nothing may be outstanding.
    pub fn sample_rates(&mut self) {
        debug_assert!(self.is_empty());
        self.sampler = Some(Box::new(Sampler::new()));
    }
    /// The delivery rate that the acknowledgement just taken tells; `min_rtt` is the least round trip so far.
    pub fn rate_sample(&mut self, now: Instant, min_rtt: Duration) -> Option<RateSample> {
        self.sampler.as_mut()?.finish(now, min_rtt, self.lost_ever)
    }
    /// The writer has less to send than a segment while the window has room.
    pub fn starve(&mut self) {
        let in_flight = self.pipe();
        if let Some(sampler) = &mut self.sampler {
            sampler.starve(in_flight);
        }
    }
    /// The writer held back what goes out now; only known while rates are measured.
    pub fn is_app_limited(&self) -> bool {
        self.sampler.as_ref().is_some_and(|sampler| sampler.is_app_limited())
    }

    /// A segment goes out for the first time.
    pub fn push(&mut self, start: u64, len: u32, fin: bool, at: Instant) {
        let alone = self.ring.is_empty();
        self.ring.push_back(Sent {
            start,
            len,
            state: if fin { FIN } else { 0 },
            sent: (self.transmissions, at),
        });
        self.transmissions += 1;
        self.outstanding += u64::from(len);
        let (lost, in_flight) = (self.lost_ever, self.pipe());
        if let Some(sampler) = &mut self.sampler {
            sampler.sent(at, alone, lost, in_flight);
        }
    }

    /// Takes the cumulative acknowledgement `ack`.
    pub fn acknowledge(&mut self, ack: u64, learned: &mut Learned) {
        while let Some(front) = self.ring.front_mut() {
            if front.end() > ack {
                if front.start < ack {
                    // Part of a segment, after a receiver trimmed it: what is left stays as it is.
                    let cut = (ack - front.start) as u32;
                    let part = Sent { len: cut, ..*front };
                    front.start = ack;
                    front.len -= cut;
                    self.forget(&part, learned);
                }
                break;
            }
            let front = *front;
            self.ring.pop_front();
            self.base += 1;
            self.forget(&front, learned);
            if let Some(sampler) = &mut self.sampler {
                sampler.left();
            }
        }
        if learned.ambiguous {
            // Segments behind a hole that was filled waited for it; their time since sending is no round
            // trip.
            learned.sent = None;
        }
        self.judged = self.judged.max(self.base);
        self.resend = self.resend.max(self.base);
    }

    fn forget(&mut self, sent: &Sent, learned: &mut Learned) {
        let len = u64::from(sent.len);
        self.outstanding -= len;
        learned.ambiguous |= sent.is(AMBIGUOUS);
        if sent.is(SACKED) {
            self.sacked -= len;
            self.sacked_segments -= 1;
            return;
        }
        learned.arrived(sent);
        if let Some(sampler) = &mut self.sampler {
            sampler.arrived(0, len, sent.sent.0, sent.sent.1);
        }
        if sent.is(LOST) {
            self.lost -= len;
        }
        if sent.is(RESENT) {
            self.resent -= len;
        }
    }

    /// Takes the SACK block `[left, right)`. Blocks at or below the cumulative acknowledgement (RFC 2883)
    /// teach nothing and change nothing.
    pub fn sack(&mut self, left: u64, right: u64, learned: &mut Learned) {
        let mut from = left;
        for &(known_left, known_right) in &self.known {
            if known_left <= from && from < known_right {
                from = known_right;
            }
        }
        if from >= right {
            return;
        }
        let mut i = match self.ring.back() {
            // The usual block grows at its right end, near the newest segment.
            Some(last) if last.start == from => self.ring.len() - 1,
            _ => self.ring.partition_point(|sent| sent.start < from),
        };
        while let Some(sent) = self.ring.get_mut(i) {
            if sent.end() > right {
                break;
            }
            if !sent.is(SACKED) {
                let len = u64::from(sent.len);
                learned.arrived(sent);
                if let Some(sampler) = &mut self.sampler {
                    sampler.arrived(i, len, sent.sent.0, sent.sent.1);
                }
                self.sacked += len;
                if sent.is(LOST) {
                    self.lost -= len;
                }
                if sent.is(RESENT) {
                    self.resent -= len;
                }
                sent.state = (sent.state & !(LOST | RESENT)) | SACKED;
                self.sacked_segments += 1;
            }
            i += 1;
        }
    }

    /// Ends the blocks of one acknowledgement: the next compares with `blocks`.
    pub fn remember(&mut self, blocks: impl Iterator<Item = (u64, u64)>) {
        self.known = Default::default();
        for (slot, block) in self.known.iter_mut().zip(blocks) {
            *slot = block;
        }
    }

    /// Notes which transmission has arrived. What answers a copy sent again sooner than any round trip (`least`)
    /// answers the one before it, and says nothing.
    pub fn note_newest(&mut self, now: Instant, least: Duration, learned: &Learned) {
        let [once, again] = learned.newest;
        let again = again.filter(|&(_, at)| now - at >= least);
        if let Some(newest) = once.max(again)
            && self.newest.is_none_or(|(known, _)| newest > known)
        {
            self.newest = Some((newest, now - newest.1));
        }
    }

    /// Judges segments lost; true if there are new ones (RFC 8985 section 6.2, as Linux does it where it has seen
    /// no reordering).
    ///
    /// What was sent before a segment that has arrived is lost `window` after it would have been acknowledged had
    /// it taken as long; or at once if `DUP_THRESH` segments are SACKed, or if it had been sent again.
    pub fn judge(&mut self, now: Instant, window: Duration) -> bool {
        let Some((newest, rtt)) = self.newest else { return false };
        let mut new = self.lose_overtaken(newest);
        let window = self.window(window);
        while let Some(sent) = self.ring.get_mut((self.judged - self.base) as usize) {
            if !sent.is(SACKED) {
                if sent.sent >= newest || sent.sent.1 + rtt + window > now {
                    break;
                }
                sent.state |= LOST;
                self.lost += u64::from(sent.len);
                self.lost_ever += u64::from(sent.len);
                new = true;
            }
            self.judged += 1;
        }
        new
    }

    /// When `judge`, which has just been asked, will find the next segment lost; `FAR_FUTURE` if nothing sent after
    /// it has arrived.
    pub fn next_judgement(&self, window: Duration) -> Instant {
        match (self.newest, self.ring.get((self.judged - self.base) as usize)) {
            (Some((newest, rtt)), Some(sent)) if sent.sent < newest => {
                sent.sent.1 + rtt + self.window(window)
            }
            _ => Instant::FAR_FUTURE,
        }
    }

    fn window(&self, asked: Duration) -> Duration {
        if self.sacked_segments >= DUP_THRESH { Duration::ZERO } else { asked }
    }

    /// Copies that were sent before something that has arrived are lost too.
    fn lose_overtaken(&mut self, newest: Transmission) -> bool {
        let mut new = false;
        while let Some(&(index, transmission)) = self.again.front() {
            let sent = index.checked_sub(self.base).and_then(|at| self.ring.get_mut(at as usize));
            match sent.filter(|sent| sent.is(RESENT) && sent.sent == transmission) {
                Some(_) if transmission >= newest => break,
                Some(sent) => {
                    sent.state &= !RESENT;
                    self.resent -= u64::from(sent.len);
                    self.lost_ever += u64::from(sent.len);
                    self.resend = self.resend.min(index);
                    new = true;
                }
                None => {}
            }
            self.again.pop_front();
        }
        new
    }

    /// The timer expired: whatever is not SACKed is lost. If even the oldest is SACKed the receiver has
    /// reneged (RFC 2018 section 8), and what it reported is forgotten.
    pub fn lose_all(&mut self) {
        if self.ring.front().is_some_and(|sent| sent.is(SACKED)) {
            (self.sacked, self.sacked_segments) = (0, 0);
            self.ring.iter_mut().for_each(|sent| sent.state &= !SACKED);
        }
        self.known = Default::default();
        self.again.clear();
        self.lost = 0;
        self.resent = 0;
        for sent in self.ring.iter_mut().filter(|sent| !sent.is(SACKED)) {
            if !sent.is(LOST) || sent.is(RESENT) {
                self.lost_ever += u64::from(sent.len);
            }
            sent.state = (sent.state & !RESENT) | LOST;
            self.lost += u64::from(sent.len);
        }
        self.resend = self.base;
        self.judged = self.base + self.ring.len() as u64;
    }

    /// The oldest lost segment that waits to be sent again, and whether it is the oldest outstanding.
    pub fn next_lost(&mut self) -> Option<(Sent, bool)> {
        while self.resend < self.judged {
            let sent = self.ring.get((self.resend - self.base) as usize)?;
            if sent.is(LOST) && !sent.is(RESENT) {
                return Some((*sent, self.resend == self.base));
            }
            self.resend += 1;
        }
        None
    }

    /// What `next_lost` returned goes out again at `now`.
    pub fn resent(&mut self, now: Instant) {
        let sent = &mut self.ring[(self.resend - self.base) as usize];
        sent.state |= RESENT | AMBIGUOUS;
        sent.sent = (self.transmissions, now);
        self.transmissions += 1;
        self.again.push_back((self.resend, sent.sent));
        self.resent += u64::from(sent.len);
        let at = (self.resend - self.base) as usize;
        self.resend += 1;
        let (lost, in_flight) = (self.lost_ever, self.pipe());
        if let Some(sampler) = &mut self.sampler {
            sampler.sent_again(at, lost, in_flight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    fn board(segments: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for i in 0..segments {
            board.push(1 + i * u64::from(MSS), MSS, false, Instant::from_nanos(i));
        }
        board
    }

    fn edge(segment: u64) -> u64 {
        1 + segment * u64::from(MSS)
    }

    /// As after an acknowledgement at 1 us, whose window never passes.
    fn judge(board: &mut Scoreboard, learned: &Learned) -> bool {
        let now = Instant::from_nanos(1_000);
        board.note_newest(now, Duration::ZERO, learned);
        board.judge(now, Duration::from_secs(1))
    }

    /// Whatever happened, the sums are those of the ring.
    fn audit(board: &Scoreboard) {
        let sum = |bit: u8| board.ring.iter().filter(|s| s.is(bit)).map(|s| u64::from(s.len)).sum::<u64>();
        assert_eq!((board.sacked, board.lost, board.resent), (sum(SACKED), sum(LOST), sum(RESENT)));
        assert_eq!(board.sacked_segments as usize, board.ring.iter().filter(|s| s.is(SACKED)).count());
        assert_eq!(board.outstanding, board.ring.iter().map(|s| u64::from(s.len)).sum::<u64>());
    }

    #[test]
    fn the_third_segment_sacked_above_makes_one_lost() {
        let mut board = board(10);
        for (n, lost) in [(2, 0), (3, 0), (4, 1000)] {
            let mut learned = Learned::default();
            board.sack(edge(1), edge(n), &mut learned);
            board.remember([(edge(1), edge(n))].into_iter());
            assert_eq!(learned.delivered, 1000);
            assert_eq!(judge(&mut board, &learned), lost > 0);
            assert_eq!(board.lost(), lost);
            audit(&board);
        }
        assert_eq!(board.pipe(), 10_000 - 3_000 - 1_000);
        let (sent, oldest) = board.next_lost().unwrap();
        assert_eq!((sent.start, oldest), (1, true));
        board.resent(Instant::from_nanos(99));
        assert!(board.next_lost().is_none());
        assert_eq!(board.pipe(), 7_000);
        let mut learned = Learned::default();
        board.acknowledge(edge(4), &mut learned);
        assert_eq!((learned.delivered, learned.ambiguous, learned.sent), (1000, true, None));
        assert_eq!(board.pipe(), 6_000);
        audit(&board);
    }

    #[test]
    fn several_holes_are_found_and_resent_in_order() {
        let mut board = board(12);
        let mut learned = Learned::default();
        for (left, right) in [(9, 12), (5, 6), (2, 3)] {
            board.sack(edge(left), edge(right), &mut learned);
        }
        assert_eq!(learned.delivered, 5_000);
        judge(&mut board, &learned);
        let mut starts = Vec::new();
        while let Some((sent, _)) = board.next_lost() {
            starts.push(sent.start);
            board.resent(Instant::from_nanos(50));
        }
        assert_eq!(starts, [0, 1, 3, 4, 6, 7, 8].map(edge));
        audit(&board);
    }

    #[test]
    fn a_copy_is_lost_when_something_sent_after_it_has_arrived() {
        let mut board = board(6);
        let mut learned = Learned::default();
        board.sack(edge(1), edge(4), &mut learned);
        assert!(judge(&mut board, &learned));
        board.next_lost();
        board.resent(Instant::from_nanos(99));
        // Segment 5 was sent before the copy and says nothing of it; a new one says that it is lost.
        board.push(edge(6), MSS, false, Instant::from_nanos(99));
        for (n, lost) in [(5, false), (6, true)] {
            let mut learned = Learned::default();
            board.sack(edge(n), edge(n + 1), &mut learned);
            judge(&mut board, &learned);
            assert_eq!(board.next_lost().is_some_and(|(sent, _)| sent.start == edge(0)), lost);
            audit(&board);
        }
    }

    #[test]
    fn an_answer_sooner_than_any_round_trip_is_to_the_first_copy() {
        let mut board = board(3);
        board.lose_all();
        for at in [99, 100] {
            board.next_lost();
            board.resent(Instant::from_nanos(at));
        }
        let mut learned = Learned::default();
        board.sack(edge(1), edge(2), &mut learned);
        board.note_newest(Instant::from_nanos(120), Duration::from_nanos(50), &learned);
        assert!(!board.judge(Instant::from_nanos(120), Duration::ZERO));
        board.note_newest(Instant::from_nanos(150), Duration::from_nanos(50), &learned);
        assert!(board.judge(Instant::from_nanos(150), Duration::ZERO));
    }

    #[test]
    fn a_timeout_loses_all_but_what_is_sacked_and_forgets_reneged_blocks() {
        let mut board = board(6);
        let mut learned = Learned::default();
        board.sack(edge(2), edge(4), &mut learned);
        board.lose_all();
        assert_eq!((board.lost(), board.pipe()), (4_000, 0));
        audit(&board);
        board.acknowledge(edge(2), &mut learned);
        board.lose_all();
        assert_eq!((board.lost(), board.sacked), (4_000, 0));
        audit(&board);
        // The same block counts anew.
        let mut again = Learned::default();
        board.sack(edge(2), edge(4), &mut again);
        assert_eq!(again.delivered, 2_000);
    }

    #[test]
    fn a_partial_acknowledgement_trims_the_oldest() {
        let mut board = board(3);
        let mut learned = Learned::default();
        board.acknowledge(edge(0) + 300, &mut learned);
        assert_eq!((learned.delivered, board.outstanding()), (300, 2_700));
        audit(&board);
    }

    #[test]
    fn a_hole_that_was_filled_gives_no_round_trip_to_what_waited_behind_it() {
        let mut board = board(5);
        board.lose_all();
        board.next_lost();
        board.resent(Instant::from_nanos(99));
        let mut learned = Learned::default();
        board.acknowledge(edge(5), &mut learned);
        assert_eq!((learned.delivered, learned.ambiguous, learned.sent), (5_000, true, None));
    }

    #[test]
    fn old_and_duplicate_blocks_teach_nothing() {
        let mut board = board(8);
        let mut learned = Learned::default();
        board.acknowledge(edge(4), &mut learned);
        let mut nothing = Learned::default();
        board.sack(edge(1), edge(3), &mut nothing);
        assert_eq!((nothing.delivered, board.pipe()), (0, 4_000));
        audit(&board);
    }
}
