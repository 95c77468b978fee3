//! Any text is a rule book or a problem with its place; what is read is written and read again as the same, and holds
//! together.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_wire::asm::{AsmRuleBook, MOST_RULES};

fuzz_target!(|text: &str| {
    let book = match text.parse::<AsmRuleBook>() {
        Ok(book) => book,
        Err(problem) => {
            assert!(problem.at <= text.len() && text.is_char_boundary(problem.at));
            return;
        }
    };
    assert!(book.rules.len() <= MOST_RULES);
    let written = book.to_string();
    let again: AsmRuleBook = written.parse().expect("ours");
    assert_eq!(again, book);
    assert_eq!(again.to_string(), written);
    let bandwidths = book.bandwidths();
    assert!(bandwidths.windows(2).all(|two| two[0] < two[1]));
    for bandwidth in bandwidths.into_iter().chain([0.0]) {
        let holding: Vec<_> = book.holding(bandwidth).collect();
        assert!(holding.windows(2).all(|two| two[0] < two[1]));
        assert!(holding.iter().all(|&number| book.rules[number].holds(bandwidth)));
        book.average_bandwidth_bps(bandwidth);
    }
    for rule in &book.rules {
        assert!(rule.properties.iter().all(|property| rule.property(property.name()).is_some()));
        let _ = (rule.priority(), rule.on_depend().count(), rule.is_timestamp_delivered(), rule.drops_by_n());
    }
});
