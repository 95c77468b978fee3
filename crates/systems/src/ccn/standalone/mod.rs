//! Producer, player and proxy among NDN programs of a real network.

mod consumer;
mod player;
mod proof;
mod proxy;
mod server;
#[cfg(test)]
mod tests;

pub use player::CcnPlayerSettings;
pub use proxy::CcnProxySettings;
pub use server::CcnServerSettings;
