//! Origin and player among strangers of a real network.

mod player;
mod server;

pub use server::DashServerSettings;
