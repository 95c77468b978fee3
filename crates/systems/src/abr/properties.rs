//! Properties of all rules, for any reports.

use proptest::prelude::*;

use super::telling::{came, coming, ladder, made, playing, s, start};
use super::{Decision, Ladder, Live, RULES, Situation, Tuning};

/// Rules that choose by the measured throughput.
const BY_RATE: [&str; 10] = [
    "harmonic",
    "hlsjs",
    "shaka",
    "exoplayer",
    "gstreamer",
    "vlc-2012",
    "vlc-2011",
    "vlc-3-rate",
    "festive",
    "panda",
];

/// A segment in a session where anything may happen.
#[derive(Clone, Debug)]
struct Step {
    kbps: f64,
    wait_s: f64,
    buffer_s: f64,
    /// The part of the segment that had arrived when the rule was asked whether to give it up.
    came: f64,
    ran_dry: bool,
    live: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0.1..1e5f64, 0.0..3.0f64, 0.0..120.0f64, 0.0..1.0f64, any::<bool>(), any::<bool>());
    let step = step.prop_map(|(kbps, wait_s, buffer_s, came, ran_dry, live)| {
        let buffer_s = if buffer_s > 60.0 { 0.0 } else { buffer_s };
        Step { kbps, wait_s, buffer_s, came, ran_dry, live }
    });
    prop::collection::vec(step, 1..30)
}

/// A rule's decisions in such a session.
fn session(name: &str, tuning: Tuning, ladder: &Ladder, steps: &[Step]) -> Vec<Decision> {
    let mut rule = made(name, tuning);
    let (mut decisions, mut now_s, mut level) = (Vec::new(), 0.0, None);
    for (segment, step) in steps.iter().enumerate() {
        let live = step.live.then(|| Live { latency: s(4.0), target: s(3.0), speed: 1.05 });
        let at = |now_s: f64, level| Situation {
            now: s(now_s),
            segment,
            level,
            buffer: s(step.buffer_s),
            playing: segment > 0,
            live,
            ..start(ladder)
        };
        let mut decision = rule.decide(&at(now_s, level));
        decisions.push(decision.clone());
        rule.idled(decision.wait);
        now_s += decision.wait.as_secs_f64();
        let kbit = |level| ladder.bytes(level, segment) / 125.0;
        let asked_s = now_s;
        now_s += step.wait_s + step.came * kbit(decision.level) / step.kbps;
        let progress = coming(
            decision.level,
            kbit(decision.level) * step.came,
            kbit(decision.level),
            asked_s,
            step.wait_s,
        );
        if let Some(other) = rule.abandon(&progress, &at(now_s, level)) {
            // Shaka chooses during a transfer, and may give up the segment for a higher level too
            // (`simple_abr_manager.js`).
            let is_lower = other.level < decision.level || name == "shaka" && other.level != decision.level;
            assert!(is_lower, "{name}: {other:?} in place of {}", decision.level);
            let given_up =
                came(decision.level, kbit(decision.level) * step.came, asked_s, step.wait_s, now_s - asked_s);
            rule.fetched(&super::Fetched { abandoned: true, ..given_up }, &at(now_s, level));
            decisions.push(other.clone());
            decision = other;
        }
        let took_s = step.wait_s + kbit(decision.level) / step.kbps;
        level = Some(decision.level);
        let whole = came(decision.level, kbit(decision.level), now_s, step.wait_s, took_s);
        now_s += took_s;
        if step.ran_dry {
            rule.ran_dry();
        }
        rule.fetched(&whole, &at(now_s, level));
    }
    decisions
}

proptest! {
    #[test]
    fn a_level_of_the_ladder_is_decided_whatever_happens_and_again(
        rates in prop::collection::btree_set(50u64..20_000, 1..8), steps in steps(), seed in any::<u64>(),
        share in prop::option::of(0.1..2.0f64), segment_s in 1u64..11, abandons in any::<bool>(),
    ) {
        let rates: Vec<u64> = rates.into_iter().collect();
        let ladder = ladder(&rates, segment_s);
        let tuning = Tuning { seed, safety_factor: share, abandons, ..Tuning::default() };
        for one in RULES {
            let decisions = session(one.name, tuning, &ladder, &steps);
            prop_assert_eq!(&decisions, &session(one.name, tuning, &ladder, &steps), "{}", one.name);
            prop_assert!(decisions.iter().all(|decision| decision.level <= ladder.top()), "{}", one.name);
            prop_assert!(decisions.iter().all(|decision| !decision.why.is_empty()), "{}", one.name);
            prop_assert!(abandons || decisions.len() == steps.len(), "{}", one.name);
        }
    }

    /// Segments of 4 MB, so that all players have seen enough of them. hls.js is the exception. Where its buffer is
    /// short of a segment, a level that is in time at a higher throughput replaces the choice for the case that none
    /// is.
    #[test]
    fn more_throughput_never_means_a_lower_level(
        kbps in 100.0..30_000.0f64, times in 1.001..3.0f64, before in 0usize..6, buffer_s in 0.0..40.0f64,
        segments in 1usize..8,
    ) {
        let ladder = ladder(&[200, 600, 1500, 3000, 6000, 12_000], 4);
        for name in BY_RATE {
            let buffer_s = if name == "hlsjs" { buffer_s.max(4.1) } else { buffer_s };
            let level = |kbps: f64| {
                let mut rule = made(name, Tuning::default());
                rule.decide(&start(&ladder));
                for segment in 0..segments {
                    let at = Situation { now: s(9.0 * segment as f64 + 9.0), ..playing(&ladder, before, buffer_s) };
                    rule.fetched(&came(before, 32_000.0, 9.0 * segment as f64, 0.0, 32_000.0 / kbps), &at);
                }
                rule.decide(&playing(&ladder, before, buffer_s)).level
            };
            prop_assert!(level(kbps) <= level(kbps * times), "{}", name);
        }
    }

    #[test]
    fn the_first_level_is_that_of_the_throughput_that_was_set(kbps in 1000u64..30_000) {
        let ladder = ladder(&[200, 600, 1500, 3000, 6000, 12_000], 4);
        let initial = Some(streamgauge_base::BitRate::from_bps(kbps * 1000));
        for one in RULES.iter().filter(|one| one.name != "fixed") {
            let decide = |initial| made(one.name, Tuning { initial, ..Tuning::default() }).decide(&start(&ladder));
            let (set, own) = (decide(initial), decide(None));
            prop_assert!(set.level >= own.level && ladder.bps(set.level) <= kbps as f64 * 1e3, "{}", one.name);
            prop_assert!(set.level > 0 || kbps < 1500, "{}", one.name);
        }
    }
}
