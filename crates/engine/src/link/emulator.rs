//! The loop between the rings, the paths and the wire.

use serde_json::{Value, json};
use streamgauge_base::{Direction, Headers, Item, PacketInfo, PacketKind, Ports, packet_flags};
use streamgauge_record::{Classifier, PacketDirection, parse_frame};
use streamgauge_systems::{protocols, relay_protocols};

use super::capture::Capture;
use super::clock::Clock;
use super::clocked_path::{ClockedPath, ClockedPaths, LinkSink, Trial};
use super::config::{AddressBook, Config};
use super::egress;
use super::fragments::{Datagram, Fragments};
use super::port::{Outbound, Port};
use super::sabotage::Sabotage;
use super::slab::{Meta, Slab};
use super::stats::{Clamped, Histogram, Tally};
use crate::error::Result;
use crate::packet::{FRAME_ROOM, MAX_BATCH, Outgoing, Parts, Ring, RingOptions, Sender};
use crate::sys::monotonic_ns;

/// Places in `ports`.
const SERVER: usize = 0;
const CLIENT: usize = 1;
const CROSS: usize = 2;

/// Arrivals taken before departures get their turn.
const MAX_ARRIVALS: usize = 256;

/// No packet is late by less than this, however short its transmission time: receivers' own interrupts are as far apart.
const LATE_FLOOR_NS: u64 = 100_000;

/// `MAX_ARRIVALS` times this is more than a ring holds.
const RING_CHUNKS: usize = 64;

/// The emulator between its two or three interfaces.
pub struct Emulator {
    /// Server, client, cross.
    pub ports: Vec<Port>,
    clock: Clock,
    pub(super) slab: Slab,
    book: AddressBook,
    /// It is shown packets of the trial alone: its counts begin there.
    classifier: Classifier,
    fragments: Fragments,
    sender: Sender,
    sabotage: Sabotage,
    /// The path before the trial.
    rehearsal: ClockedPaths,
    /// The path from t0 on.
    pub(super) running: Option<Running>,
    lateness: Histogram,
    late_over_service: u64,
    before_start: Tally,
    after_end: Tally,
    last_activity: i64,
    /// By flow: its packets are no activity.
    beside: Box<[bool]>,
    packets: u64,
}

/// A started trial.
pub struct Running {
    /// The path.
    pub clocked_paths: ClockedPaths,
    /// The recordings.
    pub trial: Trial,
    capture: Option<Capture>,
    /// CLOCK_MONOTONIC, ns.
    pub t0: i64,
    end: i64,
}

/// An ended trial.
pub struct Finished {
    /// The recordings.
    pub trial: Trial,
    /// Its length.
    pub duration_ns: i64,
    /// Arrivals older than their path's time.
    pub clamped: Clamped,
    /// Its capture, to be completed.
    pub capture: Option<Capture>,
}

impl Emulator {
    /// Opens the interfaces. Packets cross `rehearsal` until a trial starts.
    pub fn open(config: &Config, rehearsal: ClockedPaths, sabotage: Sabotage, slab: Slab) -> Result<Self> {
        let interfaces = &config.interfaces;
        let names = [Some(&interfaces.server), Some(&interfaces.client), interfaces.cross.as_ref()];
        let options = RingOptions::whole(sabotage.ring_frames(config.ring_frames), Outgoing::Ignore);
        let ports = names.into_iter().flatten().map(|name| Ring::open(name, options).map(Port::new));
        let plan = &config.plan;
        let told = plan.flows.iter().map(|flow| (flow.role, protocols(flow)));
        let relays = plan.relays.iter().map(|relay| (plan.role_of(relay), relay_protocols(&relay.app)));
        Ok(Emulator {
            ports: ports.collect::<Result<_>>()?,
            clock: Clock::new(),
            slab,
            book: AddressBook::new(&config.plan, &config.flows, config.rest.as_deref())?,
            classifier: Classifier::new(told.chain(relays)),
            fragments: Fragments::new(),
            sender: Sender::new(),
            sabotage,
            rehearsal,
            running: None,
            lateness: Histogram::new(),
            late_over_service: 0,
            before_start: Tally::default(),
            after_end: Tally::default(),
            last_activity: 0,
            beside: plan.is_cross_traffic(),
            packets: 0,
        })
    }

