//! The sending half: it decides which segment leaves when. The handling of acknowledgements and timers is in `recovery`
//! and `timers`.

mod departures;
mod recovery;
mod super_segment;
mod timers;
mod write_queue;

use streamgauge_base::{Chunk, Duration, Instant};

use super::accurate_ecn::MarksReported;
use super::clock::stamp;
use super::config::Config;
use super::congestion::{Controller, Marks, Repair};
use super::mechanisms::Mechanisms;
use super::pacing::Pacer;
use super::prr::Reduction;
use super::rto::Rto;
use super::scoreboard::Scoreboard;
use super::send_buffer::{SendBuffer, View};
use super::seq::Maybe;
use super::undo::Undo;
pub use recovery::Arrival;
use recovery::Resend;
use timers::{LossProbe, Purpose, Timer};
use write_queue::WriteQueue;

/// A peer that never offers a larger window than this gets segments as large as its window (RFC 1122's default MSS).
const SMALL_WINDOW: u64 = 536;

/// A segment that the sender emits.
#[derive(Debug)]
pub struct Outgoing {
    pub seq: u64,
    pub payload: Chunk,
    pub fin: bool,
    /// Whether it empties the send buffer.
    pub push: bool,
}

/// The peer has not answered for too long.
#[derive(Debug)]
pub struct GaveUp;

/// The sender's state of loss repair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Nothing.
    Open,
    /// Its window is being reduced although nothing was lost (Linux's state "CWR"), until something sent after the
    /// start is acknowledged.
    Reduced,
    /// Fast recovery, until everything outstanding at its start is acknowledged.
    Recovery,
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
    pub timeouts: u32,
    pub recoveries: u32,
    pub probes: u32,
    pub loss_probes: u32,
    pub undos: u32,
    pub ecn_reductions: u32,
}

/// Sending state. Sequence numbers are 64 bits wide.
#[derive(Debug)]
pub struct Sender {
    pub(super) buffer: SendBuffer,
    pub(super) board: Scoreboard,
    pub(super) controller: Box<dyn Controller>,
    pub(super) rto: Rto,
    pub(super) phase: Phase,
    /// The phase ends when `una` reaches it.
    pub(super) phase_end: u64,
    /// The reduction of fast recovery, or one without losses.
    pub(super) reduction: Reduction,
    pub(super) undo: Undo,
    /// Whether a timeout may yet prove spurious by its first answers.
    pub(super) frto: bool,
    pub(super) resend_mode: Resend,
    /// Whether the next segment does not ask the congestion window.
    pub(super) forced: bool,
    pub(super) loss_probe: Option<LossProbe>,
    pub(super) loss_probe_due: bool,
    /// Segments that the peer has reported as duplicates.
    pub(super) duplicates: u64,
    pub(super) una: u64,
    pub(super) next: u64,
    /// Right edge of the peer's window.
    pub(super) edge: u64,
    /// Largest window the peer has offered.
    pub(super) max_window: u64,
    pub(super) mss: u64,
    pub(super) mechanisms: Mechanisms,
    no_delay: bool,
    /// Written data as Linux 6.1 keeps it, without `whole_segments`.
    writes: Option<Box<WriteQueue>>,
    pub(super) min_rto: Duration,
    pub(super) max_retries: u32,
    /// End of the last segment shorter than `mss` (Minshall's test).
    small_end: u64,
    pub(super) closing: bool,
    fin: Maybe,
    pub(super) timer: Timer,
    pub(super) probe_due: bool,
    /// Timeouts in a row without an answer.
    pub(super) unanswered: u32,
    pub(super) last_sent: Instant,
    /// Whether new data was sent since the sender last fell silent.
    pub(super) burst: bool,
    /// Whether the congestion window ended the last burst.
    limited: bool,
    /// Most segments outstanding in the round trip that ends at `usage_end`.
    usage: u32,
    usage_end: u64,
    /// Whether the window was reduced, and the peer that echoes marks is not informed of it yet (RFC 3168 section
    /// 6.1.2).
    pub(super) tells_reduced: bool,
    /// Segments of the super-segment that is leaving, and how many it may have.
    pub(super) leaving: u32,
    pub(super) most_leaving: u32,
    /// The peer's count of marks (RFC 9768).
    pub(super) reported: MarksReported,
    /// Marks that the controller has not received.
    pub(super) marked: u32,
    /// Whether the controller answers to counts of marks.
    pub(super) counts_marks: bool,
    /// If the controller asks for it.
    pub(super) pacer: Option<Box<Pacer>>,
    pub(super) counts: Counts,
}

