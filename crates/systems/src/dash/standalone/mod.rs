//! Origin and player among strangers of a real network.

mod player;
mod server;

pub(crate) use player::{PLAYERS, Tally, player_of, seen};
pub use server::DashServerSettings;
pub(crate) use server::{LadderShelf, content_type_of};
