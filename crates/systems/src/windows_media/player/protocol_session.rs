//! The interface between a protocol and a session.

use streamgauge_base::Instant;

use super::choice::Taken;
use super::core::Core;
use crate::app::{ChannelId, Input, Io};

/// A protocol, on its connection and on the channels that it opens beside it. It reports a fatal failure to
/// [`Core::fail`].
pub trait ProtocolSession: Send {
    /// Returns its connection.
    fn channel(&self) -> ChannelId;

    /// Begins the session, as the connection is open.
    fn begin(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io);

    /// Handles an input on the connection or beside it.
    fn handle(&mut self, now: Instant, input: &Input<'_>, core: &mut Core, io: &mut dyn Io);

    /// Continues with steps that waited for their time while media is being set up.
    fn set_up_what_is_due(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io);

    /// Returns whether it waits for a time of its own: silence is no fault.
    fn waits(&self) -> bool;

    /// Requests media at its own rate from now on.
    fn slow_down(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io);

    /// Requests media faster than it plays, at [`Refill::wanted_bps`](super::starving::Refill::wanted_bps). Protocols
    /// that cannot ask for that while they play continue as before.
    fn refill(&mut self, _now: Instant, _core: &mut Core, _io: &mut dyn Io) {}

    /// Replaces the selection `before` by `after`.
    fn switch(&mut self, now: Instant, before: Taken, after: Taken, core: &mut Core, io: &mut dyn Io);

    /// Reports missing packets, if it is time.
    fn say_missing(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io);

    /// Asks the server to hold or to continue, if its state differs from the wanted one.
    fn steer(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io);

    /// Drops the connection, which is closed.
    fn forget(&mut self);

    /// Sends the goodbye. Returns whether the server is to answer it; else the connection is closed.
    fn leave(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) -> bool;

    /// Closes its channels, established or not.
    fn close(&mut self, io: &mut dyn Io);

    /// Returns when it is next due.
    fn wake(&self, core: &Core) -> Option<Instant>;
}
