//! The sending half: what may go out when, loss recovery and the retransmission timer.

use streamgauge_base::{Chunk, Duration, Instant};

use super::config::Config;
use super::congestion::{Ack, AnyController, Controller, Repair};
use super::pacing::Pacer;
use super::rto::Rto;
use super::scoreboard::{Learned, Scoreboard};
use super::send_buffer::SendBuffer;

/// A peer whose window never exceeds this gets segments as large as its window (RFC 1122's default MSS).
const SMALL_WINDOW: u64 = 536;

/// What the sender wants on the wire.
#[derive(Debug)]
pub struct Outgoing {
    pub seq: u64,
    pub payload: Chunk,
    pub fin: bool,
    /// It empties the send buffer.
    pub push: bool,
}

/// The peer has not answered for too long.
#[derive(Debug)]
pub struct GaveUp;

/// Proportional rate reduction (RFC 6937): meters one recovery so that the window reaches the threshold by
/// its end.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    /// Bytes outstanding when it began (RecoverFS).
    start: u64,
    /// Bytes that arrived since.
    delivered: u64,
    /// Bytes sent since.
    out: u64,
    window: u64,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Open,
    /// Fast recovery, until everything outstanding at its start is acknowledged.
    Recovery(Reduction),
    /// After a timeout, likewise.
    Loss,
}

/// Counts of one sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    pub segments: u64,
    pub bytes: u64,
    pub retransmits: u64,
    pub retransmitted_bytes: u64,
    pub timeouts: u64,
    pub recoveries: u64,
    pub probes: u64,
}

/// Sending state. Sequence numbers are 64 bits wide.
#[derive(Clone, Debug)]
pub struct Sender {
    buffer: SendBuffer,
    board: Scoreboard,
    controller: AnyController,
    rto: Rto,
    phase: Phase,
    /// The phase ends when `una` reaches it.
    phase_end: u64,
    una: u64,
    next: u64,
    /// Right edge of the peer's window.
    edge: u64,
    /// Largest window the peer has offered.
    max_window: u64,
    mss: u64,
    no_delay: bool,
    idle_restart: bool,
    max_retries: u32,
    /// End of the last segment shorter than `mss` (Minshall's test).
    small_end: u64,
    closing: bool,
    fin: Option<u64>,
    /// Retransmission timer, or persist timer while nothing is outstanding.
    timer: Instant,
    probe_due: bool,
    /// When something not acknowledged must be judged lost rather than reordered.
    judgement: Instant,
    /// Timeouts in a row without an answer.
    unanswered: u32,
    last_sent: Instant,
    /// Something went out since the sender last fell silent.
    burst: bool,
    /// The congestion window ended the last burst.
    limited: bool,
    /// Most bytes outstanding in the round trip that ends at `usage_end`.
    usage: u64,
    usage_end: u64,
    /// If the controller asks for it.
    pacer: Option<Box<Pacer>>,
    counts: Counts,
}

impl Sender {
    /// For a stream whose first byte has sequence number `start`.
    pub fn new(start: u64, config: &Config, now: Instant) -> Self {
        Sender {
            buffer: SendBuffer::new(start, config.send_buffer),
            board: Scoreboard::default(),
            controller: AnyController::new(config, config.initial_window),
            rto: Rto::new(config.min_rto, config.max_rto),
            phase: Phase::Open,
            phase_end: start,
            una: start,
            next: start,
            edge: start,
            max_window: 0,
            mss: u64::from(config.mss),
            no_delay: config.no_delay,
            idle_restart: config.mechanisms.idle_restart,
            max_retries: config.max_retries,
            small_end: start,
            closing: false,
            fin: None,
            timer: Instant::FAR_FUTURE,
            probe_due: false,
            judgement: Instant::FAR_FUTURE,
            unanswered: 0,
            last_sent: now,
            burst: false,
            limited: false,
            usage: 0,
            usage_end: start,
            pacer: None,
            counts: Counts::default(),
        }
    }