    /// Packets cross `clocked_paths` from now on; the content of the old ones is dropped, and counts start at
    /// zero.
    pub fn rehearse(&mut self, clocked_paths: ClockedPaths) {
        self.step();
        let now = monotonic_ns();
        self.end_rehearsal(now);
        self.rehearsal = clocked_paths;
        self.before_start = Tally::default();
        self.after_end = Tally::default();
        self.clock.reset();
        self.ports.iter_mut().for_each(Port::reset);
    }

    /// Drops the packets that cross the path before the trial.
    fn end_rehearsal(&mut self, now: i64) {
        let Emulator { rehearsal, slab, sabotage, .. } = self;
        for clocked in &mut rehearsal.both {
            let direction = clocked.direction;
            let mut fates = LinkSink { slab, trial: None, direction, sabotage };
            clocked.finish(now, &mut fates);
            while let Some(departure) = clocked.dequeue(now, &mut fates) {
                fates.slab.release(departure.item.body);
            }
        }
    }

    /// Starts the trial at `t0`; it ends at `end` at the latest (CLOCK_MONOTONIC, ns). A silence within
    /// `begun` ns of its start ends nothing.
    pub fn start(
        &mut self,
        clocked_paths: ClockedPaths,
        trial: Trial,
        capture: Option<Capture>,
        t0: i64,
        begun: i64,
        end: i64,
    ) {
        self.last_activity = t0.saturating_add(begun);
        self.running = Some(Running { clocked_paths, trial, capture, t0, end });
    }

    /// Returns whether a trial has been started.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Returns whether the trial's end has been reached; with `idle`, also this long after the last packet.
    pub fn is_over(&mut self, idle: Option<i64>) -> bool {
        let last = self.last_activity;
        let Some(running) = &mut self.running else { return false };
        let end = idle.map_or(running.end, |idle| running.end.min(last.saturating_add(idle)));
        if monotonic_ns() >= end {
            // Not before: another packet moves it.
            running.end = end;
            return true;
        }
        running.trial.failed.is_some() || running.capture.as_ref().is_some_and(Capture::has_failed)
    }

    /// Returns the counts so far: packets later than their service, packets that the emulator lost, arrivals
    /// read too late.
    pub(super) fn health(&self) -> (u64, u64, u64) {
        let lost = |p: &Port| p.stats.send_errors + p.stats.slab_drops + p.stats.truncated;
        let running = self.running.as_ref();
        let clamped = running.map_or(0, |r| r.clocked_paths.both.iter().map(|one| one.clamped.count).sum());
        (self.late_over_service, self.ports.iter().map(lost).sum(), clamped)
    }

    /// Returns when `step` must be called again, and when the trial ends.
    pub fn next_event(&self, idle: Option<i64>) -> Option<i64> {
        let running = self.running.as_ref();
        let shown =
            running.and_then(|r| Some(r.t0.saturating_add_unsigned(r.trial.live.as_ref()?.next_ns())));
        let end =
            running.map(|r| r.end.min(idle.map_or(i64::MAX, |idle| self.last_activity.saturating_add(idle))));
        let unsaid = self.sabotage.unsaid_delay_ns();
        let next = running.and_then(|r| r.clocked_paths.next_event()).map(|at| at + unsaid);
        [self.rehearsal.next_event(), next, end, shown].into_iter().flatten().min()
    }

    /// Returns how long a frame may wait in each port's ring without being late, ns.
    pub fn patience(&self) -> [i64; 3] {
        let clocked_paths = self.running.as_ref().map_or(&self.rehearsal, |running| &running.clocked_paths);
        let [down, up] = clocked_paths.both.each_ref().map(ClockedPath::least_stay_ns);
        [down, up, down]
    }

    /// Returns whether a frame waits in a ring.
    pub fn has_arrival(&self) -> bool {
        self.ports.iter().any(|port| port.ring.is_ready())
    }

