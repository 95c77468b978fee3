//! A system's server, player and proxy outside trials, among strangers of a real network: the system's
//! descriptions for `streamgauge serve`, `streamgauge play` and `streamgauge proxy`, and the machines that
//! they run.

mod player;
mod proxy;
mod server;
mod turn_away;

pub use player::{Playable, Player, PlayerFacts, Playing, Seen, Shows};
pub use proxy::{Answered, Proxied, Proxy, ProxyFacts, ProxyFault, Proxying};
pub use server::{Clients, Served, Server, ServerFacts, ServerFault, Service};
pub(crate) use turn_away::TurnAway;

use serde_json::{Map, Value};

/// A fault in settings: the field's name, and the fault with its remedy.
pub type ContentFault = (&'static str, String);

/// Returns the settings of a preset as JSON, for callers that change some by their names.
fn as_json<S: serde::Serialize>(settings: &S) -> Value {
    serde_json::to_value(settings).expect("settings are numbers, texts, lists and objects")
}

/// Returns the figures of an object, by their names.
pub(crate) fn by_name(figures: Value) -> Map<String, Value> {
    if let Value::Object(figures) = figures { figures } else { Map::new() }
}

/// Returns a known rate, bit/s: 0 means an unstated one.
pub(crate) fn known(bps: f64) -> Option<f64> {
    Some(bps).filter(|bps| *bps > 0.0)
}

/// Returns a number of things for people, by a noun with a plural in s: `1 stall`, `2 stalls`.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns levels in kbit/s for people: the chosen one, and the offered ones.
pub(crate) fn levels_in_words(taken_bps: Option<f64>, offered_bps: &[f64]) -> String {
    let kbps = |bps: f64| known(bps).map_or("unknown".into(), |bps| format!("{:.0}", bps / 1e3));
    let taken = match taken_bps.and_then(known) {
        Some(bps) => format!("{} kbit/s", kbps(bps)),
        None if taken_bps.is_some() => "an unknown rate".into(),
        None => "none".into(),
    };
    let offered: Vec<_> = offered_bps.iter().copied().map(kbps).collect();
    format!("{taken} at the end, of {}", if offered.is_empty() { "none".into() } else { offered.join(", ") })
}

/// Returns the names of named items, in order.
pub(crate) const fn names<T, const N: usize>(named: &[(&'static str, T); N]) -> [&'static str; N] {
    let mut found = [""; N];
    let mut place = 0;
    while place < N {
        found[place] = named[place].0;
        place += 1;
    }
    found
}
