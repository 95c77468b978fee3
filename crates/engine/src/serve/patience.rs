//! Time limits for a client's requests and its reception.

use streamgauge_base::{Duration, Instant};

/// A client without a request for this time makes room for others when the server is full. One that has just
/// come is left the time that its request takes.
const FIRST_WORD: Duration = Duration::from_secs(1);

/// One that has had its answer and asks for nothing more for this time makes room likewise. Players of
/// segments ask again sooner, or connect again.
const QUIET: Duration = Duration::from_secs(10);

/// A client that receives less than [`LEAST_RATE`] of its answer over this time is slow, and makes room
/// likewise.
const WATCHED: Duration = Duration::from_secs(30);

/// Bytes in a second. The slowest modems of the 1990s are faster.
const LEAST_RATE: u64 = 100;

/// One client's requests and progress so far.
pub struct Patience {
    began: Instant,
    /// Bytes that were sent to it; an answer is the sign that a request was whole.
    sent: u64,
    /// A request is awaited since then: the first, or the rest of one.
    awaited: Option<Instant>,
    /// Bytes that it had taken then.
    taken: (Instant, u64),
    /// When it was last sent something, or had begun to ask.
    stirred: Instant,
}

impl Patience {
    /// Returns the state of a new client.
    pub fn new(began: Instant) -> Self {
        Patience { began, sent: 0, awaited: None, taken: (began, 0), stirred: began }
    }

    /// Notes after a turn that `sent` bytes have gone to it so far, and whether a request is awaited.
    pub fn look(&mut self, now: Instant, sent: u64, is_awaited: bool) {
        if std::mem::replace(&mut self.sent, sent) < sent {
            self.awaited = None;
            self.stirred = now;
        }
        if is_awaited {
            self.stirred = now;
        }
        self.awaited = if is_awaited { self.awaited.or(Some(now)) } else { None };
    }

    /// Returns whether it has not asked for anything.
    pub fn has_not_asked(&self) -> bool {
        self.sent == 0
    }

    /// Returns when an awaited request has to be whole, if each has `within` for that.
    pub fn ends_at(&self, within: Duration) -> Option<Instant> {
        self.awaited.map(|since| since + within)
    }

    /// Returns whether it had the time to ask.
    pub fn had_time(&self, now: Instant) -> bool {
        now.saturating_since(self.began) >= FIRST_WORD
    }

    /// Returns since when it has had its answer and asked for nothing more, if that is long.
    pub fn quiet_since(&self, now: Instant) -> Option<Instant> {
        let is_quiet = self.sent > 0 && now.saturating_since(self.stirred) >= QUIET;
        is_quiet.then_some(self.stirred)
    }

    /// Returns whether it receives its answer more slowly than a client with interest in it would.
    /// `unacknowledged` bytes are on their way to it.
    pub fn is_slow(&mut self, now: Instant, unacknowledged: u64) -> bool {
        let taken = self.sent.saturating_sub(unacknowledged);
        let (since, before) = self.taken;
        let watched = now.saturating_since(since);
        if unacknowledged == 0 {
            self.taken = (now, taken);
            return false;
        }
        if watched < WATCHED {
            return false;
        }
        self.taken = (now, taken);
        u128::from(taken.saturating_sub(before)) * 1_000_000_000
            < u128::from(LEAST_RATE) * u128::from(watched.as_nanos())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Instant {
        Instant::from_nanos(s * 1_000_000_000)
    }

    const WITHIN: Duration = Duration::from_secs(30);

    #[test]
    fn a_request_has_to_be_whole_in_time_whatever_comes_of_it_meanwhile() {
        let mut patience = Patience::new(at(0));
        for s in 0..29 {
            patience.look(at(s), 0, true);
            assert_eq!(patience.ends_at(WITHIN), Some(at(30)));
        }
        assert!(patience.has_not_asked() && !patience.had_time(Instant::ZERO) && patience.had_time(at(1)));
        // Answered, and the next one has begun.
        patience.look(at(29), 100, true);
        assert_eq!((patience.ends_at(WITHIN), patience.has_not_asked()), (Some(at(59)), false));
        patience.look(at(40), 100, false);
        assert_eq!(patience.ends_at(WITHIN), None);
        patience.look(at(50), 100, true);
        patience.look(at(60), 100, true);
        assert_eq!(patience.ends_at(WITHIN), Some(at(80)));
    }

    #[test]
    fn who_has_had_its_answer_is_quiet_until_it_asks_again() {
        let mut patience = Patience::new(at(0));
        assert_eq!(patience.quiet_since(at(60)), None, "it has had none");
        patience.look(at(60), 100, false);
        assert_eq!((patience.quiet_since(at(69)), patience.quiet_since(at(70))), (None, Some(at(60))));
        patience.look(at(71), 100, true);
        assert_eq!(patience.quiet_since(at(80)), None, "it has begun to ask");
        patience.look(at(82), 200, false);
        assert_eq!(patience.quiet_since(at(92)), Some(at(82)));
    }

    #[test]
    fn who_takes_less_than_a_modem_does_is_slow() {
        let mut patience = Patience::new(at(0));
        patience.look(at(0), 300_000, false);
        assert!(!patience.is_slow(at(29), 200_000));
        assert!(!patience.is_slow(at(30), 200_000), "100 kB in 30 s");
        assert!(!patience.is_slow(at(59), 199_000));
        assert!(patience.is_slow(at(60), 199_000), "1 kB in 30 s");
        assert!(!patience.is_slow(at(90), 0), "nothing is left to take");
        patience.look(at(100), 600_000, false);
        assert!(!patience.is_slow(at(119), 300_000));
        assert!(patience.is_slow(at(120), 300_000), "nothing in 30 s");
    }
}
