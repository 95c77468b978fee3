//! What a protocol does for a session.

use streamgauge_base::Instant;

use super::choice::Taken;
use super::core::Core;
use crate::app::{ChannelId, Input, Io};

/// A protocol, on its connection and on what it opens beside it. What cannot go on it tells [`Core::fail`].
pub trait Talk: Send {
    /// Its connection.
    fn channel(&self) -> ChannelId;

    /// The connection is there.
    fn begin(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io);

    /// Something comes or can go, on the connection or beside it.
    fn handle(&mut self, now: Instant, input: &Input<'_>, core: &mut Core, io: &mut dyn Io);

    /// Goes on with what waited for its time while media is being set up.
    fn set_up_what_is_due(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io);

    /// It waits for a time of its own: silence is no fault.
    fn waits(&self) -> bool;

    /// Media is wanted at its own rate from now on.
    fn slow_down(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io);

    /// So much of the pictures in the place of so much.
    fn switch(&mut self, now: Instant, before: Taken, after: Taken, core: &mut Core, io: &mut dyn Io);

    /// Says what is missing, if it is time.
    fn say_missing(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io);

    /// Asks the server to hold or to go on, if it does not do what is wanted.
    fn steer(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io);

    /// The connection is gone.
    fn forget(&mut self);

    /// Says goodbye. Says whether the server is to answer it; else the connection is closed.
    fn leave(&mut self, now: Instant, core: &mut Core, io: &mut dyn Io) -> bool;

    /// Closes what it has opened, be it there yet or not.
    fn close(&mut self, io: &mut dyn Io);

    /// When it wants to do something.
    fn wake(&self, core: &Core) -> Option<Instant>;
}
