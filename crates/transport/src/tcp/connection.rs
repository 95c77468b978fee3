//! One end of a connection.

mod reset;

use std::sync::Arc;

use streamgauge_base::{Chunk, Duration, Ecn, Instant};

use super::accurate_ecn::{ace_bits, agrees, handshake_bits, header_bits};
use super::ack_policy::Moment;
use super::clock::stamp;
use super::config::{Config, EcnMode};
use super::congestion::CongestionControl;
use super::receiving::Receiving;
use super::segment::{SackBlocks, Segment, Timestamps, flags};
use super::sender::{Arrival, Sender};
use super::sending::{Own, Sending};
use super::seq;
use super::stats::Stats;

use reset::Reset;
pub use reset::reset_without_connection;

/// Before the first SYN is given up for lost (RFC 6298 section 2.1); doubles each time.
const SYN_TIMEOUT: Duration = Duration::from_secs(1);

/// Events of a connection. Each is reported once until it becomes true again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// The handshake is done.
    Opened,
    /// There are bytes to read.
    Readable,
    /// A write that was cut short may continue.
    Writable,
    /// The peer will send no more, or the connection has failed. After `Finished` there may still be bytes to read, and
    /// this end may continue to write.
    Closed(CloseReason),
}

/// Why a stream ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// The peer closed and every byte has arrived.
    Finished,
    /// The peer reset the connection.
    Reset,
    /// The peer did not answer.
    TimedOut,
    /// This end called `abort`.
    Aborted,
}

/// The feedback of marks that both ends have agreed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Feedback {
    /// None: no ECN.
    None,
    /// An echo until it is answered (RFC 3168).
    Echo,
    /// Counts (RFC 9768).
    Counts,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Listen,
    SynSent,
    SynReceived,
    /// Open in at least one direction; the halves record which.
    Established,
    Closed,
}

/// Events that wait for `poll_event`.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    opened: bool,
    readable: bool,
    writable: bool,
    closed: Option<CloseReason>,
}

/// One end of a TCP connection.
///
/// After every `handle`, `handle_timeout`, `write`, `read` and `close`, call [`poll_transmit`](Self::poll_transmit)
/// until it returns `None`, then [`poll_event`](Self::poll_event) likewise, then ask
/// [`poll_timeout`](Self::poll_timeout). Time never decreases between calls.
#[derive(Debug)]
pub struct Connection {
    own: Own,
    mss: u32,
    state: State,
    sender: Sending,
    receiver: Receiving,
    /// Our SYN's sequence number.
    syn: u64,
    /// Until the connection is open.
    handshake: Option<Box<Handshake>>,
    /// The reset for a peer with a connection that is void.
    reset: Option<Reset>,
    ecn: Feedback,
    /// The peer finished before we did.
    passive: bool,
    /// The peer's clock, to be echoed.
    peer_clock: u32,
    pending: Pending,
}

/// Our SYN.
#[derive(Clone, Copy, Debug)]
struct Handshake {
    due: bool,
    sent: Instant,
    tries: u32,
    timer: Instant,
}

impl Connection {
    /// Makes the end that opens: its SYN waits in `poll_transmit`.
    pub fn connect(config: impl Into<Arc<Config>>, now: Instant) -> Self {
        let mut connection = Connection::new(config.into(), State::SynSent, now);
        connection.demand_syn();
        connection
    }

    /// Makes the end that waits for a SYN.
    pub fn listen(config: impl Into<Arc<Config>>) -> Self {
        Connection::new(config.into(), State::Listen, Instant::ZERO)
    }

    fn new(config: Arc<Config>, state: State, now: Instant) -> Self {
        assert!(config.mss > 0 && config.receive_window > 0 && config.send_buffer != Some(0), "{config:?}");
        let syn = seq::first(config.initial_sequence);
        Connection {
            sender: Sending::new(syn + 1),
            receiver: Receiving::Unknown,
            state,
            syn,
            handshake: Some(Box::new(Handshake {
                due: false,
                sent: now,
                tries: 0,
                timer: Instant::FAR_FUTURE,
            })),
            reset: None,
            ecn: Feedback::None,
            passive: false,
            peer_clock: 0,
            pending: Pending::default(),
            mss: config.mss,
            own: Own { seed: config.seed, shared: config },
        }
    }

