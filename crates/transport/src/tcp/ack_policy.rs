//! When a receiver acknowledges: at once, after a second full segment, or late, as Linux decides it
//! (net/ipv4/tcp_input.c, tcp_output.c; RFC 9293 section 3.8.6.3).

use streamgauge_base::{Duration, Instant};

use super::clock::expiry;
use super::config::Config;
use super::window_growth::WindowGrowth;

/// Linux's `TCP_DELACK_MAX`.
const LONGEST_DELAY: Duration = Duration::from_millis(200);
/// Acknowledgements of one gap that are sent at once, before they are thinned.
const PROMPT_DUPLICATES: u8 = 3;
/// Longest wait of a thinned acknowledgement (`tcp_comp_sack_delay_ns`), and the share of the round trip that it is, as
/// a divisor.
const LONGEST_THINNING: Duration = Duration::from_millis(1);
const THINNING_SHARE: u64 = 20;
/// Most arrivals that one of them covers (`tcp_comp_sack_nr`).
const MOST_THINNED: u8 = 44;
/// Least payload with which a segment that is not full shows the size of full ones, if a second one is as long. The lower
/// bound is that of a segment that does not end the written data.
const TELLING: u32 = 524;
const TELLING_UNPUSHED: u32 = 76;
/// Size of a full segment before one was seen (RFC 1122's default MSS).
const FULL_AT_FIRST: u64 = 536;

/// The policy's inputs from the other half and from the segment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now: Instant,
    /// This end's own retransmission timeout and smoothed round trip.
    pub rto: Duration,
    pub srtt: Option<Duration>,
    /// Whether the segment has the PSH flag.
    pub push: bool,
    /// The clock that the segment echoes, and how long ago it showed that.
    pub echo: (u32, Duration),
}

/// The acknowledgements of one receiver.
#[derive(Clone, Debug)]
pub struct AckPolicy {
    mss: u32,
    /// The peer's full segment as far as seen, in bytes of payload.
    full: u32,
    /// Payload of the last segment that was shorter and could show the size.
    short: u32,
    /// Whether an acknowledgement must leave now.
    due: bool,
    /// There is something to acknowledge.
    scheduled: bool,
    /// The end of something written has arrived; and that of a second.
    pushed: [bool; 2],
    deadline: Instant,
    /// The least delay; zero acknowledges everything at once.
    least: Duration,
    /// The delay as adapted to the intervals at which segments arrive; `None` before the first.
    delay: Option<Duration>,
    coarse: bool,
    quick: u8,
    /// Half a window's segments at most.
    quick_limit: u8,
    quick_most: u8,
    /// Whether this end answers the data it gets: its own data carries acknowledgements.
    converses: bool,
    last_arrival: Instant,
    growth: WindowGrowth,
    /// Whether a rise of the window that Linux would offer acknowledges at once.
    tells_growth: bool,
    /// Acknowledgements sent at once for the gap at `gap`, and arrivals since that wait for `thinned_until`.
    prompt: u8,
    thinned: u8,
    gap: u64,
    thinned_until: Instant,
}

impl AckPolicy {
    /// Makes the policy of a stream that starts at sequence number `start`.
    pub fn new(start: u64, config: &Config) -> Self {
        let mss = u64::from(config.mss);
        let fit = (config.receive_window / (2 * mss)).max(2);
        AckPolicy {
            mss: config.mss,
            full: mss.min(config.receive_window / 2).min(FULL_AT_FIRST) as u32,
            short: 0,
            due: false,
            scheduled: false,
            pushed: [false; 2],
            deadline: Instant::FAR_FUTURE,
            least: config.delayed_ack,
            delay: None,
            coarse: config.coarse_timers,
            quick: 0,
            quick_limit: u64::from(config.quick_acks).min(fit).min(255) as u8,
            quick_most: config.quick_acks.min(255) as u8,
            converses: false,
            last_arrival: Instant::ZERO,
            growth: WindowGrowth::new(start, config),
            tells_growth: config.mechanisms.window_growth,
            prompt: 0,
            thinned: 0,
            gap: 0,
            thinned_until: Instant::FAR_FUTURE,
        }
    }

