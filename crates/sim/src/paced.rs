//! A trial of sim that keeps to a pace of the real clock, is shown while it runs and accepts changes.
//!
//! The pace only delays the loop. Each change has a time in the trial, and a plan with the same changes at the same
//! times gives the same record.

use std::collections::HashMap;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration as RealDuration, Instant as RealInstant};

use serde_json::{Value, json};
use streamgauge_base::{
    Direction, Event, Fate, FlowId, Instant, Item, Outcome, PacketId, PacketInfo, StageId,
};
use streamgauge_live::{Applied, Moment, Options, Watched};
use streamgauge_plan::{Legend, TrialPlan, direction_name, mark_event};
use streamgauge_record::{PACKETS_FILE, PacketWriter};
use streamgauge_systems::media::Contents;

use crate::error::SimError;
use crate::files::Whole;
use crate::recorder::{Recorder, Steer};
use crate::run::run_with;
use crate::summary::Summary;

/// Events that a sample shows at most.
const MOST_EVENTS: usize = 400;

/// Returns the socket of a descriptor that the caller hands over. An error if none is open there.
#[allow(unsafe_code, reason = "a descriptor's number is not its owner")]
pub fn inherited(fd: i32) -> std::io::Result<UnixStream> {
    if fd < 3 {
        return Err(std::io::Error::other(format!("{fd} is a standard stream")));
    }
    // SAFETY: only duplicated, which fails for a descriptor that is not open.
    let socket = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()?;
    // SAFETY: it is open, and the caller has handed it over.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(UnixStream::from(socket))
}

/// Simulates as [`simulate_with`](crate::simulate_with) with all packets kept, `pace` seconds of the trial in a second,
/// shown and steered over `socket`. Returns the summary and the changes, marks included.
pub fn simulate_live(
    plan: &TrialPlan,
    contents: &Contents,
    directory: &Path,
    socket: UnixStream,
    pace: f64,
) -> Result<(Summary, Value), SimError> {
    if !(pace > 0.0 && pace.is_finite()) {
        return Err(SimError::plan("pace", format!("{pace} is no pace; give a number above 0")));
    }
    let legend = Legend::of(plan);
    let address = |stage: &streamgauge_plan::StageEntry| {
        format!("path.{}.{}", direction_name(stage.direction), stage.name)
    };
    let options = Options {
        flows: legend.flows.iter().map(|flow| flow.name.clone()).collect(),
        stages: legend.stages.iter().map(address).collect(),
        path: plan.path.clone(),
        room: None,
        wake: Box::new(|| {}),
    };
    let live = Watched::start(socket, options)
        .map_err(|e| SimError::plan("live", format!("no thread can be started: {e}")))?;
    let packets = PacketWriter::create(&directory.join(PACKETS_FILE), &legend)?;
    let paced = Paced {
        whole: Whole::new(packets, &legend),
        live,
        pace,
        begun: RealInstant::now(),
        ends: [plan.path.down.len() as u8 - 1, (plan.path.down.len() + plan.path.up.len()) as u8 - 1],
        under_way: HashMap::new(),
        shown: 0,
        marks: Vec::new(),
        last_ns: 0,
    };
    let (summary, mut paced) = run_with(plan, contents, paced)?;
    let events = paced.unshown();
    let Paced { whole, live, marks, .. } = paced;
    let steered = steered(&live, plan, &marks, summary.duration_ns);
    live.finish(Moment { at_ns: summary.duration_ns, events, ..Moment::default() });
    Ok((whole.finish(summary, directory, &legend)?, steered))
}

fn steered(live: &Watched, plan: &TrialPlan, marks: &[(u64, String)], end_ns: u64) -> Value {
    let stages = [&plan.path.down, &plan.path.up];
    let changes = live.applied().iter().filter(|one| one.0 < end_ns).map(|&(at, way, place, change)| {
        let (dir, stage) = (["down", "up"][way], &stages[way][place].name);
        json!({"t_ns": at, "dir": dir, "stage": stage, "change": change})
    });
    let marks = marks.iter().map(|(at, mark)| json!({"t_ns": at, "mark": mark}));
    changes.chain(marks).collect()
}