    /// The handshake is done: the peer takes bytes up to `edge`; `rtt` is what the handshake measured, if it
    /// was answered at the first try; `controller` replaces the one made before, if the handshake calls for
    /// another.
    pub fn open(
        &mut self,
        now: Instant,
        edge: u64,
        rtt: Option<Duration>,
        controller: Option<AnyController>,
        config: &Config,
    ) {
        self.offer(self.una, edge);
        self.last_sent = now;
        if let Some(rtt) = rtt {
            self.rto.sample(rtt);
        }
        if let Some(controller) = controller {
            self.controller = controller;
        }
        if self.controller.samples_rates() {
            self.board.sample_rates();
        }
        self.controller.on_open(now, rtt);
        if config.mechanisms.pacing && self.controller.pacing_rate().is_some() {
            self.pacer = Some(Box::new(Pacer::new(config.pacing_burst)));
        }
    }

    pub fn write(&mut self, chunk: Chunk) -> usize {
        if self.closing {
            return 0;
        }
        let unsent = self.buffer.end().saturating_sub(self.next);
        if unsent < self.mss && self.pipe() < self.window() && !self.board.waits_to_resend() {
            self.board.starve();
        }
        self.buffer.write(chunk)
    }
    pub fn writable(&self) -> u64 {
        if self.closing { 0 } else { self.buffer.room() }
    }
    pub fn close(&mut self) {
        self.closing = true;
    }
    /// The peer has acknowledged our FIN.
    pub fn finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.una > fin)
    }
    pub fn next(&self) -> u64 {
        self.next
    }
    pub fn una(&self) -> u64 {
        self.una
    }
    pub fn timer(&self) -> Instant {
        let wake = self.pacer.as_ref().map_or(Instant::FAR_FUTURE, |pacer| pacer.wake);
        self.timer.min(self.judgement).min(wake)
    }
    pub fn rto(&self) -> &Rto {
        &self.rto
    }
    pub fn controller(&self) -> &AnyController {
        &self.controller
    }
    pub fn counts(&self) -> Counts {
        self.counts
    }
    /// Bytes thought to be in the network.
    pub fn pipe(&self) -> u64 {
        self.board.pipe()
    }
    /// What is being repaired.
    pub fn repair(&self) -> Repair {
        match self.phase {
            Phase::Open => Repair::None,
            Phase::Recovery(_) => Repair::Recovery,
            Phase::Loss => Repair::Timeout,
        }
    }
    /// The congestion window in force.
    pub fn window(&self) -> u64 {
        match &self.phase {
            Phase::Recovery(reduction) if !self.controller.governs_recovery() => reduction.window,
            _ => self.controller.window(),
        }
    }

    /// Takes an acknowledgement: `edge` is the peer's right edge, `blocks` its SACK blocks, `echo` the round
    /// trip that its timestamp tells. True if a starved writer should be told of room.
    pub fn on_ack(
        &mut self,
        now: Instant,
        ack: u64,
        edge: u64,
        blocks: impl Iterator<Item = (u64, u64)> + Clone,
        echo: Duration,
    ) -> bool {
        if ack < self.una || ack > self.next {
            return false;
        }
        self.offer(ack, edge);
        let (prior_in_flight, prior_lost) = (self.pipe(), self.board.lost_ever());
        if self.board.is_empty() {
            self.unanswered = 0;
            let left = self.buffer.end().saturating_sub(self.next);
            if self.edge.saturating_sub(self.next) >= self.full().min(left) {
                // The window lets a segment out: what waits for it starts with a fresh timeout, as in Linux.
                self.rto.end_backoff();
            }
            return false;
        }
        let mut learned = Learned::default();
        let advanced = ack > self.una;
        let mut wake = false;
        if advanced {
            self.una = ack;
            self.unanswered = 0;
            self.board.acknowledge(ack, &mut learned);
            wake = self.buffer.release(ack);
        }
        let fresh = blocks.filter(|&(left, right)| left < right && right > ack && right <= self.next);
        if fresh.clone().next().is_some() {
            fresh.clone().for_each(|(left, right)| self.board.sack(left.max(ack), right, &mut learned));
            self.board.remember(fresh);
        }
        self.board.note_newest(now, self.rto.min_rtt(), &learned);
        let new_loss = self.judge(now);
        let rtt = self.measure(now, &learned, advanced, echo);
        self.recover(now, &learned, advanced && !new_loss);
        let lost = self.board.lost_ever() - prior_lost;
        let rate = self.board.rate_sample(now, self.rto.min_rtt());
        let tells = if self.controller.governs_recovery() {
            learned.delivered > 0 || lost > 0
        } else {
            advanced && !matches!(self.phase, Phase::Recovery(_))
        };
        if tells {
            self.controller.on_ack(&Ack {
                now,
                delivered: learned.delivered,
                lost,
                una: self.una,
                next: self.next,
                prior_in_flight,
                in_flight: self.pipe(),
                rtt,
                srtt: self.rto.srtt().unwrap_or(Duration::ZERO),
                min_rtt: self.rto.min_rtt(),
                window_limited: self.window_limited(),
                repair: self.repair(),
                rate,
                departs: self.pacer.as_ref().map_or(now, |pacer| pacer.next()),
            });
            if self.controller.limits_itself() {
                self.board.starve();
            }
        }
        if advanced {
            let idle = self.board.is_empty();
            self.timer = if idle { Instant::FAR_FUTURE } else { now + self.rto.timeout() };
        }
        wake
    }

    fn offer(&mut self, ack: u64, edge: u64) {
        self.edge = self.edge.max(edge);
        self.max_window = self.max_window.max(edge.saturating_sub(ack));
    }

    /// Payload of a full segment. Against a small window that is half of it, as in Linux, so that two can be
    /// on the way.
    fn full(&self) -> u64 {
        let bound = if self.max_window > SMALL_WINDOW { self.max_window / 2 } else { self.max_window };
        self.mss.min(bound.max(1))
    }

    /// Feeds the timeout; returns the round trip of the newest segment covered.
    fn measure(
        &mut self,
        now: Instant,
        learned: &Learned,
        advanced: bool,
        echo: Duration,
    ) -> Option<Duration> {
        match learned.sent {
            Some((first, last)) => {
                self.rto.sample(now - first);
                Some(now - last)
            }
            None => {
                // Karn: only the timestamp tells which copy was acknowledged.
                if advanced && learned.ambiguous {
                    self.rto.sample(echo);
                }
                None
            }
        }
    }

    /// Looks for losses; true if there are new ones. A recovery leaves no room for reordering (RFC 8985 section 6.2,
    /// step 4); before it, that is Linux's least: a quarter of the least round trip.
    fn judge(&mut self, now: Instant) -> bool {
        let window = match (&self.phase, self.rto.srtt()) {
            (Phase::Open, Some(srtt)) => self.rto.min_rtt().div(4).min(srtt.div(8)),
            _ => Duration::ZERO,
        };
        let new = self.board.judge(now, window);
        self.judgement = self.board.next_judgement(window);
        new
    }

    /// Moves between the phases and meters a recovery. `safe`: the cumulative acknowledgement moved and no
    /// new loss was seen, so that PRR may catch up (the slow start reduction bound).
    fn recover(&mut self, now: Instant, learned: &Learned, safe: bool) {
        if !matches!(self.phase, Phase::Open) && self.una >= self.phase_end {
            self.phase = Phase::Open;
        }
        if matches!(self.phase, Phase::Open) && self.board.lost() > 0 {
            self.controller.on_congestion_event(now);
            self.counts.recoveries += 1;
            self.phase_end = self.next;
            let start = self.board.outstanding().max(1);
            // The fast retransmit itself does not wait.
            let window = self.pipe() + self.mss;
            self.phase = Phase::Recovery(Reduction { start, delivered: 0, out: 0, window });
        }
        if learned.delivered == 0 {
            return;
        }
        let (pipe, ssthresh) = (self.pipe(), self.controller.ssthresh());
        if let Phase::Recovery(reduction) = &mut self.phase {
            reduction.delivered += learned.delivered;
            let mut send = if pipe > ssthresh {
                let target = u128::from(reduction.delivered) * u128::from(ssthresh);
                (target.div_ceil(u128::from(reduction.start)) as u64).saturating_sub(reduction.out)
            } else {
                // As Linux, and unlike the RFC's conservative bound: what has arrived may be replaced even where more
                // was sent before.
                let owed = reduction.delivered.saturating_sub(reduction.out).max(learned.delivered);
                let limit = if safe { owed + self.mss } else { owed };
                limit.min(ssthresh - pipe)
            };
            if reduction.out == 0 {
                send = send.max(self.mss);
            }
            reduction.window = pipe + send;
        }
    }

    /// The window, rather than the writer or the peer, holds the sender back (as Linux judges it: in slow
    /// start it may run to twice what was used).
    fn window_limited(&self) -> bool {
        let window = self.controller.window();
        self.limited || (window < self.controller.ssthresh() && window < 2 * self.usage)
    }

    fn note_usage(&mut self, blocked: bool) {
        if !std::mem::take(&mut self.burst) {
            return;
        }
        let outstanding = self.board.outstanding();
        let limited = blocked || self.pipe() + self.mss > self.window();
        if limited || self.una >= self.usage_end || (!self.limited && outstanding > self.usage) {
            self.limited = limited;
            self.usage = outstanding;
            self.usage_end = self.next;
        }
    }

    /// The timers, those that have expired.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), GaveUp> {
        if now >= self.judgement {
            self.judge(now);
            self.recover(now, &Learned::default(), false);
        }
        if now < self.timer {
            return Ok(());
        }
        self.timer = Instant::FAR_FUTURE;
        if self.unanswered >= self.max_retries {
            return Err(GaveUp);
        }
        self.unanswered += 1;
        self.rto.back_off();
        if self.board.is_empty() {
            // The window may have opened without the peer having a reason to ask for more.
            self.probe_due = self.next < self.buffer.end();
            return Ok(());
        }
        let repeated = matches!(self.phase, Phase::Loss) && self.unanswered > 1;
        self.controller.on_timeout(now, repeated);
        if let Some(pacer) = &mut self.pacer {
            pacer.expire(now);
        }
        self.board.lose_all();
        self.judgement = Instant::FAR_FUTURE;
        self.phase = Phase::Loss;
        self.phase_end = self.next;
        self.counts.timeouts += 1;
        self.timer = now + self.rto.timeout();
        Ok(())
    }

    /// True once after a persist timeout: send an empty segment below the window, which the peer must answer.
    pub fn take_probe(&mut self) -> bool {
        let due = std::mem::take(&mut self.probe_due);
        self.counts.probes += u64::from(due);
        due
    }

    /// The next segment to send at `now`.
    pub fn poll(&mut self, now: Instant) -> Option<Outgoing> {
        if let Some(pacer) = &mut self.pacer {
            pacer.wake = Instant::FAR_FUTURE;
        }
        let outgoing = match self.resend(now) {
            Ok(None) => self.send_new(now),
            other => other,
        };
        match outgoing {
            Ok(Some(outgoing)) => return Some(outgoing),
            Ok(None) => self.note_usage(false),
            Err(Blocked::Window) => self.note_usage(true),
            Err(Blocked::Until(at)) => {
                if let Some(pacer) = &mut self.pacer {
                    pacer.wake = at;
                }
                self.note_usage(false);
            }
        }
        None
    }

    /// Bytes per second at which segments leave, if they are paced.
    pub fn pacing_rate(&self) -> Option<u64> {
        self.pacer.as_ref().and_then(|_| self.controller.pacing_rate())
    }

    /// May the segment of `len` bytes at `seq` leave `now`? If so it does.
    fn pace(&mut self, now: Instant, seq: u64, len: u64) -> Result<(), Blocked> {
        if let Some(pacer) = &self.pacer {
            let at = pacer.may_leave(now, seq);
            if at > now {
                return Err(Blocked::Until(at));
            }
        }
        if self.pipe() == 0 {
            let since = now.saturating_since(self.last_sent);
            self.controller.on_start(now, since, self.next, self.board.is_app_limited());
        }
        // As in Linux, no super-segment takes more than half of the window.
        let most = self.window() / 2 / self.mss;
        if let (Some(pacer), Some(rate)) = (&mut self.pacer, self.controller.pacing_rate()) {
            let bytes = pacer.burst_bytes(rate, self.rto.min_rtt());
            let burst = (bytes / self.mss).max(self.controller.least_burst()).min(most);
            pacer.leave(now, seq, len, rate, burst);
        }
        Ok(())
    }

    /// True if the congestion window has room for `len` bytes; a lone segment always goes.
    fn admits(&self, len: u64) -> bool {
        let pipe = self.pipe();
        pipe == 0 || pipe + len <= self.window()
    }

    fn resend(&mut self, now: Instant) -> Result<Option<Outgoing>, Blocked> {
        if self.board.lost() == 0 {
            return Ok(None);
        }
        let Some((sent, oldest)) = self.board.next_lost() else { return Ok(None) };
        let fin = sent.has_fin();
        let len = sent.len - u32::from(fin);
        if !self.admits(u64::from(len)) {
            return Err(Blocked::Window);
        }
        self.pace(now, sent.start, u64::from(sent.len))?;
        self.board.resent(now);
        self.counts.retransmits += 1;
        self.counts.retransmitted_bytes += u64::from(len);
        if oldest {
            self.timer = now + self.rto.timeout();
        }
        self.account(now, len);
        let push = sent.start + u64::from(len) == self.buffer.end();
        Ok(Some(Outgoing { seq: sent.start, payload: self.buffer.slice(sent.start, len), fin, push }))
    }

    fn send_new(&mut self, now: Instant) -> Result<Option<Outgoing>, Blocked> {
        let left = self.buffer.end().saturating_sub(self.next);
        if left == 0 && (!self.closing || self.fin.is_some()) {
            return Ok(None);
        }
        let usable = self.edge.saturating_sub(self.next);
        let full = self.full();
        let len = left.min(usable).min(full);
        if len < left && len < full {
            // The peer's window would cut the segment short. Against silly windows that waits for
            // acknowledgements, or for the persist timer (RFC 9293 section 3.8.6.2.1).
            let probe = len > 0 && self.probe_due;
            if self.board.is_empty() && !probe && self.timer == Instant::FAR_FUTURE {
                self.timer = now + self.rto.timeout();
            }
            if !probe {
                return Ok(None);
            }
        }
        if len == left
            && len < full
            && len > 0
            && !self.no_delay
            && !self.closing
            && self.small_end > self.una
        {
            // Nagle's test in Minshall's form: one short segment at a time.
            return Ok(None);
        }
        if self.board.is_empty() && self.idle_restart {
            let (idle, rto) = (now.saturating_since(self.last_sent), self.rto.timeout());
            if idle > rto {
                self.controller.on_idle(now, idle, rto);
            }
        }
        if len > 0 && !self.admits(len) {
            return Err(Blocked::Window);
        }
        let fin = self.closing && len == left;
        let seq = self.next;
        self.pace(now, seq, len)?;
        if self.board.is_empty() {
            self.timer = now + self.rto.timeout();
        }
        self.board.push(seq, len as u32 + u32::from(fin), fin, now);
        self.next += len + u64::from(fin);
        if fin {
            self.fin = Some(seq + len);
        }
        if len < full {
            self.small_end = self.next;
        }
        self.probe_due = false;
        self.account(now, len as u32);
        Ok(Some(Outgoing {
            seq,
            payload: self.buffer.slice(seq, len as u32),
            fin,
            push: len == left && len > 0,
        }))
    }

    fn account(&mut self, now: Instant, len: u32) {
        self.counts.segments += 1;
        self.counts.bytes += u64::from(len);
        self.last_sent = now;
        self.burst = true;
        if let Phase::Recovery(reduction) = &mut self.phase {
            reduction.out += u64::from(len);
        }
    }
}

/// Why what could be sent is not.
enum Blocked {
    /// The congestion window is full.
    Window,
    /// Its time has not come.
    Until(Instant),
}
