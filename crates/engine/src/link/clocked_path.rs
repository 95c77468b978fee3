//! One direction of the path on the real clock.

use streamgauge_base::{Direction, Event, Fate, FateSink, FlowId, Instant, Item, Outcome, PacketId, StageId};
use streamgauge_live::Watched;
use streamgauge_path::spec::{PathSpec, StageKind, StageSpec};
use streamgauge_path::{Change, Departure, Path, Stage};
use streamgauge_plan::Legend;
use streamgauge_record::{Ledger, Message, PacketSender, RecordError};

use super::sabotage::Sabotage;
use super::slab::Slab;
use super::stats::{Clamped, Tally};
use crate::error::{EngineError, Result};

/// Ids before the trial, out of the way of the trial's own, which count from 0.
pub const REHEARSAL_IDS: u64 = 1 << 62;

/// A path, and when its time zero is.
pub struct ClockedPath {
    path: Path,
    /// CLOCK_MONOTONIC, ns.
    epoch: i64,
    /// Its direction.
    pub direction: Direction,
    first_stage: StageId,
    bottleneck: StageId,
    /// Arrivals older than the path's time.
    pub clamped: Clamped,
}

/// Both directions.
pub struct ClockedPaths {
    /// Down, then up.
    pub both: [ClockedPath; 2],
    /// The next packet's number.
    next_id: u64,
}

impl ClockedPaths {
    /// Returns the paths of `spec` with their time zero at `epoch`, and ids from `first_id` on.
    pub fn new(spec: &PathSpec, seed: u64, epoch: i64, first_id: u64, sabotage: &Sabotage) -> Result<Self> {
        let clocked = |stages: &[StageSpec], first: usize, direction| {
            let first_stage = StageId(first as u8);
            let stages = sabotage.stages(stages.to_vec(), first_id == REHEARSAL_IDS);
            let path = Path::new(&stages, first_stage, seed, direction)
                .map_err(|e| EngineError::new("read the plan", e).code(2))?;
            let at = stages.iter().position(|s| matches!(s.kind, StageKind::Bottleneck(_)));
            let bottleneck = StageId((first + at.unwrap_or(0)) as u8);
            Ok(ClockedPath { path, epoch, direction, first_stage, bottleneck, clamped: Clamped::default() })
        };
        let both =
            [clocked(&spec.down, 0, Direction::Down)?, clocked(&spec.up, spec.down.len(), Direction::Up)?];
        Ok(ClockedPaths { both, next_id: first_id })
    }

    /// Returns a fresh packet number.
    #[inline]
    pub fn new_id(&mut self) -> PacketId {
        self.next_id += 1;
        PacketId(self.next_id - 1)
    }

    /// Schedules a stage's `change` at `monotonic`; returns when it takes effect, ns of the path.
    pub fn schedule(&mut self, way: usize, place: usize, monotonic: i64, change: Change) -> u64 {
        let clocked = &mut self.both[way];
        let at = clocked.instant(monotonic);
        clocked.path.schedule(place, at, change).as_nanos()
    }

    /// Returns the bytes that each direction's bottleneck holds now.
    pub fn held_bytes(&self) -> [u32; 2] {
        self.both.each_ref().map(|clocked| {
            clocked.path.stages()[usize::from(clocked.bottleneck.0 - clocked.first_stage.0)].depth().bytes
        })
    }

    /// Returns when something must be sent, CLOCK_MONOTONIC ns.
    pub fn next_event(&self) -> Option<i64> {
        self.both.iter().filter_map(ClockedPath::next_event).min()
    }
}

impl ClockedPath {
    /// Returns a time of CLOCK_MONOTONIC on this path; nothing is earlier than its zero.
    #[inline]
    pub fn instant(&self, monotonic: i64) -> Instant {
        Instant::from_nanos((monotonic - self.epoch).max(0) as u64)
    }

    /// Returns a time of this path on CLOCK_MONOTONIC.
    #[inline]
    pub fn monotonic(&self, at: Instant) -> i64 {
        self.epoch + at.as_nanos().min(i64::MAX as u64 / 2) as i64
    }

    /// Returns the stage at which packets enter, at the router or before.
    #[inline]
    pub fn entry(&self, at_router: bool) -> StageId {
        if at_router { self.bottleneck } else { self.first_stage }
    }

