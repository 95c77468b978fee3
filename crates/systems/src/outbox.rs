//! Events that a machine has yet to hand over.

use std::borrow::Cow;
use std::collections::VecDeque;

use streamgauge_base::{Event, Instant};

/// The event of a player at the end of its content: all of it was shown or given up. A trial with `until:
/// {media_end: FLOW}` ends at it.
pub const MEDIA_END: &str = "media_end";

#[derive(Default)]
pub(crate) struct Outbox(VecDeque<Event>);

impl Outbox {
    /// Adds an event. The driver fills in its flow.
    pub fn say(
        &mut self,
        at: Instant,
        name: &'static str,
        value: impl Into<Option<f64>>,
        unit: &'static str,
        reason: impl Into<Cow<'static, str>>,
    ) {
        self.0.push_back(Event {
            at,
            flow: None,
            name: Cow::Borrowed(name),
            value: value.into(),
            unit: Cow::Borrowed(unit),
            reason: reason.into(),
        });
    }

    pub fn next(&mut self) -> Option<Event> {
        self.0.pop_front()
    }
}
