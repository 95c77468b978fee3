//! The rules of dash.js held against those of dash.js 5.2.1 itself, segment by segment; what `data/abr` holds its README
//! says.

mod abr_session;

use std::collections::BTreeMap;

use abr_session::{levels, same};
use streamgauge_systems::abr::Tuning;

/// dash.js's `buffer.bufferTimeDefault`, as it was whatever the session's buffer.
const BUFFER_S: u64 = 18;

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
        let ours = levels(&by, &tuning, case, BUFFER_S);
        let (equal, all) = same(&ours, theirs);
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

/// None differs today. What is given up is counted too, with the level that is fetched instead. L2A's multiplier can grow
/// so large that the last digit of a logarithm decides; another machine may have another.
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
    // L2A goes by the whole throughput, but at the start; it and LoL+ give nothing up.
    let low_latency = ["l2a", "lolp"];
    for (what, by, not) in [
        ("a neighbour", agreement(neighbour), &[][..]),
        ("another share", agreement(share), &low_latency[..1]),
        ("without abandonment", agreement(keep), &low_latency),
    ] {
        for (rule, counts) in by.into_iter().filter(|(rule, _)| !not.contains(&&**rule)) {
            println!("{what} for {rule}: {:.1} %", percent(counts));
            assert!(percent(counts) < 95.0, "{what} passes for {rule}");
        }
    }
}