    /// Enters `item`, which arrives at `monotonic`.
    #[inline]
    pub fn enqueue(&mut self, monotonic: i64, item: Item, at_router: bool, fates: &mut impl FateSink) {
        let now = self.instant(monotonic);
        let settled = self.path.now();
        if now < settled {
            self.clamped.count += 1;
            self.clamped.max_ns = self.clamped.max_ns.max(settled.saturating_since(now).as_nanos());
        }
        if at_router {
            self.path.enqueue_at_bottleneck(now, item, fates);
        } else {
            self.path.enqueue(now, item, fates);
        }
    }

    /// Returns the next packet that has left by `monotonic`.
    #[inline]
    pub fn dequeue(&mut self, monotonic: i64, fates: &mut impl FateSink) -> Option<Departure> {
        if monotonic < self.epoch {
            return None;
        }
        let now = self.instant(monotonic);
        self.path.dequeue(now, fates)
    }

    /// Returns how long a packet that arrives now is inside at least, wherever it enters, ns.
    pub fn least_stay_ns(&self) -> i64 {
        let from = usize::from(self.bottleneck.0 - self.first_stage.0);
        let stays = self.path.stages()[from..].iter().map(|stage| stage.least_stay().as_nanos());
        stays.sum::<u64>().min(i64::MAX as u64) as i64
    }

    /// Ends the path; packets that have left by then can still be dequeued.
    pub fn finish(&mut self, monotonic: i64, fates: &mut impl FateSink) {
        let now = self.instant(monotonic);
        self.path.finish(now, fates);
    }

    fn next_event(&self) -> Option<i64> {
        self.path.next_event().map(|at| self.monotonic(at))
    }
}

/// Most messages of applications in a record.
const MOST_MESSAGES: usize = 100_000;

/// Recordings of a trial while it runs.
pub struct Trial {
    rows: PacketSender,
    /// Packets that the driver itself gave to the path and took from it.
    pub ledger: Ledger,
    /// Changes of the path, and messages of applications.
    pub events: Vec<Event>,
    /// How many messages are among them.
    messages: usize,
    /// The rate in force at each direction's bottleneck, bit/s; 0 where there is none.
    rates: [u64; 2],
    bottlenecks: [Option<StageId>; 2],
    /// The first error of the writer.
    pub failed: Option<RecordError>,
    /// Per flow (the last: other) and direction, packets given to the path and packets sent.
    pub flows: Vec<[FlowTally; 2]>,
    /// The live view of the trial while it runs.
    pub live: Option<Watched>,
    /// Words that a client put into the record, ns of the trial.
    pub marks: Vec<(u64, String)>,
    /// When the last requested change is due, CLOCK_MONOTONIC ns.
    pub steered_at: i64,
    /// How many of `events` have been shown.
    shown: usize,
}

/// One flow in one direction as the driver saw it.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowTally {
    /// Read from a ring.
    pub entered: Tally,
    /// Taken by the kernel.
    pub left: Tally,
}

impl Trial {
    /// Returns empty recordings.
    pub fn new(rows: PacketSender, legend: &Legend, spec: &PathSpec, live: Option<Watched>) -> Self {
        let mut rates = [0; 2];
        let mut bottlenecks = [None; 2];
        for (way, (stages, first)) in [(&spec.down, 0), (&spec.up, spec.down.len())].into_iter().enumerate() {
            for (index, stage) in stages.iter().enumerate() {
                if let StageKind::Bottleneck(bottleneck) = &stage.kind {
                    bottlenecks[way] = Some(StageId((first + index) as u8));
                    rates[way] = bottleneck.rate.initial().as_bps();
                }
            }
        }
        Trial {
            rows,
            ledger: Ledger::new(legend),
            events: Vec::with_capacity(4096),
            messages: 0,
            rates,
            bottlenecks,
            failed: None,
            flows: vec![Default::default(); legend.flows.len() + 1],
            live,
            marks: Vec::new(),
            steered_at: 0,
            shown: 0,
        }
    }