    /// Returns whether an acknowledgement must leave now.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.due
    }
    /// Asks for an acknowledgement.
    #[inline]
    pub fn demand(&mut self) {
        self.due = true;
    }
    /// Returns when an acknowledgement falls due.
    #[inline]
    pub fn deadline(&self) -> Instant {
        self.deadline.min(self.thinned_until)
    }

    /// Handles the timers that have expired.
    pub fn handle_timeout(&mut self, now: Instant, rto: Duration) {
        if now >= self.thinned_until {
            self.thinned_until = Instant::FAR_FUTURE;
            self.due = true;
        }
        if now >= self.deadline {
            self.deadline = Instant::FAR_FUTURE;
            if self.scheduled {
                // The delay was for nothing: wait longer next time, or, if data was to carry it, no longer.
                self.delay = match self.delay {
                    Some(delay) if !self.converses => Some((delay * 2).min(rto)),
                    _ => Some(self.least),
                };
                self.converses = false;
                self.due = true;
            }
        }
    }

    /// Notes that data was sent, and an acknowledgement with it.
    #[inline]
    pub fn data_sent(&mut self, now: Instant) {
        self.converses |= self.delay.is_some_and(|delay| now.saturating_since(self.last_arrival) < delay);
    }

    /// Notes that an acknowledgement was sent.
    #[inline]
    pub fn sent(&mut self) {
        if self.scheduled && self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.delay = Some(self.least);
            }
        }
        self.due = false;
        self.scheduled = false;
        self.pushed = [false; 2];
        self.deadline = Instant::FAR_FUTURE;
        self.thinned = 0;
        self.thinned_until = Instant::FAR_FUTURE;
    }

    /// Makes the next acknowledgements leave at once: the peer has sent something again, or past the window.
    pub fn hurry(&mut self) {
        self.quick = self.quick.max(self.quick_limit);
        self.converses = false;
        self.delay = Some(self.least);
        self.scheduled = true;
        self.due = true;
    }

    /// Makes at least the next `count` acknowledgements leave at once.
    pub fn hurry_for(&mut self, count: u8) {
        self.quick = self.quick.max(count.min(self.quick_limit));
        self.converses = false;
        self.delay = Some(self.least);
    }

    /// Returns whether the buffered amount decides, and must therefore be passed in.
    #[inline]
    pub fn counts_memory(&self) -> bool {
        self.growth.counts_memory()
    }

    /// Returns the window to send with an acknowledgement that expects `next`, with `held` bytes in the buffer, as
    /// Linux 6.1 has it.
    pub fn window(&mut self, next: u64, held: u64) -> u32 {
        let (window, little) = self.growth.tell(next, held, self.full);
        self.quick = if little { 0 } else { self.quick };
        self.quick_limit = (window / (2 * self.full.max(1))).max(2).min(self.quick_most.into()) as u8;
        window
    }

    /// Returns whether the window would double after the bytes read so far, with `held` bytes left, as in Linux 6.1.
    pub fn doubles(&self, next: u64, held: u64) -> bool {
        self.growth.doubles(next, held, self.full)
    }

    /// Handles a segment of `len` bytes of new data, at the place expected up to `next`, or ahead of that; with it the
    /// buffer holds `held` bytes.
    pub fn arrived(&mut self, at: Moment, len: u64, next: Option<u64>, held: u64) {
        self.scheduled = true;
        self.measure(len, at.push);
        let Some(next) = next else {
            // Data that waits behind a gap measures a round trip too, as of 6.1.
            if self.growth.counts_memory() {
                self.growth.time(len, at.echo);
            }
            return;
        };
        let since = at.now.saturating_since(self.last_arrival);
        self.last_arrival = at.now;
        match self.delay {
            None => {
                self.quick = self.quick.max(self.quick_limit);
                self.delay = Some(self.least);
            }
            Some(delay) if since <= self.least.div(2) => self.delay = Some(delay.div(2) + self.least.div(2)),
            Some(delay) if since < delay => self.delay = Some((delay.div(2) + since).min(at.rto)),
            // After a longer pause the peer has probably restarted from a small window.
            Some(_) if since > at.rto => self.quick = self.quick.max(self.quick_limit),
            Some(_) => {}
        }
        let raised = self.growth.arrived(len, held, at.echo);
        self.growth.fill(at.now, next);
        if raised && self.tells_growth && self.quick_limit > 0 {
            self.quick |= 1;
        }
    }

    /// Measures the length of the peer's full segments.
    fn measure(&mut self, len: u64, push: bool) {
        // No segment is longer than its IP packet.
        let len = len.min(u64::from(u32::MAX)) as u32;
        if len >= self.full {
            self.full = len.min(self.mss);
            self.pushed[0] |= push;
            return;
        }
        let tells = len >= TELLING || (len >= TELLING_UNPUSHED && !push);
        if tells && len == std::mem::replace(&mut self.short, len) {
            self.full = len;
            return;
        }
        self.pushed[1] |= self.pushed[0];
        self.pushed[0] = true;
    }

    /// Decides after an arrival: `waiting` bytes in order are not acknowledged; `next` is expected; `gap`: something
    /// has arrived beyond it; the buffer holds `held` bytes.
    pub fn decide(&mut self, at: Moment, waiting: u64, next: u64, gap: bool, held: u64) {
        if (waiting > u64::from(self.full) && self.is_open(held))
            || (self.quick > 0 && !self.converses)
            || self.least == Duration::ZERO
        {
            self.due = true;
        } else if gap {
            self.thin(at, next);
        } else {
            self.wait(at);
        }
    }

    /// Returns whether nothing keeps the acknowledgement of two segments until they are read.
    fn is_open(&mut self, held: u64) -> bool {
        if !self.growth.counts_memory() {
            return true;
        }
        let (open, little) = self.growth.is_open(held, self.full);
        self.quick = if little { 0 } else { self.quick };
        open
    }

    /// Makes many arrivals beyond one gap share acknowledgements (Linux's compressed SACK).
    fn thin(&mut self, at: Moment, next: u64) {
        if self.gap != next {
            (self.gap, self.prompt) = (next, 0);
        }
        if self.prompt < PROMPT_DUPLICATES || self.thinned >= MOST_THINNED {
            self.prompt = (self.prompt + 1).min(PROMPT_DUPLICATES);
            self.due = true;
            return;
        }
        self.thinned += 1;
        if self.thinned_until == Instant::FAR_FUTURE {
            let share = at.srtt.unwrap_or(Duration::ZERO).div(THINNING_SHARE);
            self.thinned_until = at.now + share.min(LONGEST_THINNING);
        }
    }

    fn wait(&mut self, at: Moment) {
        let mut delay = self.delay.unwrap_or(self.least);
        if delay > self.least {
            let longest =
                if self.converses || self.pushed[0] { LONGEST_DELAY } else { Duration::from_millis(500) };
            let round_trip = at.srtt.map_or(longest, |srtt| srtt.max(self.least));
            delay = delay.min(longest).min(round_trip);
        }
        delay = delay.min(LONGEST_DELAY.max(self.least));
        let deadline = if self.coarse { expiry(at.now, delay) } else { at.now + delay };
        if self.deadline <= at.now + delay.div(4) {
            // It would leave almost now anyway.
            self.due = true;
        } else {
            self.deadline = self.deadline.min(deadline);
        }
    }

    /// Handles a segment ahead of a gap: the arrived data ends `span` bytes beyond the expected byte; before it the
    /// buffer held `held` bytes.
    pub fn ahead(&mut self, span: u64, held: u64) {
        if self.growth.ahead(span, held) && self.tells_growth && self.quick_limit > 0 {
            self.quick |= 1;
        }
    }

    /// Handles a read of `len` bytes, which leaves `queued` to be read and `waiting` not acknowledged; data ahead of a
    /// gap ends `span` bytes beyond the expected byte.
    pub fn read(&mut self, len: u64, queued: u64, waiting: u64, span: u64) {
        self.growth.read(self.last_arrival, len, queued, span);
        let drained = queued == 0 && span == 0;
        let pushed = self.pushed[1] || (self.pushed[0] && !self.converses);
        self.due |= self.scheduled && (waiting > u64::from(self.full) || (pushed && drained));
    }
}