    /// Reads arrivals and sends packets that are due. Returns how many packets it touched.
    pub fn step(&mut self) -> u64 {
        let before = self.packets;
        self.clock.watch();
        if let Some(running) = &self.running {
            let since = monotonic_ns() - running.t0;
            self.clock.skew(self.sabotage.clock_skew_ns(since));
            if let Some(pause) = self.sabotage.pause(since) {
                std::thread::sleep(pause);
            }
        }
        // A continuous flood must not keep commands and the trial's end waiting.
        for _ in 0..self.ports.len() * RING_CHUNKS {
            // Read before the rings: packets stamped earlier are in them by now, give or take the kernel's
            // own few hundred ns between stamp and ring.
            let now = monotonic_ns();
            let more = self.take_arrivals(now);
            self.advance(now);
            for port in 0..self.ports.len() {
                self.flush(port);
            }
            if !more {
                break;
            }
        }
        self.packets - before
    }

    /// Merges the rings by stamp; true if there may be more.
    fn take_arrivals(&mut self, now: i64) -> bool {
        for _ in 0..MAX_ARRIVALS {
            let stamps = self.ports.iter().enumerate().filter_map(|(i, p)| Some((p.ring.peek_stamp()?, i)));
            let Some((stamp, port)) = stamps.min() else { return false };
            self.clock.saw(stamp, reading_after(stamp, now, &self.clock));
            self.arrive(port, self.clock.monotonic(stamp));
            self.ports[port].ring.release();
        }
        true
    }

    fn arrive(&mut self, port: usize, at: i64) {
        let has_cross = self.ports.len() > CROSS;
        let Port { ring, stats, .. } = &mut self.ports[port];
        let Some(frame) = ring.peek() else { return };
        self.packets += 1;
        stats.rx_packets += 1;
        stats.rx_bytes += frame.wire_bytes as u64;
        stats.checksum_missing += u64::from(frame.checksum_missing);
        if frame.wire_bytes > frame.bytes.len() || frame.bytes.len() > FRAME_ROOM {
            stats.truncated += 1;
            return;
        }
        let parsed = parse_frame(frame.bytes);
        let direction = if port == CLIENT { Direction::Up } else { Direction::Down };
        let flow = self.sabotage.flow(self.book.flow(parsed.source, parsed.destination));
        let egress = match direction {
            Direction::Down => CLIENT,
            Direction::Up if has_cross && self.book.is_at_router(parsed.destination) => CROSS,
            Direction::Up => SERVER,
        };
        let (clocked_paths, mut trial) = match &mut self.running {
            Some(running) if at > running.end => {
                self.after_end.add(frame.wire_bytes);
                return;
            }
            Some(running) if at >= running.t0 => {
                if let Some(capture) = &mut running.capture {
                    capture.frame(port, PacketDirection::Inbound, frame.stamp_ns, frame.bytes);
                }
                (&mut running.clocked_paths, Some(&mut running.trial))
            }
            _ => (&mut self.rehearsal, None),
        };
        let mut info = match &mut trial {
            Some(trial) => {
                let connection = parsed.connection(direction);
                let info = self.classifier.classify(flow, direction, connection, &parsed.headers);
                if self.classifier.has_messages() {
                    let came = clocked_paths.both[direction as usize].instant(at);
                    trial.messages(self.classifier.take_messages(), came);
                }
                info
            }
            // Before t0, which no record has.
            None => unclassified(&parsed.headers),
        };
        info.flags |= packet_flags::of_arrived(parsed.ecn);
        let Datagram { id, hash, ports, info } = if parsed.fragment.is_whole() {
            let ports = Ports::from_word(parsed.ports);
            Datagram { id: clocked_paths.new_id(), hash: parsed.hash, ports, info }
        } else {
            self.fragments.datagram(at, &parsed, trial.is_some(), info, || clocked_paths.new_id())
        };
        let (fragment, ip_bytes) = (parsed.fragment, parsed.ip_bytes);
        let meta = Meta { info, ecn: parsed.ecn, came: at, fragment, ip_bytes, egress: egress as u8 };
        let Some(body) = self.slab.insert(meta, frame.bytes) else {
            stats.slab_drops += 1;
            return;
        };
        let item = Item {
            body,
            hash,
            ports,
            ecn: parsed.ecn,
            protocol: parsed.protocol,
            fragment: parsed.fragment,
            ..Item::new(id, flow, parsed.ip_bytes)
        };
        let clocked = &mut clocked_paths.both[direction as usize];
        let at_router = port == CROSS;
        let trial = match trial {
            Some(trial) => {
                if self.beside.get(usize::from(flow.0)) != Some(&true) {
                    self.last_activity = self.last_activity.max(at);
                }
                trial.entered(clocked.entry(at_router), direction, flow, item.bytes);
                Some(trial)
            }
            None => {
                self.before_start.add(frame.wire_bytes);
                None
            }
        };
        let mut fates = LinkSink { slab: &mut self.slab, trial, direction, sabotage: &mut self.sabotage };
        clocked.enqueue(at, item, at_router, &mut fates);
    }

