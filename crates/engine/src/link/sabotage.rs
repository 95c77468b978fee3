//! Fault injection. Each fault exists to prove that a validity check catches it, and does nothing unless a
//! configuration names it.

use std::time::Duration;

use serde::Deserialize;
use streamgauge_base::{BitRate, Duration as PathTime, FlowId};
use streamgauge_path::spec::{Limit, RateSpec, StageKind, StageSpec};

/// A fault, and in brackets the check that must catch it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// One row in a hundred is not recorded (conservation).
    DropRow,
    /// Small rings, and pauses in reading them (ring drops, lateness).
    OverflowRing,
    /// One packet in two hundred is offered to the kernel too long for the interface (send errors, conservation).
    FailSend,
    /// Stamps are read 2 ms too early from the trial's second 1 on (clock drift).
    SkewClock,
    /// Half the rate asked for (pre-flight: rate).
    HalfRate,
    /// A queue ten times as long (pre-flight: limit).
    IgnoreLimit,
    /// The first two flows change names (witness counts).
    SwapFlows,
    /// 2 % less than the rate asked for (pre-flight: rate).
    WrongRate,
    /// 1 ms more than each delay asked for (pre-flight: delay).
    WrongDelay,
    /// As `wrong_rate`, but only once the trial has started (the record against the plan).
    LateWrongRate,
    /// As `wrong_delay`, but only once the trial has started (the record against the plan).
    LateWrongDelay,
    /// As `ignore_limit`, but only once the trial has started (the record against the plan).
    LateIgnoreLimit,
    /// Packets of the trial are sent 1 ms later than recorded, and not counted as late (arrivals at the ends).
    UnsaidDelay,
}

/// The delay that `WrongDelay` and `UnsaidDelay` add.
const WRONG_DELAY: PathTime = PathTime::from_millis(1);

/// The faults in force.
#[derive(Clone, Debug, Default)]
pub struct Sabotage {
    faults: Vec<Fault>,
    rows: u64,
    sends: u64,
}

impl Sabotage {
    /// Returns these, and no others.
    pub fn new(faults: &[Fault]) -> Self {
        Sabotage { faults: faults.to_vec(), ..Sabotage::default() }
    }

    fn has(&self, fault: Fault) -> bool {
        !self.faults.is_empty() && self.faults.contains(&fault)
    }

    /// Returns the stages as they are built, for the time before the trial (`rehearsal`) or for the trial.
    pub fn stages(&self, mut stages: Vec<StageSpec>, rehearsal: bool) -> Vec<StageSpec> {
        let in_force = |always, late| self.has(always) || (!rehearsal && self.has(late));
        let percent = match () {
            () if self.has(Fault::HalfRate) => 50,
            () if in_force(Fault::WrongRate, Fault::LateWrongRate) => 98,
            () => 100,
        };
        let slow = |rate: &mut BitRate| *rate = BitRate::from_bps(rate.as_bps() * percent / 100);
        for stage in &mut stages {
            if let StageKind::Delay(spec) = &mut stage.kind
                && in_force(Fault::WrongDelay, Fault::LateWrongDelay)
            {
                spec.delay += WRONG_DELAY;
            }
            let StageKind::Bottleneck(bottleneck) = &mut stage.kind else { continue };
            if percent != 100 {
                match &mut bottleneck.rate {
                    RateSpec::Constant(rate) => slow(rate),
                    RateSpec::Steps(steps) => steps.iter_mut().for_each(|(_, rate)| slow(rate)),
                    RateSpec::Square { first, second, .. } => {
                        slow(first);
                        slow(second);
                    }
                    RateSpec::Opportunities(trace) => trace.bytes = trace.bytes.div_ceil(2),
                }
            }
            if in_force(Fault::IgnoreLimit, Fault::LateIgnoreLimit) {
                let stretched = match bottleneck.queue.limit() {
                    Limit::Bytes(bytes) => Limit::Bytes(bytes * 10),
                    Limit::Packets(packets) => Limit::Packets(packets * 10),
                    Limit::Time(time) => Limit::Time(time * 10),
                };
                bottleneck.queue = bottleneck.queue.clone().with_limit(stretched);
            }
        }
        stages
    }

    /// Frames a ring holds.
    pub fn ring_frames(&self, asked: usize) -> usize {
        if self.has(Fault::OverflowRing) { 1 } else { asked }
    }

    /// Returns how long to sleep before the rings are read, `since_start` ns after the trial's start.
    pub fn pause(&self, since_start: i64) -> Option<Duration> {
        let due =
            self.has(Fault::OverflowRing) && since_start > 0 && since_start % 1_000_000_000 < 20_000_000;
        due.then_some(Duration::from_millis(500))
    }

    /// Returns the flow under which a packet is recorded.
    #[inline]
    pub fn flow(&self, flow: FlowId) -> FlowId {
        match flow.0 {
            code @ (0 | 1) if self.has(Fault::SwapFlows) => FlowId(1 - code),
            _ => flow,
        }
    }

    /// Returns whether this row is lost.
    #[inline]
    pub fn loses_row(&mut self) -> bool {
        self.has(Fault::DropRow) && {
            self.rows += 1;
            self.rows.is_multiple_of(100)
        }
    }

    /// Returns whether this send must fail.
    #[inline]
    pub fn fails_send(&mut self) -> bool {
        self.has(Fault::FailSend) && {
            self.sends += 1;
            self.sends.is_multiple_of(200)
        }
    }

    /// Returns the unreported delay of the link's sends, ns.
    #[inline]
    pub fn unsaid_delay_ns(&self) -> i64 {
        if self.has(Fault::UnsaidDelay) { WRONG_DELAY.as_nanos() as i64 } else { 0 }
    }

    /// Returns the error of the clock's offset `since_start` ns after the trial's start.
    #[inline]
    pub fn clock_skew_ns(&self, since_start: i64) -> i64 {
        if self.has(Fault::SkewClock) && since_start > 1_000_000_000 { 2_000_000 } else { 0 }
    }
}