impl Sender {
    /// Makes the sender of a stream that starts at sequence number `start`.
    pub fn new(start: u64, config: &Config, controller: Box<dyn Controller>) -> Self {
        Sender {
            buffer: SendBuffer::new(start, config),
            board: Scoreboard::new(config.mss),
            controller,
            rto: Rto::new(config.min_rto, config.max_rto),
            phase: Phase::Open,
            phase_end: start,
            reduction: Reduction::default(),
            undo: Undo::default(),
            frto: false,
            resend_mode: Resend::Lost,
            forced: false,
            loss_probe: None,
            loss_probe_due: false,
            duplicates: 0,
            una: start,
            next: start,
            edge: start,
            max_window: 0,
            mss: u64::from(config.mss),
            mechanisms: config.mechanisms,
            no_delay: config.no_delay,
            writes: (!config.mechanisms.whole_segments).then(|| Box::new(WriteQueue::new(start, config))),
            min_rto: config.min_rto,
            max_retries: config.max_retries,
            small_end: start,
            closing: false,
            fin: Maybe::NONE,
            timer: Timer::new(config.coarse_timers),
            probe_due: false,
            unanswered: 0,
            last_sent: Instant::ZERO,
            burst: false,
            limited: false,
            usage: 0,
            usage_end: start,
            tells_reduced: false,
            leaving: 0,
            most_leaving: 0,
            reported: MarksReported::default(),
            marked: 0,
            counts_marks: config.congestion.marks() != Marks::Echo,
            pacer: None,
            counts: Counts::default(),
        }
    }

    /// Completes the handshake: the peer accepts bytes up to `edge`; `rtt` is the handshake's measurement, if it was
    /// answered at the first try; `controller` replaces the one made before, if the handshake calls for another.
    pub fn open(
        &mut self,
        now: Instant,
        edge: u64,
        rtt: Option<Duration>,
        controller: Option<Box<dyn Controller>>,
        config: &Config,
    ) {
        self.offer(self.una, edge);
        self.last_sent = now;
        if let Some(rtt) = rtt {
            self.rto.note_least(rtt);
            self.rto.sample(rtt, self.una, self.next);
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
        self.buffer.write(chunk, self.view())
    }
    pub fn writable(&self) -> u64 {
        if self.closing { 0 } else { self.buffer.room(self.view()) }
    }
    fn view(&self) -> View {
        View {
            next: self.next,
            outstanding: self.board.outstanding().into(),
            max_window: self.max_window,
            pipe: self.pipe(),
            window: self.window(),
        }
    }
    /// Returns, after an acknowledgement, whether to wake a starved writer because there is room.
    pub fn wakes_writer(&mut self) -> bool {
        self.buffer.wakes(self.view())
    }
    pub fn close(&mut self) {
        self.closing = true;
    }
    /// Returns whether a FIN has been sent.
    #[inline]
    pub fn fin_sent(&self) -> bool {
        self.fin.get().is_some()
    }
    /// Returns whether the peer has acknowledged our FIN.
    #[inline]
    pub fn finished(&self) -> bool {
        self.fin.get().is_some_and(|fin| self.una > fin)
    }
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }
    #[inline]
    pub fn una(&self) -> u64 {
        self.una
    }
    #[inline]
    pub fn timer(&self) -> Instant {
        let wake = self.pacer.as_ref().map_or(Instant::FAR_FUTURE, |pacer| pacer.wake);
        self.timer.at.min(wake)
    }
    #[inline]
    pub fn rto(&self) -> &Rto {
        &self.rto
    }
    pub fn controller(&self) -> &dyn Controller {
        self.controller.as_ref()
    }
    pub fn counts(&self) -> Counts {
        self.counts
    }
    /// Returns the bytes thought to be in the network.
    #[inline]
    pub fn pipe(&self) -> u64 {
        self.board.pipe()
    }
    /// Returns the kind of repair in progress.
    pub fn repair(&self) -> Repair {
        match self.phase {
            Phase::Open | Phase::Reduced => Repair::None,
            Phase::Recovery => Repair::Recovery,
            Phase::Loss => Repair::Timeout,
        }
    }
    /// Returns the congestion window in force.
    #[inline]
    pub fn window(&self) -> u64 {
        let metered = matches!(self.phase, Phase::Recovery | Phase::Reduced)
            && self.mechanisms.prr
            && !self.controller.governs_recovery();
        if metered { u64::from(self.reduction.window()) * self.mss } else { self.controller.window() }
    }

    /// Handles the peer's window, which ends at `edge`; true if that is more than before.
    pub(super) fn offer(&mut self, ack: u64, edge: u64) -> bool {
        let more = edge > self.edge;
        self.edge = self.edge.max(edge);
        self.max_window = self.max_window.max(edge.saturating_sub(ack));
        more
    }