    /// Takes all packets that have left by `now` out of the paths.
    fn advance(&mut self, now: i64) {
        for way in 0..2 {
            while let Some(outbound) = self.next_departure(way, now) {
                self.packets += 1;
                let Some(meta) = self.slab.meta(outbound.slot) else { continue };
                let port = usize::from(meta.egress);
                self.ports[port].out.push(outbound);
                if self.ports[port].out.len() == MAX_BATCH {
                    self.flush(port);
                }
            }
        }
    }

    fn next_departure(&mut self, way: usize, now: i64) -> Option<Outbound> {
        let unsaid = self.sabotage.unsaid_delay_ns();
        let Emulator { running, rehearsal, slab, sabotage, .. } = self;
        let mut take = |clocked_paths: &mut ClockedPaths, mut trial: Option<&mut Trial>, now: i64| {
            let clocked = &mut clocked_paths.both[way];
            let direction = clocked.direction;
            let recorded = trial.is_some();
            let mut fates = LinkSink { slab, trial: trial.as_deref_mut(), direction, sabotage };
            let departure = clocked.dequeue(now, &mut fates)?;
            let item = departure.item;
            let meta = slab.meta(item.body)?;
            if let Some(live) = trial.and_then(|trial| trial.live.as_mut()) {
                let stayed = clocked.monotonic(departure.at) - meta.came;
                live.counts().stayed(direction, item.flow, stayed.max(0) as u64);
            }
            Some(Outbound {
                slot: item.body,
                altered: egress::prepare(slab, &item, &meta),
                flow: item.flow,
                direction,
                bytes: item.bytes,
                due: clocked.monotonic(departure.at),
                recorded,
            })
        };
        if let Some(outbound) = take(rehearsal, None, now) {
            return Some(outbound);
        }
        let running = running.as_mut()?;
        // Packets that would leave after the trial's end are still inside at its end.
        take(&mut running.clocked_paths, Some(&mut running.trial), (now - unsaid).min(running.end))
    }

    /// Hands a port's batch to the kernel.
    fn flush(&mut self, port: usize) {
        let Emulator { ports, slab, sender, running, sabotage, clock, .. } = self;
        let Emulator { lateness, late_over_service, last_activity, beside, .. } = self;
        let Port { ring, out, stats, .. } = &mut ports[port];
        if out.is_empty() {
            return;
        }
        let mut refused = [false; MAX_BATCH];
        let frames =
            out.iter().map(|o| if sabotage.fails_send() { Parts::whole(&OVERSIZE) } else { o.parts(slab) });
        sender.send(ring.fd(), frames, |index, sent| refused[index] = sent.is_err());
        let sent_at = monotonic_ns();
        for (outbound, &refused) in out.iter().zip(&refused) {
            if refused {
                stats.send_errors += 1;
            } else {
                stats.tx_packets += 1;
                stats.tx_bytes += outbound.parts(slab).len() as u64;
            }
            if outbound.recorded
                && let Some(running) = running.as_mut()
            {
                // Its flow is not known here; where some flows do not count, the flow of the last arrival
                // decides.
                if beside.is_empty() {
                    *last_activity = (*last_activity).max(outbound.due);
                }
                let late = (sent_at - outbound.due - sabotage.unsaid_delay_ns()).max(0) as u64;
                lateness.add(late);
                if let Some(live) = &mut running.trial.live {
                    live.counts().lateness.add(late);
                }
                let service = running.trial.service_ns(outbound.direction, outbound.bytes);
                let is_late = u64::from(service.is_some_and(|service| late > service.max(LATE_FLOOR_NS)));
                *late_over_service += is_late;
                stats.late += is_late;
                if !refused {
                    if let Some(capture) = &mut running.capture {
                        let at_ns = clock.realtime(sent_at);
                        let bytes = outbound.parts(slab).concat();
                        capture.frame(port, PacketDirection::Outbound, at_ns, &bytes);
                    }
                    running.trial.left(outbound.direction, outbound.flow, outbound.bytes);
                }
            }
            slab.release(outbound.slot);
        }
        out.clear();
    }

