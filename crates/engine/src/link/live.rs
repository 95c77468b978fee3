//! The trial shown while it runs, and requested changes of its path.

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};
use streamgauge_live::{Moment, Options, Watched};
use streamgauge_path::most_packets;
use streamgauge_path::spec::PathSpec;
use streamgauge_plan::{Legend, direction_name, mark_event};

use super::MOST_ARRIVALS_PER_S;
use super::clocked_path::Trial;
use super::config::Config;
use super::emulator::{Emulator, Running};
use super::slab::Slab;
use crate::error::{EngineError, Result};
use crate::lines::{Commands, bad_field};
use crate::sys::{available_memory_bytes, monotonic_ns};

/// From the time at which a change is read until it takes effect: all packets stamped before that have been
/// taken in by then, and no arrival finds the path's time past its own.
const LEAD_NS: i64 = 5_000_000;
/// Events that a sample shows at most.
const MOST_EVENTS: usize = 200;

/// Returns the socket of the configuration, if there is one.
pub fn open(config: &Config, commands: &Commands) -> Result<Option<Watched>> {
    let Some(fd) = config.live_fd else { return Ok(None) };
    let flags = nix::fcntl::FcntlArg::F_GETFD;
    // SAFETY: only asked whether it is open.
    let is_open = fd > 2 && nix::fcntl::fcntl(unsafe { BorrowedFd::borrow_raw(fd) }, flags).is_ok();
    if !is_open {
        return Err(bad_field("live_fd", "no such descriptor is open").remedy("pass an open socket on"));
    }
    // SAFETY: it is open, was inherited for this, and has no other user here.
    let socket = UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let legend = Legend::of(&config.plan);
    let address = |stage: &streamgauge_plan::StageEntry| {
        format!("path.{}.{}", direction_name(stage.direction), stage.name)
    };
    let options = Options {
        flows: legend.flows.iter().map(|flow| flow.name.clone()).collect(),
        stages: legend.stages.iter().map(address).collect(),
        path: config.plan.path.clone(),
        room: Some(Box::new(room)),
        wake: Box::new(commands.waker()),
    };
    Watched::start(socket, options).map(Some).map_err(|e| EngineError::io("start a thread", &e))
}

/// Returns how many packets the path can hold, or that there is no memory for them.
fn room(path: &PathSpec) -> std::result::Result<u64, String> {
    let most = [&path.down, &path.up].map(|stages| most_packets(stages, MOST_ARRIVALS_PER_S));
    let most = most[0].saturating_add(most[1]);
    let needed = most.saturating_mul(Slab::bytes_a_packet() as u64);
    match available_memory_bytes() {
        Some(available) if needed > available => Err(format!(
            "the path could then hold {most} packets, {} MB, and {} MB are free; ask for less",
            needed / 1_000_000,
            available / 1_000_000
        )),
        _ => Ok(most),
    }
}

impl Emulator {
    /// Shows data that are due, and reads requests if `asked`; returns true if that is to end.
    pub fn show(&mut self, asked: bool) -> bool {
        let (late_over_service, own_losses, clamped) = self.health();
        let Some(Running { clocked_paths, trial, t0, .. }) = &mut self.running else { return false };
        let Some(mut live) = trial.live.take() else { return false };
        let now = monotonic_ns();
        let mut ends = false;
        while asked && let Some(one) = live.next_asked() {
            if now < *t0 {
                live.refused(&one, "the trial has not begun; ask again");
                continue;
            }
            ends |= one.stop;
            // No two requests at one time: a plan could not order them.
            trial.steered_at = (now + LEAD_NS).max(trial.steered_at + 1);
            let due = trial.steered_at;
            let at = one.changes.iter().fold((now - *t0) as u64, |_, &(way, place, change)| {
                clocked_paths.schedule(way, place, due, change)
            });
            if let Some(mark) = &one.mark {
                trial.events.push(mark_event(clocked_paths.both[0].instant(now), mark));
                trial.marks.push(((now - *t0) as u64, mark.clone()));
            }
            self.slab.allow(one.room.unwrap_or(0) as usize);
            live.done(&one, at);
        }
        let at_ns = (now - *t0).max(0) as u64;
        if live.is_due(at_ns) {
            let held_bytes = clocked_paths.held_bytes();
            let events = trial.unshown(MOST_EVENTS);
            let counted = Moment { late_over_service, own_losses, clamped, ..Moment::default() };
            live.offer(Moment { at_ns, held_bytes, events, ..counted });
        }
        trial.live = Some(live);
        ends
    }
}

/// Returns the last sample, and every change that took effect, as the plan of another run takes it.
pub fn finish(trial: &mut Trial, path: &PathSpec, duration_ns: i64, health: (u64, u64, u64)) -> Value {
    let Some(live) = trial.live.take() else { return json!([]) };
    let stages = [&path.down, &path.up];
    let rows = live.applied().iter().map(|&(at, way, place, change)| {
        let (dir, stage) = (["down", "up"][way], &stages[way][place].name);
        json!({"t_ns": at, "dir": dir, "stage": stage, "change": change})
    });
    let marks = trial.marks.iter().map(|(at, mark)| json!({"t_ns": at, "mark": mark}));
    let steered = rows.chain(marks).collect();
    let (late_over_service, own_losses, clamped) = health;
    let events = trial.unshown(MOST_EVENTS);
    let at_ns = duration_ns.max(0) as u64;
    live.finish(Moment { at_ns, late_over_service, own_losses, clamped, events, ..Moment::default() });
    steered
}