    /// Returns the payload of a full segment. Against a small window that is half of it, as in Linux, so that two can
    /// be on the way.
    pub(super) fn full(&self) -> u64 {
        let bound = if self.max_window > SMALL_WINDOW { self.max_window / 2 } else { self.max_window };
        self.mss.min(bound.max(1))
    }

    /// Returns whether the window, rather than the writer or the peer, holds the sender back (as Linux judges it: in
    /// slow start it may grow to twice the used part).
    pub(super) fn window_limited(&self) -> bool {
        let window = self.controller.window();
        self.limited || (window < self.controller.ssthresh() && window < 2 * self.mss * u64::from(self.usage))
    }

    /// Notes that the sender falls silent; `blocked`: by its congestion window.
    fn end_burst(&mut self, now: Instant, blocked: bool) {
        if let Some(writes) = &mut self.writes {
            writes.rests();
        }
        let sent = std::mem::take(&mut self.burst);
        if !sent && !blocked {
            return;
        }
        let outstanding = self.board.outstanding();
        let limited = blocked || self.pipe() + self.mss > self.window();
        if limited || self.una >= self.usage_end || (!self.limited && outstanding > self.usage) {
            self.limited = limited;
            self.usage = outstanding;
            self.usage_end = self.next;
        }
        if sent {
            self.schedule_loss_probe(now, false);
        }
    }

    /// Returns whether the FIN has not been sent.
    pub(super) fn fin_waits(&self) -> bool {
        self.closing && self.fin.get().is_none()
    }

    /// Returns whether there is something new to send, and the peer's window has room for it.
    pub(super) fn has_new(&self) -> bool {
        self.next < self.buffer.end() && self.next < self.edge
    }

    /// Returns true once after a persist timeout: send an empty segment below the window, which the peer must answer.
    pub fn take_probe(&mut self) -> bool {
        let due = std::mem::take(&mut self.probe_due);
        self.counts.probes += u32::from(due);
        due
    }

    /// Returns true once after each reduction: the next new segment informs the peer.
    pub fn take_reduced(&mut self) -> bool {
        std::mem::take(&mut self.tells_reduced)
    }

    /// Returns the next segment to send at `now`.
    pub fn poll(&mut self, now: Instant) -> Option<Outgoing> {
        if let Some(pacer) = &mut self.pacer {
            pacer.wake = Instant::FAR_FUTURE;
        }
        if std::mem::take(&mut self.loss_probe_due)
            && let Some(outgoing) = self.send_loss_probe(now)
        {
            return Some(outgoing);
        }
        let mut outgoing = self.send(now);
        while !matches!(outgoing, Ok(Some(_))) && self.writes_on() {
            outgoing = self.send(now);
        }
        match outgoing {
            Ok(Some(outgoing)) => return Some(outgoing),
            Ok(None) => self.end_burst(now, false),
            Err(Blocked::Window) => self.end_burst(now, true),
            Err(Blocked::Deferred) => self.end_burst(now, false),
            Err(Blocked::Until(at)) => {
                if let Some(pacer) = &mut self.pacer {
                    pacer.wake = at;
                }
                self.end_burst(now, false);
            }
        }
        None
    }

    /// Sends a lost or a new segment.
    fn send(&mut self, now: Instant) -> Result<Option<Outgoing>, Blocked> {
        match self.resend_mode {
            Resend::Lost => match self.resend(now) {
                Ok(None) => self.send_new(now),
                other => other,
            },
            Resend::Nothing => self.send_new(now),
            Resend::NewFirst => match self.send_new(now) {
                Ok(None) | Err(Blocked::Window) if self.next <= self.phase_end => {
                    (self.resend_mode, self.frto) = (Resend::Lost, false);
                    self.resend(now)
                }
                other => other,
            },
        }
    }

    /// Returns whether the congestion window has room for a segment; a lone one always leaves.
    pub(super) fn admits(&self) -> bool {
        let pipe = self.pipe();
        pipe == 0 || pipe + self.mss <= self.window() || self.forced
    }

    /// Sends a segment that may reveal a lost tail: new data if there is any and the peer has room, else the last
    /// segment again (RFC 8985 section 7.3).
    fn send_loss_probe(&mut self, now: Instant) -> Option<Outgoing> {
        self.forced = true;
        let new = self.send_new(now);
        self.forced = false;
        if let Ok(Some(outgoing)) = new {
            self.loss_probe_sent(now, false);
            return Some(outgoing);
        }
        let last = *self.board.last()?;
        self.board.probed(now);
        let outgoing = self.repeat(now, last.start, last.len, last.has_fin());
        self.loss_probe_sent(now, true);
        Some(outgoing)
    }