    /// Ends the trial now, or at its end if that has passed: departed packets are sent, packets inside are
    /// held.
    pub fn finish(&mut self) -> Option<Finished> {
        let end = {
            let running = self.running.as_mut()?;
            running.end = running.end.min(monotonic_ns()).max(running.t0);
            running.end
        };
        // Packets stamped before the end are in the rings by now; a continuous flood is not waited for.
        let chunks = self.ports.len() * RING_CHUNKS;
        let _ = (0..chunks).find(|_| !self.take_arrivals(monotonic_ns()));
        self.advance(end);
        let Emulator { running, slab, sabotage, .. } = self;
        let running = running.as_mut()?;
        for clocked in &mut running.clocked_paths.both {
            let direction = clocked.direction;
            clocked.finish(end, &mut LinkSink { slab, trial: Some(&mut running.trial), direction, sabotage });
        }
        self.advance(end);
        for port in 0..self.ports.len() {
            self.flush(port);
        }
        self.end_rehearsal(end);
        self.clock.check();
        self.ports.iter_mut().for_each(Port::read_drops);
        let Running { clocked_paths, trial, capture, t0, .. } = self.running.take()?;
        let clamped = clocked_paths.both.iter().fold(Clamped::default(), |sum, clocked| Clamped {
            count: sum.count + clocked.clamped.count,
            max_ns: sum.max_ns.max(clocked.clamped.max_ns),
        });
        Some(Finished { trial, duration_ns: end - t0, clamped, capture })
    }

    /// Packets touched so far, packets that are inside now, and the trial's time in ns.
    pub fn progress(&self) -> (u64, usize, i64) {
        (self.packets, self.slab.len(), self.running.as_ref().map_or(0, |r| (monotonic_ns() - r.t0).max(0)))
    }

    /// Returns the statistics of PROTOCOL.md that the emulator itself keeps.
    pub fn stats(&self) -> Value {
        let sum = |field: fn(&Port) -> u64| self.ports.iter().map(field).sum::<u64>();
        let names = ["server", "client", "cross"];
        let ports: serde_json::Map<String, Value> =
            names.iter().zip(&self.ports).map(|(name, port)| ((*name).into(), json!(port.stats))).collect();
        json!({
            "ports": ports,
            "ring_drops": sum(|p| p.stats.ring_drops),
            "send_errors": sum(|p| p.stats.send_errors),
            "slab_drops": sum(|p| p.stats.slab_drops),
            // Bytes not released at the end.
            "slab_left": self.slab.len(),
            "slab_bytes": self.slab.bytes(),
            "truncated": sum(|p| p.stats.truncated),
            "checksum_missing": sum(|p| p.stats.checksum_missing),
            "lateness_ns": self.lateness.percentiles(),
            "late_over_service": self.late_over_service,
            "clock": {
                "drift_ns": self.clock.drift_ns(), "steps": self.clock.steps(), "min_age_ns": self.clock.min_age_ns(),
            },
            "before_start": self.before_start,
            "after_end": self.after_end,
        })
    }
}

/// Longer than any interface accepts: the frame that `Fault::FailSend` offers to the kernel.
static OVERSIZE: [u8; 100_000] = [0; 100_000];

/// Returns the known facts of a packet that is not recorded.
fn unclassified(headers: &Headers<'_>) -> PacketInfo {
    let Headers { header_bytes, payload_bytes, .. } = *headers;
    PacketInfo { kind: PacketKind::Other, flags: 0, header_bytes, payload_bytes, seq: None, connection: None }
}

/// Returns `now`, or the clock read again if the packet was stamped after `now` was read.
#[inline]
fn reading_after(stamp: i64, now: i64, clock: &Clock) -> i64 {
    if clock.monotonic(stamp) > now { monotonic_ns() } else { now }
}
