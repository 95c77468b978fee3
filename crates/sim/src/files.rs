//! Runs a plan and writes its record, or holds in memory the parts of it that measuring reads.

use std::path::Path;

use streamgauge_base::{Direction, Event, Fate, FlowId, Item, PacketInfo, StageId};
use streamgauge_plan::{Keep, Legend, TrialPlan};
use streamgauge_record::{
    EVENTS_FILE, EventSeries, Ledger, PACKETS_FILE, PacketTable, PacketWriter, PacketsInMemory,
    PacketsSummary, RecordError, events_in_memory, write_events,
};
use streamgauge_systems::media::Contents;

use crate::capture::Captured;
use crate::error::SimError;
use crate::recorder::Recorder;
use crate::run::run_with;
use crate::summary::Summary;

/// Runs `plan` and writes as much of its record into `directory`, which exists, as `plan.keep` selects:
/// `packets.parquet` and `events.parquet`. Nothing is left of a record that could not be finished.
pub fn simulate(plan: &TrialPlan, directory: &Path) -> Result<Summary, SimError> {
    simulate_with(plan, &Contents::NONE, directory)
}

/// Simulates as [`simulate`], for a plan that names `contents`.
pub fn simulate_with(plan: &TrialPlan, contents: &Contents, directory: &Path) -> Result<Summary, SimError> {
    let legend = Legend::of(plan);
    match plan.keep {
        Keep::Metrics => Ok(run_with(plan, contents, ())?.0),
        Keep::Events => {
            let (mut summary, events) = run_with(plan, contents, Events(Vec::new()))?;
            summary.events_digest = Some(write_events(&directory.join(EVENTS_FILE), &events.0, &legend)?);
            Ok(summary)
        }
        Keep::Packets => {
            let packets = PacketWriter::create(&directory.join(PACKETS_FILE), &legend)?;
            let (summary, files) = run_with(plan, contents, Whole::new(packets, &legend))?;
            files.finish(summary, directory, &legend)
        }
    }
}

/// Simulates as [`simulate_with`] when it keeps packets, and writes all frames to `capture.pcapng` too.
pub fn simulate_captured(
    plan: &TrialPlan,
    contents: &Contents,
    directory: &Path,
) -> Result<Summary, SimError> {
    let legend = Legend::of(plan);
    let packets = PacketWriter::create(&directory.join(PACKETS_FILE), &legend)?;
    let recorder = Captured::create(directory, plan, Whole::new(packets, &legend))?;
    let (summary, captured) = run_with(plan, contents, recorder)?;
    captured.finish()?.finish(summary, directory, &legend)
}

/// The parts of a record that measuring reads, never written to a file.
pub struct InMemory {
    /// As [`read_packet_table`](streamgauge_record::read_packet_table) would read it.
    pub packets: PacketTable,
    /// As [`read_event_series`](streamgauge_record::read_event_series) would read it.
    pub told: Vec<EventSeries>,
}

/// Simulates as [`simulate_with`] when it keeps packets, to the same summary and digests, but nothing is written: for
/// trials that are measured before their record is dropped. `plan.keep` counts for nothing.
pub fn simulate_in_memory(plan: &TrialPlan, contents: &Contents) -> Result<(Summary, InMemory), SimError> {
    let legend = Legend::of(plan);
    let whole = Whole::new(PacketsInMemory::new(&legend), &legend);
    let (mut summary, whole) = run_with(plan, contents, whole)?;
    if let Some(error) = whole.error {
        return Err(error.into());
    }
    let (found, packets) = whole.packets.finish();
    let (events_digest, told) = events_in_memory(&whole.events, &legend)?;
    account(&mut summary, found, &whole.ledger, events_digest);
    Ok((summary, InMemory { packets, told }))
}

/// Adds the account of all rows and events to a summary.
fn account(summary: &mut Summary, packets: PacketsSummary, ledger: &Ledger, events_digest: String) {
    summary.events_digest = Some(events_digest);
    summary.imbalance = packets.balance.check(ledger);
    summary.balance = packets.balance.rows();
    summary.rows = Some(packets.rows);
    summary.packets_digest = Some(packets.digest);
}