struct Paced {
    whole: Whole<PacketWriter>,
    live: Watched,
    /// Seconds of the trial in a second.
    pace: f64,
    begun: RealInstant,
    /// The last stage of each direction.
    ends: [u8; 2],
    /// Time when packets inside a path entered it.
    under_way: HashMap<(PacketId, u8, u16), Instant>,
    /// How many events have been shown.
    shown: usize,
    marks: Vec<(u64, String)>,
    /// Time when the last request was applied.
    last_ns: u64,
}

impl Paced {
    fn unshown(&mut self) -> Vec<Event> {
        let events = self.whole.events();
        let from = self.shown.max(events.len().saturating_sub(MOST_EVENTS)).min(events.len());
        self.shown = events.len();
        events[from..].to_vec()
    }

    /// Returns the trial's time by the clock, ns.
    fn elapsed_ns(&self) -> u64 {
        (self.begun.elapsed().as_secs_f64() * self.pace * 1e9) as u64
    }

    /// Applies the request at the first time without another event.
    fn take(&mut self, asked: &Applied, done: Instant) -> Steer {
        // No two requests at one time: a plan could not express their order.
        let at_ns = self.elapsed_ns().max(done.as_nanos() + 1).max(self.last_ns + 1);
        self.last_ns = at_ns;
        let at = Instant::from_nanos(at_ns);
        self.live.done(asked, at_ns);
        if let Some(mark) = &asked.mark {
            self.whole.event(mark_event(at, mark));
            self.marks.push((at_ns, mark.clone()));
        }
        if asked.stop { Steer::Stop(at) } else { Steer::Change(at, asked.changes.clone()) }
    }

    fn wait_until(&mut self, trial_ns: u64) -> Option<Applied> {
        let due = self.begun + RealDuration::from_secs_f64(trial_ns as f64 / 1e9 / self.pace);
        let left = due.saturating_duration_since(RealInstant::now());
        if left.is_zero() { self.live.next_asked() } else { self.live.wait(left) }
    }
}

impl Recorder for Paced {
    const PACKETS: bool = true;
    const PACED: bool = true;

    fn row(&mut self, fate: &Fate, info: &PacketInfo, direction: Direction) {
        self.whole.row(fate, info, direction);
        self.live.counts().fate(direction, fate);
        let key = (fate.item.id, fate.item.copy, fate.item.fragment.offset());
        let begun = *self.under_way.entry(key).or_insert(fate.t_in);
        let is_last = fate.stage.0 == self.ends[direction as usize];
        if is_last && fate.outcome == Outcome::Delivered {
            let stayed = fate.at.saturating_since(begun).as_nanos();
            self.live.counts().stayed(direction, fate.item.flow, stayed);
        }
        if is_last || fate.outcome != Outcome::Delivered {
            self.under_way.remove(&key);
        }
    }

    fn made(&mut self, stage: StageId, from: &Item, made: &Item) {
        self.whole.made(stage, from, made);
    }

    fn entered(&mut self, stage: StageId, flow: FlowId, bytes: u32) {
        self.whole.entered(stage, flow, bytes);
        let way = if stage.0 <= self.ends[0] { Direction::Down } else { Direction::Up };
        self.live.counts().entered(way, flow, bytes);
    }

    fn left(&mut self, direction: Direction, flow: FlowId, bytes: u32) {
        self.whole.left(direction, flow, bytes);
        self.live.counts().left(direction, flow, bytes);
    }

    fn event(&mut self, event: Event) {
        self.whole.event(event);
    }

    fn pace(&mut self, now: Instant, done: Instant, held_bytes: [u32; 2]) -> Steer {
        loop {
            let due_ns = self.live.next_ns();
            let until_ns = due_ns.min(now.as_nanos());
            while let Some(asked) = self.wait_until(until_ns) {
                match self.take(&asked, done) {
                    Steer::Change(_, changes) if changes.is_empty() => {}
                    steer => return steer,
                }
            }
            if due_ns > now.as_nanos() {
                return Steer::GoOn;
            }
            if self.live.is_due(due_ns) {
                let events = self.unshown();
                self.live.offer(Moment { at_ns: due_ns, held_bytes, events, ..Moment::default() });
            }
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.whole.memory_bytes()
    }
}
