use proptest::prelude::*;

use super::super::telling::{came, ladder, made, playing, s, start};
use super::super::{Ladder, Situation, Tuning};
use super::plan::{Best, Node, Outlook, Planner};

/// Every plan, one after the other.
fn enumerated(outlook: &Outlook<'_>, step: usize, node: Node, first: usize, best: &mut Option<Best>) {
    if step == outlook.horizon() {
        let better = best.is_none_or(|best: Best| {
            node.quality > best.quality || node.quality == best.quality && first > best.level
        });
        if better {
            *best = Some(Best { level: first, quality: node.quality });
        }
        return;
    }
    for level in 0..=outlook.ladder.top() {
        let kbps = outlook.ladder.bps(level) / 1e3;
        let before = node.level.map_or(kbps, |before| outlook.ladder.bps(before) / 1e3);
        let one = node.and(level, kbps, before, outlook.fetch_s(step, level), outlook);
        enumerated(outlook, step + 1, one, if step == 0 { level } else { first }, best);
    }
}

fn outlook(ladder: &Ladder, before: usize, buffer_s: f64, bps: f64) -> Outlook<'_> {
    Outlook { ladder, segment: 10, before: Some(before), buffer_s, most_s: 30.0, bps }
}

/// Two segments are left, of 2 s, at 100 or 400 kbit/s, 400 before, 4 s of buffer, 200 kbit/s. Both low: 100 - 300 + 100 =
/// -100. Both high: 4 s each, 800 less 3000 times the 2 s that the second lacks. High, then low: 400, then 1 s of 2 s held,
/// 100 - 300: 200. Low, then high: 1 s, then 5 s held for 4: 100 - 300 + 400 - 300 = -100.
#[test]
fn a_plan_is_worth_its_rates_less_its_steps_and_stalls() {
    let ladder = Ladder { segments: Some(12), ..ladder(&[100, 400], 2) };
    let best = Planner::default().best(&outlook(&ladder, 1, 4.0, 200e3));
    assert_eq!(best, Best { level: 1, quality: 200.0 });
    // With 2 s of buffer high stalls for 2 s at once.
    assert_eq!(Planner::default().best(&outlook(&ladder, 1, 2.0, 200e3)).level, 0);
    // With 6 s both are high; but not where no more than 5 s are held.
    assert_eq!(Planner::default().best(&outlook(&ladder, 1, 6.0, 200e3)), Best { level: 1, quality: 800.0 });
    let full = Outlook { most_s: 5.0, ..outlook(&ladder, 1, 6.0, 200e3) };
    assert_eq!(Planner::default().best(&full), Best { level: 1, quality: 200.0 });
}

/// Predictions 1000, then 1000: a throughput of 500 is 100 % off, hence half of the harmonic mean of both is used.
#[test]
fn robust_mpc_takes_its_largest_error_off() {
    let ladder = ladder(&[100, 400], 2);
    let estimate = |name| {
        let mut rule = made(name, Tuning::default());
        assert_eq!(rule.decide(&start(&ladder)).level, 0);
        for kbps in [1000.0, 500.0] {
            rule.fetched(&came(0, kbps, 0.0, 0.1, 1.0), &playing(&ladder, 0, 4.0));
            rule.decide(&playing(&ladder, 0, 4.0));
        }
        rule.decide(&playing(&ladder, 0, 4.0)).estimate.unwrap().as_bps()
    };
    assert_eq!((estimate("mpc"), estimate("robust-mpc")), (666_666, 333_333));
}

#[test]
fn much_throughput_means_the_highest_and_little_the_lowest() {
    let ladder = ladder(&[100, 400, 1600], 2);
    let level = |kbps, before, buffer_s| {
        let mut rule = made("mpc", Tuning::default());
        rule.decide(&start(&ladder));
        rule.fetched(&came(0, kbps, 0.0, 0.1, 1.0), &playing(&ladder, before, buffer_s));
        let now = Situation { target: s(20.0), ..playing(&ladder, before, buffer_s) };
        rule.decide(&now).level
    };
    assert_eq!((level(20_000.0, 0, 2.0), level(50.0, 2, 2.0), level(500.0, 1, 10.0)), (2, 0, 1));
}

/// A ladder of so many levels as players have and a link anywhere among them: no decision looks at more than a small part of
/// the 12^5 plans.
#[test]
fn few_beginnings_are_looked_at() {
    let rates = [145, 365, 730, 1100, 2000, 3000, 4500, 6000, 7800, 10_000, 14_000, 20_000];
    let ladder = ladder(&rates, 4);
    let mut planner = Planner::default();
    let mut most = 0;
    for kbps in (1..=60).map(|step| f64::from(step) * 400.0) {
        for before in 0..rates.len() {
            for buffer_s in [0.0, 2.0, 5.0, 10.0, 20.0, 30.0] {
                planner.best(&outlook(&ladder, before, buffer_s, kbps * 1e3));
                most = most.max(planner.looked_at);
            }
        }
    }
    assert!(most < 4000, "{most}");
}

proptest! {
    #[test]
    fn the_best_plan_is_that_of_an_enumeration(
        rates in prop::collection::btree_set(50u64..12_000, 1..7),
        sizes in prop::collection::vec(prop::collection::vec(0.3..2.0f64, 16), 7),
        is_told in any::<bool>(),
        segment in 0usize..14, before in prop::option::of(0usize..7), buffer_s in 0.0..40.0f64,
        most_s in 4.0..40.0f64, kbps in 10.0..20_000.0f64,
    ) {
        let kbps_of: Vec<u64> = rates.into_iter().collect();
        let mut ladder = Ladder { segments: Some(14), ..ladder(&kbps_of, 2) };
        if is_told {
            let told = kbps_of.iter().zip(&sizes);
            ladder.sizes = told.map(|(&kbps, sizes)| {
                sizes.iter().map(|times| (kbps as f64 * 250.0 * times) as u64).collect()
            }).collect();
        }
        let before = before.map(|level| level.min(ladder.top()));
        let outlook = Outlook { ladder: &ladder, segment, before, buffer_s, most_s, bps: kbps * 1e3 };
        let mut best = None;
        enumerated(&outlook, 0, Node::start(&outlook), 0, &mut best);
        prop_assert_eq!(Some(Planner::default().best(&outlook)), best);
    }
}