/// Keeps events and no packets.
struct Events(Vec<Event>);

impl Recorder for Events {
    const PACKETS: bool = false;
    const MESSAGES: bool = true;

    fn row(&mut self, _: &Fate, _: &PacketInfo, _: Direction) {}
    fn made(&mut self, _: StageId, _: &Item, _: &Item) {}
    fn entered(&mut self, _: StageId, _: FlowId, _: u32) {}
    fn left(&mut self, _: Direction, _: FlowId, _: u32) {}
    fn event(&mut self, event: Event) {
        self.0.push(event);
    }
    fn memory_bytes(&self) -> u64 {
        event_bytes(&self.0)
    }
}

fn event_bytes(events: &[Event]) -> u64 {
    std::mem::size_of_val(events) as u64
}

/// The destination of the rows of a whole record.
trait Rows {
    fn row(&mut self, fate: &Fate, info: &PacketInfo, direction: Direction) -> Result<(), RecordError>;
    fn made(&mut self, stage: StageId, from: &Item, made: &Item);
}

impl Rows for PacketWriter {
    #[inline]
    fn row(&mut self, fate: &Fate, info: &PacketInfo, direction: Direction) -> Result<(), RecordError> {
        PacketWriter::row(self, fate, info, direction)
    }
    fn made(&mut self, stage: StageId, from: &Item, made: &Item) {
        PacketWriter::made(self, stage, from, made);
    }
}

impl Rows for PacketsInMemory {
    #[inline]
    fn row(&mut self, fate: &Fate, info: &PacketInfo, direction: Direction) -> Result<(), RecordError> {
        PacketsInMemory::row(self, fate, info, direction)
    }
    fn made(&mut self, stage: StageId, from: &Item, made: &Item) {
        PacketsInMemory::made(self, stage, from, made);
    }
}

/// The whole record.
pub(crate) struct Whole<P> {
    packets: P,
    /// The first error; nothing is written after it.
    error: Option<RecordError>,
    ledger: Ledger,
    events: Vec<Event>,
    rows: u64,
}

impl<P: Rows> Recorder for Whole<P> {
    const PACKETS: bool = true;

    #[inline]
    fn row(&mut self, fate: &Fate, info: &PacketInfo, direction: Direction) {
        self.rows += 1;
        if self.error.is_none() {
            self.error = self.packets.row(fate, info, direction).err();
        }
    }
    fn made(&mut self, stage: StageId, from: &Item, made: &Item) {
        self.packets.made(stage, from, made);
    }
    #[inline]
    fn entered(&mut self, stage: StageId, flow: FlowId, bytes: u32) {
        self.ledger.entered(stage, flow, bytes);
    }
    #[inline]
    fn left(&mut self, direction: Direction, flow: FlowId, bytes: u32) {
        self.ledger.left(direction, flow, bytes);
    }
    fn event(&mut self, event: Event) {
        self.events.push(event);
    }
    fn memory_bytes(&self) -> u64 {
        self.rows * PacketTable::ROW_BYTES + event_bytes(&self.events)
    }
}

impl<P> Whole<P> {
    /// Returns the events so far.
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    pub(crate) fn new(packets: P, legend: &Legend) -> Self {
        Whole { packets, error: None, ledger: Ledger::new(legend), events: Vec::new(), rows: 0 }
    }
}

impl Whole<PacketWriter> {
    pub(crate) fn finish(
        self,
        mut summary: Summary,
        directory: &Path,
        legend: &Legend,
    ) -> Result<Summary, SimError> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        let packets = self.packets.finish()?;
        let events = write_events(&directory.join(EVENTS_FILE), &self.events, legend).inspect_err(|_| {
            // Half a record is none.
            let _ = std::fs::remove_file(directory.join(PACKETS_FILE));
        })?;
        account(&mut summary, packets, &self.ledger, events);
        Ok(summary)
    }
}