    /// Returns the events not yet shown, at most `most`; of more, the last.
    pub fn unshown(&mut self, most: usize) -> Vec<Event> {
        let from = self.shown.max(self.events.len().saturating_sub(most));
        self.shown = self.events.len();
        self.events[from.min(self.events.len())..].to_vec()
    }

    /// Messages that begin in a packet given to the path at `came`. Events wait in memory until the end:
    /// beyond [`MOST_MESSAGES`] the record has only the fact that there were more.
    pub fn messages(&mut self, messages: impl Iterator<Item = Message>, came: Instant) {
        for message in messages {
            if self.messages == MOST_MESSAGES {
                self.events.push(Event {
                    at: came,
                    flow: None,
                    name: "messages_end".into(),
                    value: Some(MOST_MESSAGES as f64),
                    unit: "1".into(),
                    reason: "so many were recorded; those from here on are not".into(),
                });
            }
            if self.messages < MOST_MESSAGES {
                self.events.push(message.event(came));
            }
            self.messages += 1;
        }
    }

    /// Returns the time that `bytes` need at the direction's bottleneck now, ns; `None` without one, or while
    /// it is stopped.
    #[inline]
    pub fn service_ns(&self, direction: Direction, bytes: u32) -> Option<u64> {
        let rate = self.rates[direction as usize];
        (rate > 0).then(|| u64::from(bytes) * 8 * 1_000_000_000 / rate)
    }

    /// Counts a packet that was given to `stage`.
    #[inline]
    pub fn entered(&mut self, stage: StageId, direction: Direction, flow: FlowId, bytes: u32) {
        self.ledger.entered(stage, flow, bytes);
        if let Some(live) = &mut self.live {
            live.counts().entered(direction, flow, bytes);
        }
        self.tally(flow, direction).entered.add(bytes as usize);
    }

    /// Counts a packet that was sent.
    #[inline]
    pub fn left(&mut self, direction: Direction, flow: FlowId, bytes: u32) {
        self.ledger.left(direction, flow, bytes);
        if let Some(live) = &mut self.live {
            live.counts().left(direction, flow, bytes);
        }
        self.tally(flow, direction).left.add(bytes as usize);
    }

    fn tally(&mut self, flow: FlowId, direction: Direction) -> &mut FlowTally {
        let other = self.flows.len() - 1;
        &mut self.flows[usize::from(flow.0).min(other)][direction as usize]
    }

    /// Returns the writer, at the end.
    pub fn into_rows(self) -> PacketSender {
        self.rows
    }
}

/// The sink of a path's fates: rows for a trial, and freed bytes for packets that will not leave.
pub struct LinkSink<'a> {
    /// Where the bytes are.
    pub slab: &'a mut Slab,
    /// The recordings; `None` before the trial.
    pub trial: Option<&'a mut Trial>,
    /// The path's direction.
    pub direction: Direction,
    /// Faults to inject.
    pub sabotage: &'a mut Sabotage,
}

impl FateSink for LinkSink<'_> {
    #[inline]
    fn fate(&mut self, fate: &Fate) {
        if let Some(trial) = &mut self.trial
            && let Some(meta) = self.slab.meta(fate.item.body)
            && !self.sabotage.loses_row()
            && trial.failed.is_none()
        {
            trial.failed = trial.rows.row(fate, &meta.info, self.direction).err();
            if let Some(live) = &mut trial.live {
                live.counts().fate(self.direction, fate);
            }
        }
        if fate.outcome != Outcome::Delivered {
            self.slab.release(fate.item.body);
        }
    }

    fn made(&mut self, stage: StageId, from: &Item, made: &Item) {
        self.slab.hold(made.body);
        if let Some(trial) = &mut self.trial {
            trial.rows.made(stage, from, made);
        }
    }

    #[cold]
    fn changed(&mut self, stage: StageId, at: Instant, what: &'static str, value: f64, unit: &'static str) {
        let Some(trial) = &mut self.trial else { return };
        let way = self.direction as usize;
        if trial.bottlenecks[way] == Some(stage) && what == "rate" {
            trial.rates[way] = value as u64;
        }
        let event = Event {
            at,
            flow: None::<FlowId>,
            name: what.into(),
            value: Some(value),
            unit: unit.into(),
            // Given its stage's name when it is written.
            reason: stage.0.to_string().into(),
        };
        trial.events.push(event);
    }
}
