//! Delay that differs from packet to packet, or from flow to flow.

use streamgauge_base::{Duration, FateSink, FlowId, Instant, Item, RandomStream, StageId};

use crate::heap::DueHeap;
use crate::schedule::starts_on;
use crate::spec::Change;
use crate::spec::{DelaySpec, Distribution, JitterSpec};
use crate::stage::{Departure, Stage};

/// A pipe with a length that jitters, or differs between flows. An item's delay is the base delay in force when it
/// enters, plus its flow's extra, plus a draw from the jitter's distribution while that is switched on, and never below
/// zero.
///
/// Where order is kept, an item that would overtake one before it leaves together with that one, which makes
/// the mean delay longer than the mean of the distribution. Items overtake only those of another flow, and
/// only if one of the two flows has an extra delay: the others share one pipe.
#[derive(Clone, Debug)]
pub struct VaryingDelay {
    id: StageId,
    delay: Duration,
    on: bool,
    jitter: Option<JitterSpec>,
    random: RandomStream,
    keep_order: bool,
    /// In order of flow, with the last due of each.
    flows: Vec<(FlowId, Duration, Instant)>,
    /// The last due of every other flow.
    rest: Instant,
    waiting: DueHeap,
}

impl VaryingDelay {
    /// Makes an empty pipe; its draws use `random` alone.
    pub fn new(id: StageId, spec: &DelaySpec, random: RandomStream) -> Self {
        let mut flows: Vec<_> =
            spec.flows.iter().map(|&(flow, extra)| (FlowId(flow), extra, Instant::ZERO)).collect();
        flows.sort_by_key(|&(flow, ..)| flow);
        VaryingDelay {
            id,
            delay: spec.initial(),
            on: spec.jitter.as_ref().is_some_and(|jitter| starts_on(&jitter.switches)),
            jitter: spec.jitter.clone(),
            random,
            keep_order: spec.jitter.as_ref().is_none_or(|jitter| jitter.keep_order),
            flows,
            rest: Instant::ZERO,
            waiting: DueHeap::default(),
        }
    }
}

/// Returns `by` ns later, or earlier if that is negative.
fn shifted(at: Instant, by: i64) -> Instant {
    let ns = Duration::from_nanos(by.unsigned_abs());
    if by < 0 { at - ns } else { at + ns }
}

impl Stage for VaryingDelay {
    fn enqueue(&mut self, now: Instant, item: Item, _fates: &mut impl FateSink) {
        let (extra, last) = match self.flows.binary_search_by_key(&item.flow, |&(flow, ..)| flow) {
            Ok(index) => {
                let (_, extra, last) = &mut self.flows[index];
                (*extra, last)
            }
            Err(_) => (Duration::ZERO, &mut self.rest),
        };
        let mut due = now + self.delay + extra;
        if let (true, Some(jitter)) = (self.on, &self.jitter) {
            due = shifted(due, jitter.distribution.draw(&mut self.random)).max(now);
        }
        if self.keep_order {
            due = due.max(*last);
            *last = due;
        }
        self.waiting.push(now, item, due);
    }

    fn dequeue(&mut self, now: Instant, fates: &mut impl FateSink) -> Option<Departure> {
        self.waiting.pop(now, self.id, fates)
    }

    fn apply(&mut self, now: Instant, change: Change, fates: &mut impl FateSink) {
        match change {
            Change::Delay(delay) => {
                self.delay = delay;
                fates.changed(self.id, now, "delay", delay.as_secs_f64(), "s");
            }
            Change::On(on) => {
                self.on = on;
                let size = self.jitter.as_ref().map_or(0.0, |jitter| jitter.distribution.size_s());
                fates.changed(self.id, now, "jitter", if on { size } else { 0.0 }, "s");
            }
            Change::Jitter(spread) => {
                let distribution = Distribution::Uniform { spread };
                match &mut self.jitter {
                    Some(jitter) => jitter.distribution = distribution,
                    None => {
                        self.jitter = Some(JitterSpec { distribution, keep_order: true, switches: vec![] })
                    }
                }
                self.on = true;
                fates.changed(self.id, now, "jitter", spread.as_secs_f64(), "s");
            }
            _ => {}
        }
    }

    fn next_event(&self) -> Option<Instant> {
        self.waiting.next_due()
    }

    fn least_stay(&self) -> Duration {
        let least = match (self.on, &self.jitter) {
            (true, Some(jitter)) => jitter.distribution.least(),
            _ => 0,
        };
        shifted(Instant::ZERO + self.delay, least).saturating_since(Instant::ZERO)
    }

    fn finish(&mut self, now: Instant, fates: &mut impl FateSink) {
        self.waiting.finish(now, self.id, fates);
    }
}