    /// Gives a connection that has done nothing yet an initial sequence number and a seed of its own, in place of
    /// those of its configuration, which others may share.
    #[must_use]
    pub fn numbered(mut self, initial_sequence: u32, seed: u64) -> Self {
        self.syn = seq::first(initial_sequence);
        self.sender = Sending::new(self.syn + 1);
        self.own.seed = seed;
        self
    }

    /// Offers bytes and returns how many the send buffer accepted; [`ConnectionEvent::Writable`] follows if not all.
    /// Bytes written before the connection is open wait for it. After `close` none is accepted.
    pub fn write(&mut self, chunk: Chunk) -> usize {
        if self.state == State::Closed { 0 } else { self.sender.activate(&self.own).write(chunk) }
    }
    /// Returns how many bytes `write` would accept now.
    pub fn writable(&self) -> usize {
        if self.state == State::Closed { 0 } else { self.sender.writable(&self.own) as usize }
    }
    /// Reads up to `max` bytes; `None` if there is nothing. May return fewer than there are: read until
    /// `None`.
    pub fn read(&mut self, max: usize) -> Option<Chunk> {
        self.receiver.read(max)
    }
    /// Returns the bytes that can be read now.
    pub fn readable(&self) -> usize {
        self.receiver.readable() as usize
    }
    /// Finishes our direction: a FIN follows the written data.
    pub fn close(&mut self) {
        self.sender.activate(&self.own).close();
    }
    /// Ends the connection at once (RFC 9293 section 3.10.5): data that waits to be sent, or sent again, never is, and
    /// the peer gets a RST, unless both ends have finished already. Later segments are answered by a RST too.
    pub fn abort(&mut self) {
        if self.state != State::Closed {
            let told = match self.state {
                State::Established => !(self.sender.fin_sent() && self.receiver.finished()),
                State::SynReceived => true,
                State::Listen | State::SynSent | State::Closed => false,
            };
            self.reset = told.then_some(Reset::Abort);
            self.fail(CloseReason::Aborted);
        }
    }
    /// Returns whether the handshake is done and the connection has not failed.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.state == State::Established
    }
    /// Returns whether both directions are finished, or the connection has failed. A finished end still answers a peer
    /// that missed its last acknowledgement, so keep it while segments may be on the way.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.state == State::Closed || self.is_finished()
    }

    /// Returns whether both directions are finished and ours was not the later: RFC 9293's TIME-WAIT, in which it
    /// answers a peer that missed its last acknowledgement.
    pub fn is_waiting(&self) -> bool {
        self.state == State::Established && self.is_finished() && !self.passive
    }

    /// Returns the connection's next event; call until `None`.
    #[inline]
    pub fn poll_event(&mut self) -> Option<ConnectionEvent> {
        let Pending { opened, readable, writable, closed } = self.pending;
        if !(opened | readable | writable) && closed.is_none() { None } else { self.next_event() }
    }

    fn next_event(&mut self) -> Option<ConnectionEvent> {
        let pending = &mut self.pending;
        if std::mem::take(&mut pending.opened) {
            Some(ConnectionEvent::Opened)
        } else if std::mem::take(&mut pending.readable) {
            Some(ConnectionEvent::Readable)
        } else if std::mem::take(&mut pending.writable) {
            Some(ConnectionEvent::Writable)
        } else {
            pending.closed.take().map(ConnectionEvent::Closed)
        }
    }

    /// Returns when `handle_timeout` must be called; `None` for never. Calling it earlier does no harm.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let at = match self.state {
            State::Closed | State::Listen => Instant::FAR_FUTURE,
            State::SynSent | State::SynReceived => {
                self.handshake.as_ref().map_or(Instant::FAR_FUTURE, |handshake| handshake.timer)
            }
            State::Established => self.receiver.deadline().min(self.sender.timer()),
        };
        (at != Instant::FAR_FUTURE).then_some(at)
    }

    /// Performs all work due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            State::Closed | State::Listen => {}
            State::SynSent | State::SynReceived => {
                let Some(handshake) = self.handshake.as_mut().filter(|handshake| now >= handshake.timer)
                else {
                    return;
                };
                handshake.timer = Instant::FAR_FUTURE;
                if handshake.tries > self.own.shared.max_syn_retries {
                    self.fail(CloseReason::TimedOut);
                } else {
                    handshake.due = true;
                }
            }
            State::Established => {
                self.receiver.handle_timeout(now, self.sender.timeout());
                if self.sender.active().is_some_and(|sender| sender.handle_timeout(now).is_err()) {
                    self.fail(CloseReason::TimedOut);
                }
            }
        }
    }

    /// Handles a segment from the peer.
    pub fn handle(&mut self, now: Instant, segment: &Segment) {
        if segment.has(flags::RST) {
            if !matches!(self.state, State::Closed | State::Listen) {
                self.fail(CloseReason::Reset);
            }
            return;
        }
        match self.state {
            State::Closed => self.reset = Some(Reset::answer(segment)),
            State::Listen => {
                if segment.has(flags::SYN) && !segment.has(flags::ACK) {
                    self.ecn = self.agree_to_syn(segment);
                    self.accept_syn(segment);
                    self.state = State::SynReceived;
                    self.demand_syn();
                }
            }
            State::SynSent => {
                if segment.has(flags::SYN | flags::ACK) && segment.ack == (self.syn + 1) as u32 {
                    self.ecn = self.agree_to_answer(segment);
                    self.accept_syn(segment);
                    self.established(now, segment);
                    self.receiver.demand_ack();
                }
            }
            State::SynReceived => {
                if segment.has(flags::SYN) {
                    self.demand_syn();
                } else if segment.has(flags::ACK) && segment.ack == (self.syn + 1) as u32 {
                    self.established(now, segment);
                    self.transfer(now, segment);
                }
            }
            State::Established => {
                if segment.has(flags::SYN) {
                    // Our acknowledgement of the peer's SYN was lost.
                    self.receiver.demand_ack();
                } else {
                    self.transfer(now, segment);
                }
            }
        }
    }

    /// Returns the feedback that a SYN asks for and this end supports (RFC 9768 section 3.1.1).
    fn agree_to_syn(&self, syn: &Segment) -> Feedback {
        let mode = self.own.shared.ecn;
        match ace_bits(syn.ae, syn.flags) {
            0b111 if mode == EcnMode::L4s => Feedback::Counts,
            // A server that cannot count ignores AE.
            0b111 | 0b011 if mode != EcnMode::Off => Feedback::Echo,
            _ => Feedback::None,
        }
    }

    /// Returns the feedback that the answer to our SYN agrees to.
    fn agree_to_answer(&self, answer: &Segment) -> Feedback {
        let (mode, bits) = (self.own.shared.ecn, ace_bits(answer.ae, answer.flags));
        let asked = self.handshake.as_ref().is_some_and(|handshake| handshake.tries == 1);
        match bits {
            _ if mode == EcnMode::Off => Feedback::None,
            bits if mode == EcnMode::L4s && asked && agrees(bits) => Feedback::Counts,
            0b001 => Feedback::Echo,
            _ => Feedback::None,
        }
    }

    /// Demands our SYN, perhaps again.
    fn demand_syn(&mut self) {
        if let Some(handshake) = &mut self.handshake {
            handshake.due = true;
        }
    }

    fn accept_syn(&mut self, segment: &Segment) {
        self.receiver = Receiving::Silent { start: seq::first(segment.seq) + 1, due: false };
        self.peer_clock = segment.timestamps.value;
    }

    fn established(&mut self, now: Instant, segment: &Segment) {
        self.state = State::Established;
        self.pending.opened = true;
        let (tries, sent) =
            self.handshake.take().map_or((0, now), |handshake| (handshake.tries, handshake.sent));
        let rtt = (tries == 1).then(|| now - sent);
        // More than one lost SYN: start from one segment (RFC 5681 section 3.1, as Linux reads it).
        let edge = self.syn + 1 + u64::from(segment.window);
        self.sender.open(now, edge, rtt, tries > 2, &self.own);
    }

    /// Handles a segment of an open connection.
    fn transfer(&mut self, now: Instant, segment: &Segment) {
        let receiver = &mut self.receiver;
        let at = seq::extend(receiver.next(), segment.seq);
        if at <= receiver.acknowledged() {
            // RFC 7323 section 4.3: echo the clock of the segment that the next acknowledgement answers.
            self.peer_clock = segment.timestamps.value;
        }
        if segment.has(flags::ACK) {
            let ack = seq::extend(self.sender.una(), segment.ack);
            let edge = ack + u64::from(segment.window);
            if let Some(sender) = self.sender.active() {
                let blocks = segment.sack.as_slice().iter();
                let blocks = blocks.map(|&(left, right)| (seq::extend(ack, left), seq::extend(ack, right)));
                let arrival = Arrival {
                    ack,
                    edge,
                    echo: segment.timestamps.echo,
                    data: !segment.payload.is_empty(),
                    congested: self.ecn == Feedback::Echo && segment.has(flags::ECE),
                    ace: (self.ecn == Feedback::Counts).then(|| ace_bits(segment.ae, segment.flags)),
                };
                sender.on_ack(now, arrival, blocks);
                self.pending.writable |= sender.wakes_writer();
            } else if ack <= self.sender.next() {
                self.sender.offer(edge);
            }
        }
        let fin = segment.has(flags::FIN);
        if segment.payload.is_empty() && !fin {
            if at < receiver.acknowledged() {
                // A window probe, or a keep-alive: not acceptable, hence answered (RFC 9293 section
                // 3.10.7.4).
                receiver.demand_ack();
            }
            return;
        }
        let Some(receiver) = receiver.activate(&self.own.shared) else { return };
        let finished = receiver.finished();
        if !segment.payload.is_empty() {
            match self.ecn {
                Feedback::None => {}
                Feedback::Echo => receiver.look_at_mark(segment.ecn, segment.has(flags::CWR)),
                Feedback::Counts => receiver.count_mark(segment.ecn),
            }
        }
        let elapsed = stamp(now).wrapping_sub(segment.timestamps.echo);
        let elapsed = Duration::from_millis(elapsed.max(1).into());
        let moment = Moment {
            now,
            rto: self.sender.timeout(),
            srtt: self.sender.srtt(),
            push: segment.has(flags::PSH),
            echo: (segment.timestamps.echo, elapsed),
        };
        if receiver.receive(moment, at, &segment.payload, fin) {
            self.pending.readable |= receiver.readable() > 0;
            if receiver.finished() && !finished {
                self.passive = !self.sender.fin_sent();
                self.pending.closed = Some(CloseReason::Finished);
            }
        }
    }

    fn fail(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.pending.writable = false;
        if !self.is_finished() {
            self.pending.closed = Some(reason);
        }
    }

    #[inline]
    fn is_finished(&self) -> bool {
        self.sender.finished() && self.receiver.finished()
    }

    /// Returns the next segment for the peer; call until `None`.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        // An end that sends no data is asked this more often than it has a segment to send.
        let mute = self.state == State::Established && self.sender.is_silent() && !self.receiver.ack_due();
        if mute { None } else { self.next_segment(now) }
    }

    fn next_segment(&mut self, now: Instant) -> Option<Segment> {
        match self.state {
            State::Listen => None,
            State::SynSent | State::SynReceived => self.transmit_syn(now),
            State::Established => self.transmit(now),
            State::Closed => self.reset.take().map(|reset| match reset {
                Reset::Abort => {
                    let bits = flags::RST | flags::ACK;
                    let (seq, none) = (self.sender.next(), Ecn::NotEct);
                    self.segment(now, seq, bits, Chunk::default(), 0, SackBlocks::default(), none)
                }
                Reset::Answer { seq, ack } => reset::answer(seq, ack),
            }),
        }
    }

    fn transmit_syn(&mut self, now: Instant) -> Option<Segment> {
        let handshake = self.handshake.as_mut()?;
        if !std::mem::take(&mut handshake.due) {
            return None;
        }
        handshake.timer = now + SYN_TIMEOUT * (1 << handshake.tries.min(6));
        handshake.tries += 1;
        handshake.sent = now;
        let first = handshake.tries == 1;
        let ace = match (self.receiver.is_known(), self.ecn) {
            (true, Feedback::None) => 0b000,
            (true, Feedback::Echo) => 0b001,
            (true, Feedback::Counts) => handshake_bits(Ecn::NotEct),
            // A SYN that was lost may have been lost because of its ECN bits (RFC 3168 section 6.1.1.1).
            (false, _) if !first => 0b000,
            (false, _) => match self.own.shared.ecn {
                EcnMode::Off => 0b000,
                EcnMode::Classic => 0b011,
                EcnMode::L4s => 0b111,
            },
        };
        let (ae, marks) = header_bits(ace);
        let bits = flags::SYN | marks | if self.receiver.is_known() { flags::ACK } else { 0 };
        let window = self.receiver.acknowledge(&self.own.shared);
        let (payload, sack) = (Chunk::default(), SackBlocks::default());
        Some(Segment { ae, ..self.segment(now, self.syn, bits, payload, window, sack, Ecn::NotEct) })
    }

    fn transmit(&mut self, now: Instant) -> Option<Segment> {
        let receiver = &mut self.receiver;
        let (fresh, mut ecn) = (self.sender.next(), Ecn::NotEct);
        let (seq, mut bits, payload) = if let Some(sender) = self.sender.active()
            && let Some(outgoing) = sender.poll(now)
        {
            let fin = if outgoing.fin { flags::FIN } else { 0 };
            let push = if outgoing.push { flags::PSH } else { 0 };
            let mut bits = flags::ACK | fin | push;
            if self.ecn == Feedback::Counts && !outgoing.payload.is_empty() {
                // On all data, retransmissions too (RFC 9331 section 4.1, as in Linux's L4S stack).
                ecn = Ecn::Ect1;
            } else if self.ecn == Feedback::Echo && outgoing.seq >= fresh && !outgoing.payload.is_empty() {
                // Neither retransmissions nor acknowledgements (RFC 3168 sections 6.1.4 and 6.1.5).
                ecn = Ecn::Ect0;
                bits |= if sender.take_reduced() { flags::CWR } else { 0 };
            }
            (outgoing.seq, bits, outgoing.payload)
        } else if self.sender.active().is_some_and(Sender::take_probe) {
            (self.sender.una() - 1, flags::ACK, Chunk::default())
        } else if receiver.ack_due() {
            (self.sender.next(), flags::ACK, Chunk::default())
        } else {
            return None;
        };
        // A full segment leaves no room for SACK blocks: they follow in an acknowledgement of their own.
        let room = payload.is_empty() || payload.len() + SackBlocks::MAX_BYTES <= self.mss as usize;
        let owed = !room && receiver.has_sack() && receiver.ack_due();
        let sack = if room { receiver.take_sack() } else { SackBlocks::default() };
        if !payload.is_empty() {
            receiver.data_sent(now);
        }
        let window = receiver.acknowledge(&self.own.shared);
        if owed {
            receiver.demand_ack();
        }
        let mut ae = false;
        if self.ecn == Feedback::Counts {
            let marks;
            (ae, marks) = header_bits(receiver.report_marks());
            bits |= marks;
        } else if receiver.echoes_congestion() {
            bits |= flags::ECE;
        }
        Some(Segment { ae, ..self.segment(now, seq, bits, payload, window, sack, ecn) })
    }

    #[allow(clippy::too_many_arguments)]
    #[inline]
    fn segment(
        &self,
        now: Instant,
        seq: u64,
        flags: u8,
        payload: Chunk,
        window: u32,
        sack: SackBlocks,
        ecn: Ecn,
    ) -> Segment {
        let ack = self.receiver.next() as u32;
        let timestamps = Timestamps { value: stamp(now), echo: self.peer_clock };
        Segment { seq: seq as u32, ack, flags, ae: false, window, sack, timestamps, payload, ecn }
    }

    /// Returns its congestion control.
    pub fn congestion_control(&self) -> &CongestionControl {
        &self.own.shared.congestion
    }

    /// Figures of the moment.
    pub fn stats(&self) -> Stats {
        self.sender
            .look(&self.own, |sender| Stats::of(sender, self.ecn != Feedback::None, self.receiver.marked()))
    }
}
