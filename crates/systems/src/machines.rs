//! The two machines of a flow and the channels between them.

use crate::app::{App, ChannelId};
use crate::carrier::Carrier;

/// A channel that a flow begins with.
#[derive(Clone, PartialEq, Debug)]
pub struct Channel {
    /// Its number at both ends.
    pub id: ChannelId,
    /// Its carrier.
    pub carrier: Carrier,
}

/// A machine that flows share, at one side of the path.
///
/// Its listeners accept the channels that the players of its flows open; it opens channels to their servers
/// itself, by [`Io::open_to`](crate::Io::open_to). It has no information about its side.
pub struct RelayMachine {
    /// The listeners that it begins with, in order of their ids, which count from 0.
    pub channels: Vec<Channel>,
    /// The machine.
    pub app: Box<dyn App + Send>,
}

/// Both ends of a flow. The driver opens the channels that it begins with, then gives each machine `Input::Start`;
/// further ones the machines open.
pub struct Machines {
    /// Those that the flow begins with, in order of their ids, which count from 0.
    pub channels: Vec<Channel>,
    /// The end that `down` leads away from.
    pub server: Box<dyn App + Send>,
    /// The end that `down` leads to.
    pub player: Box<dyn App + Send>,
}