    /// Sends an earlier range again.
    fn repeat(&mut self, now: Instant, start: u64, len: u32, fin: bool) -> Outgoing {
        let len = len - u32::from(fin);
        self.counts.retransmits += 1;
        self.counts.retransmitted_bytes += u64::from(len);
        self.account(now, len);
        let end = start + u64::from(len);
        if let Some(writes) = &mut self.writes {
            writes.repeats(start, end);
        }
        let push = end == self.buffer.end();
        Outgoing { seq: start, payload: self.buffer.slice(start, len), fin, push }
    }

    fn resend(&mut self, now: Instant) -> Result<Option<Outgoing>, Blocked> {
        if self.board.lost() == 0 {
            return Ok(None);
        }
        let Some((sent, oldest)) = self.board.next_lost() else { return Ok(None) };
        if !self.admits() {
            return Err(Blocked::Window);
        }
        self.pace(now, sent.start, u64::from(sent.len))?;
        self.forced = false;
        self.board.resent(now);
        self.undo.resent(stamp(now));
        self.meter();
        if oldest && self.timer.purpose != Purpose::Reordering {
            self.timer.set(now, self.timeout(), Purpose::Timeout);
        }
        Ok(Some(self.repeat(now, sent.start, sent.len, sent.has_fin())))
    }

    /// Counts a segment that is sent during a reduction.
    fn meter(&mut self) {
        if matches!(self.phase, Phase::Recovery | Phase::Reduced) {
            self.reduction.sent();
        }
    }

    fn send_new(&mut self, now: Instant) -> Result<Option<Outgoing>, Blocked> {
        let left = self.waiting();
        let all = self.next + left >= self.buffer.end();
        if left == 0 && (!all || !self.closing || self.fin.get().is_some()) {
            return Ok(None);
        }
        let usable = self.edge.saturating_sub(self.next);
        let full = self.full();
        let block = self.in_block();
        let len = left.min(usable).min(full).min(block);
        if len < left && len < full && len < block && !self.may_cut(len) {
            // The peer's window would cut the segment short. Against silly windows that waits for
            // acknowledgements, or for the persist timer (RFC 9293 section 3.8.6.2.1).
            let probe = len > 0 && self.probe_due;
            if self.board.is_empty() && !probe && self.timer.purpose == Purpose::Nothing {
                self.await_window(now);
            }
            if !probe {
                return Ok(None);
            }
        }
        if len == left
            && len < full
            && len > 0
            && !self.no_delay
            && !self.forced
            && !self.closing
            && self.small_end > self.una
        {
            // Nagle's test in Minshall's form: one short segment at a time.
            return Ok(None);
        }
        if self.board.is_empty() && self.mechanisms.idle_restart {
            let (idle, rto) = (now.saturating_since(self.last_sent), self.timeout());
            if idle > rto {
                self.controller.on_idle(now, idle, rto);
            }
        }
        if len > 0 {
            if !self.admits() {
                return Err(Blocked::Window);
            }
            self.defers(now)?;
        }
        let fin = self.closing && all && len == left;
        let seq = self.next;
        self.pace(now, seq, len)?;
        let alone = self.board.is_empty();
        self.board.push(seq, len as u32 + u32::from(fin), fin, now);
        if alone || self.timer.purpose == Purpose::LossProbe {
            self.rearm_timeout(now);
        }
        self.next += len + u64::from(fin);
        if fin {
            self.fin = Maybe::some(seq + len);
        }
        if len < full {
            self.small_end = self.next;
        }
        self.probe_due = false;
        let ends = self.ends_super_segment(full);
        let last = self.leaving == self.most_leaving;
        let pushes = self.writes.as_mut().is_some_and(|writes| writes.takes(seq + len, last));
        self.burst = true;
        self.meter();
        self.account(now, len as u32);
        Ok(Some(Outgoing {
            seq,
            payload: self.buffer.slice(seq, len as u32),
            fin,
            push: (all && len == left && len > 0) || ends || pushes,
        }))
    }

    fn account(&mut self, now: Instant, len: u32) {
        self.counts.segments += 1;
        self.counts.bytes += u64::from(len);
        self.last_sent = now;
    }
}

/// Why data that could be sent is held.
pub(super) enum Blocked {
    /// The congestion window is full.
    Window,
    /// More will soon be sent with it; the congestion window does not hold it back.
    Deferred,
    /// Its time has not been reached.
    Until(Instant),
}
