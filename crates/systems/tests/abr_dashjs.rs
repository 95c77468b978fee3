//! The rules of dash.js compared with those of dash.js 5.2.1 itself, segment by segment; the README of
//! `data/abr` describes its content.

mod abr_session;

use std::collections::BTreeMap;

use abr_session::{levels, same};
use streamgauge_systems::abr::Tuning;

/// dash.js's `buffer.bufferTimeDefault`, which did not depend on the session's buffer.
const BUFFER_S: u64 = 18;

/// Resource Timing's bytes for a head, which the rules add. In those sessions the body alone was the transfer size.
const HEAD_BYTES: u64 = 300;

const DECISIONS: &str = include_str!("data/abr/dashjs.txt");

/// For each rule how many levels are dash.js's, of how many, if `by` decides in place of it.
fn agreement(by: impl Fn(&str) -> (String, Tuning)) -> BTreeMap<String, (usize, usize)> {
    let mut rules: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for line in DECISIONS.lines() {
        let (name, theirs) = line.split_once(' ').unwrap();
        let [trace, movie, rule, buffer_s, live] =
            name.split('-').chain([""]).take(5).collect::<Vec<_>>()[..]
        else {
            panic!("{name}")
        };
        let rule = if matches!(rule, "l2a" | "lolp") { rule.into() } else { format!("dashjs-{rule}") };
        let (by, tuning) = by(&rule);
        let case = (trace, movie, buffer_s.parse().unwrap(), live == "live");
        let ours = levels(&by, &tuning, case, BUFFER_S, HEAD_BYTES);
        // Those sessions had a sample of abandoned segments, which Resource Timing has not: they end there.
        let end = theirs.find('>').map_or(theirs.len(), |at| at + 2);
        let (ours, theirs) = (&ours[..end.min(ours.len())], &theirs[..end]);
        let (equal, all) = same(ours, theirs);
        if by == rule && tuning == Tuning::default() && ours != theirs {
            println!("{name}: {ours}\nwhere dash.js has {theirs}");
        }
        let counts = rules.entry(rule).or_default();
        *counts = (counts.0 + equal, counts.1 + all);
    }
    rules
}

fn percent((equal, all): (usize, usize)) -> f64 {
    equal as f64 * 100.0 / all as f64
}

/// None differs today. Abandoned segments are counted too, with the level that is fetched instead. L2A's
/// multiplier can grow so large that the last digit of a logarithm decides; another machine may have another.
#[test]
fn every_level_is_that_of_dash_js() {
    for (rule, counts) in agreement(|rule| (rule.to_owned(), Tuning::default())) {
        println!("{rule}: {:.2} % of {} levels", percent(counts), counts.1);
        assert!(counts.0 == counts.1 || rule == "l2a" && percent(counts) >= 99.0, "{rule}: {counts:?}");
    }
}

#[test]
fn another_rule_or_share_does_not_pass_for_it() {
    let neighbour = |rule: &str| {
        let other = match rule {
            "dashjs-throughput" | "dashjs-bola" => "dashjs-dynamic",
            "dashjs-dynamic" => "dashjs-throughput",
            "l2a" => "lolp",
            _ => "dashjs-throughput",
        };
        (other.to_owned(), Tuning::default())
    };
    let share = |rule: &str| (rule.to_owned(), Tuning { safety_factor: Some(0.8), ..Tuning::default() });
    let keep = |rule: &str| (rule.to_owned(), Tuning { abandons: false, ..Tuning::default() });
    // L2A uses the whole throughput, except at the start; it and LoL+ abandon nothing.
    let low_latency = ["l2a", "lolp"];
    // A session ends with its first segment that is given up, so that one level of it is missing there.
    for (what, by, not, most) in [
        ("a neighbour", agreement(neighbour), &[][..], 95.0),
        ("another share", agreement(share), &low_latency[..1], 95.0),
        ("without abandonment", agreement(keep), &low_latency, 99.5),
    ] {
        for (rule, counts) in by.into_iter().filter(|(rule, _)| !not.contains(&&**rule)) {
            println!("{what} for {rule}: {:.1} %", percent(counts));
            assert!(percent(counts) < most, "{what} passes for {rule}");
        }
    }
}
