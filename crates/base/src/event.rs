//! What a machine says of itself: a frame shown, a level changed and why.

use std::borrow::Cow;

use crate::item::FlowId;
use crate::time::Instant;

/// One thing that happened, with its value, unit and reason.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// Whose; `None` for the path and the trial.
    pub flow: Option<FlowId>,
    /// What, in the field's words: `frame_shown`, `rtcp_fraction_lost`, `rate`.
    pub name: Cow<'static, str>,
    /// How much, in `unit`; `None` where there is nothing to count.
    pub value: Option<f64>,
    /// SI unit or `1`; empty where there is no value.
    pub unit: Cow<'static, str>,
    /// Why, with the figures the decision was taken on; empty if there is nothing to say.
    pub reason: Cow<'static, str>,
}

/// Takes events in any order; the record sorts them.
pub trait EventSink {
    /// One event.
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
