//! Events of a machine: a frame shown, a level changed and why.

use std::borrow::Cow;

use crate::item::FlowId;
use crate::time::Instant;

/// One thing that happened, with its value, unit and reason.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// Its flow; `None` for the path and the trial.
    pub flow: Option<FlowId>,
    /// Its name, in the field's words: `frame_shown`, `rtcp_fraction_lost`, `rate`.
    pub name: Cow<'static, str>,
    /// How much, in `unit`; `None` where there is nothing to count.
    pub value: Option<f64>,
    /// SI unit or `1`; empty where there is no value.
    pub unit: Cow<'static, str>,
    /// Its reason, with the figures behind the decision; empty if there is none.
    pub reason: Cow<'static, str>,
}

/// Receives events in any order; the record sorts them.
pub trait EventSink {
    /// Records one event.
    fn event(&mut self, event: Event);
}

impl EventSink for () {
    fn event(&mut self, _: Event) {}
}

impl EventSink for Vec<Event> {
    fn event(&mut self, event: Event) {
        self.push(event);
    }
}
