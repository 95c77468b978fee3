//! Producer and player among NDN programs of a real network.

mod player;
mod server;
#[cfg(test)]
mod tests;

pub use player::CcnPlayerSettings;
pub use server::CcnServerSettings;
