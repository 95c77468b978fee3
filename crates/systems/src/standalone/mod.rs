//! A system's server, player and proxy outside trials, among strangers of a real network: what `streamgauge serve`,
//! `streamgauge play` and `streamgauge proxy` are told of a system, and the machines that they run.

mod player;
mod proxy;
mod server;
mod turn_away;

pub use player::{Playable, Player, PlayerFacts, Playing, Seen};
pub use proxy::{Answered, Proxied, Proxy, ProxyFacts, ProxyFault, Proxying};
pub use server::{Clients, Served, Server, ServerFacts, ServerFault, Service};
pub(crate) use turn_away::TurnAway;

use serde_json::{Map, Value};

/// What is wrong with settings: the field's name, and the fault with its remedy.
pub type ContentFault = (&'static str, String);

/// Settings of a preset as JSON, for who changes some by their names.
fn as_json<S: serde::Serialize>(settings: &S) -> Value {
    serde_json::to_value(settings).expect("settings are numbers, texts, lists and objects")
}

/// The figures of an object, by their names.
pub(crate) fn by_name(figures: Value) -> Map<String, Value> {
    if let Value::Object(figures) = figures { figures } else { Map::new() }
}

/// The names of what is told by name, in order.
pub(crate) const fn names<T, const N: usize>(named: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut found = [""; N];
    let mut place = 0;
    while place < N {
        found[place] = named[place].0;
        place += 1;
    }
    found
}
