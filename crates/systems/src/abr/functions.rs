//! Rules that are functions of the user's: `FILE.py:NAME`. Sim calls them in its own process, a node in a process beside it.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::{Fetched, Rule, Situation, Tuning};

/// Makes the rule that is a function of that name. Errors: a description of the fault.
pub type Maker = fn(&str, &Tuning) -> Result<Box<dyn Rule>, String>;

static MAKER: OnceLock<Maker> = OnceLock::new();

/// Rules that are functions are made by `maker` from now on, in this process. The first one stays.
pub fn call_functions_by(maker: Maker) {
    let _ = MAKER.set(maker);
}

/// Whether a rule's name is a function's.
pub fn is_function(name: &str) -> bool {
    name.rsplit_once(".py:").is_some_and(|(file, function)| !file.is_empty() && !function.is_empty())
}

/// The maker of a function of that name.
pub(super) fn maker(name: &str) -> Result<Maker, String> {
    let why = || format!("{name} is a function of Python, which this program does not call");
    MAKER.get().copied().ok_or_else(why)
}

/// The situation that a function decides in, by the names of docs/abr.md; `fetched` is apart, for it grows.
pub fn situation_as_json(now: &Situation<'_>) -> Value {
    let ladder = now.ladder;
    let sizes = (0..ladder.rates.len()).map(|level| ladder.bytes(level, now.segment));
    json!({
        "now_s": now.now.as_secs_f64(),
        "segment": now.segment,
        "segment_s": ladder.segment.as_secs_f64(),
        "rates_bps": ladder.rates.iter().map(|rate| rate.as_bps()).collect::<Vec<_>>(),
        "sizes_bytes": sizes.collect::<Vec<_>>(),
        "level": now.level,
        "buffer_s": now.buffer.as_secs_f64(),
        "target_s": now.target.as_secs_f64(),
        "playing": now.playing,
        "latency_s": now.live.map(|live| live.latency.as_secs_f64()),
    })
}

/// A received segment, as an entry of `fetched`.
pub fn fetched_as_json(fetched: &Fetched) -> Value {
    json!({
        "segment": fetched.segment,
        "level": fetched.level,
        "bytes": fetched.bytes,
        "asked_s": fetched.asked.as_secs_f64(),
        "first_byte_s": fetched.first_byte.as_secs_f64(),
        "done_s": fetched.done.as_secs_f64(),
        "throughput_bps": fetched.throughput_bps(),
        "abandoned": fetched.abandoned,
    })
}

/// Checks the level that a function chose.
///
/// # Errors
///
/// The levels that there are.
pub fn chosen_level(level: i64, now: &Situation<'_>) -> Result<usize, String> {
    let count = now.ladder.rates.len();
    let within = usize::try_from(level).ok().filter(|&level| level < count);
    within.ok_or_else(|| format!("it chose level {level}, and there are 0 to {}", count - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_by_its_file() {
        for (name, is) in [
            ("rule.py:choose", true),
            ("/a b/c.py:F", true),
            ("bola", false),
            (".py:x", false),
            ("a.py:", false),
        ] {
            assert_eq!(is_function(name), is, "{name}");
        }
    }
}
