//! Runs a plan and writes its record.

use std::path::Path;

use streamgauge_base::{Direction, Event, Fate, FlowId, Item, PacketInfo, StageId};
use streamgauge_plan::{Keep, Legend, TrialPlan};
use streamgauge_record::{EVENTS_FILE, Ledger, PACKETS_FILE, PacketWriter, RecordError, write_events};
use streamgauge_systems::media::Contents;

use crate::error::SimError;
use crate::recorder::Recorder;
use crate::run::run_with;
use crate::summary::Summary;

/// Runs `plan` and writes as much of its record into `directory`, which exists, as `plan.keep` says:
/// `packets.parquet` and `events.parquet`. Nothing is left of a record that could not be finished.
pub fn simulate(plan: &TrialPlan, directory: &Path) -> Result<Summary, SimError> {
    simulate_with(plan, &Contents::NONE, directory)
}

/// As [`simulate`], of a plan that names `contents`.
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
            let files = Files { packets, error: None, ledger: Ledger::new(&legend), events: Vec::new() };
            let (summary, files) = run_with(plan, contents, files)?;
            files.finish(summary, directory, &legend)
        }
    }
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
}

/// The whole record.
struct Files {
    packets: PacketWriter,
    /// The first thing that went wrong; nothing is written after it.
    error: Option<RecordError>,
    ledger: Ledger,
    events: Vec<Event>,
}

impl Recorder for Files {
    const PACKETS: bool = true;

    #[inline]
    fn row(&mut self, fate: &Fate, info: &PacketInfo, direction: Direction) {
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
}

impl Files {
    fn finish(self, mut summary: Summary, directory: &Path, legend: &Legend) -> Result<Summary, SimError> {
        if let Some(error) = self.error {
            return Err(error.into());
        }
        let packets = self.packets.finish()?;
        let events = write_events(&directory.join(EVENTS_FILE), &self.events, legend);
        summary.events_digest = Some(events.inspect_err(|_| {
            // Half a record is none.
            let _ = std::fs::remove_file(directory.join(PACKETS_FILE));
        })?);
        summary.imbalance = packets.balance.check(&self.ledger);
        summary.balance = packets.balance.rows();
        summary.rows = Some(packets.rows);
        summary.packets_digest = Some(packets.digest);
        Ok(summary)
    }
}
