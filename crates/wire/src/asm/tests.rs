use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

/// As an encoder of RealNetworks' wrote it for three bandwidths, key frames apart from the rest.
const BOOK: &str = "#($Bandwidth < 67959),TimestampDelivery=T,DropByN=T,priority=9;\
    #($Bandwidth >= 67959) && ($Bandwidth < 167959),AverageBandwidth=67959,Priority=9;\
    #($Bandwidth >= 67959) && ($Bandwidth < 167959),AverageBandwidth=0,Priority=5,OnDepend=\"1\";\
    #($Bandwidth >= 167959),AverageBandwidth=167959,Priority=9;\
    #($Bandwidth >= 167959),AverageBandwidth=0,Priority=5,OnDepend=\"3\";";

fn book(text: &str) -> AsmRuleBook {
    text.parse().unwrap_or_else(|problem| panic!("{text}: {problem}"))
}

fn fault(text: &str) -> (usize, Fault) {
    let problem = text.parse::<AsmRuleBook>().expect_err(text);
    (problem.at, problem.fault)
}

fn holding(text: &str, bandwidth_bps: f64) -> Vec<usize> {
    book(text).holding(bandwidth_bps).collect()
}

#[test]
fn a_book_says_what_is_sent_at_a_bandwidth() {
    let book = book(BOOK);
    for (bandwidth, rules, average) in [
        (0.0, &[0][..], 0),
        (67_958.9, &[0], 0),
        (67_959.0, &[1, 2], 67_959),
        (167_958.0, &[1, 2], 67_959),
        (1e9, &[3, 4], 167_959),
    ] {
        assert_eq!(book.holding(bandwidth).collect::<Vec<_>>(), rules);
        assert_eq!(book.average_bandwidth_bps(bandwidth), average);
    }
    assert_eq!(book.bandwidths(), [67_959.0, 167_959.0]);
    let [thinned, key, rest, ..] = &book.rules[..] else { panic!() };
    assert!(thinned.is_timestamp_delivered() && thinned.drops_by_n() && !key.drops_by_n());
    assert_eq!((thinned.priority(), thinned.average_bandwidth_bps()), (Some(9), None));
    assert_eq!((key.priority(), key.average_bandwidth_bps()), (Some(9), Some(67_959)));
    assert_eq!(rest.on_depend().collect::<Vec<_>>(), [1]);
    assert_eq!(book.to_string(), BOOK);
}

#[test]
fn a_book_is_made_as_it_is_written() {
    let between = || Some(AsmCondition::bandwidth(67_959, Some(167_959)));
    let key = || AsmRule::when(between()).with(AsmRule::AVERAGE_BANDWIDTH, 67_959).with(AsmRule::PRIORITY, 9);
    let rest = AsmRule::when(between())
        .with(AsmRule::AVERAGE_BANDWIDTH, 0)
        .with(AsmRule::PRIORITY, 5)
        .with_quoted(AsmRule::ON_DEPEND, 1);
    let thinned = AsmRule::when(Some(AsmCondition::bandwidth(0, Some(67_959))))
        .with(AsmRule::TIMESTAMP_DELIVERY, "T")
        .with(AsmRule::DROP_BY_N, "T")
        .with("priority", 9);
    let rules = vec![thinned, key(), rest];
    assert!(BOOK.starts_with(&AsmRuleBook { rules }.to_string()));
    let from = AsmRule::when(Some(AsmCondition::bandwidth(5, None)));
    assert_eq!(AsmRuleBook { rules: vec![from, AsmRule::default()] }.to_string(), "#($Bandwidth >= 5);;");
}

#[test]
fn books_are_read_as_they_come() {
    // A file's own book, and one from a session description with backslashes before its quotes.
    let file = book("#($Bandwidth >= 0),Stream0Bandwidth = 64082, Stream1Bandwidth = 935918 ; ");
    assert_eq!(file.rules.len(), 1);
    assert_eq!(file.rules[0].property("stream1bandwidth"), Some("935918"));
    let escaped = book(r#"priority=5,OnDepend=\"0,2\";Marker=1,x=;y="\\ ; #" "#);
    assert_eq!(escaped.rules[0].on_depend().collect::<Vec<_>>(), [0, 2]);
    assert!(escaped.rules[1].is_set("MARKER"));
    assert_eq!((escaped.rules[1].property("x"), escaped.rules[2].property("y")), (Some(""), Some(r"\\ ; #")));
    assert!(escaped.rules.iter().all(|rule| rule.holds(0.0)));
    assert_eq!(book(&escaped.to_string()), escaped);
    assert_eq!(book(""), AsmRuleBook::default());
    assert_eq!(book(" ; ;a=b").rules.len(), 3);
}

#[test]
fn conditions_bind_as_in_c() {
    assert_eq!(holding("#1 || 0 && 0;#(1 || 0) && 0;#0;#$Bandwidth;", 5.0), [0, 3]);
    assert_eq!(
        holding("#$bandwidth==5;#$Bandwidth!=5;#5<=$Bandwidth;#$Bandwidth>5;#-1 < 0.5;", 5.0),
        [0, 2, 4]
    );
    // It is unset, therefore 0.
    assert_eq!(holding("#$OldPNMPlayer;#$OldPNMPlayer == 0;#($A < 1) == ($B < 1);", 5.0), [1, 2]);
    let variables = |name: &str| if name == "A" { 2.0 } else { 0.0 };
    let book = book("#($A > 1) && ($B < 1);");
    assert!(book.rules[0].condition.as_ref().is_some_and(|condition| condition.holds(&variables)));
}

#[test]
fn what_is_wrong_is_said() {
    for (text, at, wrong) in [
        ("#", 1, Fault::Operand),
        ("#($Bandwidth >= )", 16, Fault::Operand),
        ("#($Bandwidth >= 5", 17, Fault::Parenthesis),
        ("#$Bandwidth 5;", 12, Fault::Condition),
        ("#1 < 2 < 3;", 7, Fault::Condition),
        ("#$;", 2, Fault::Name),
        ("#1.2.3;", 1, Fault::Number),
        ("#123456789012345678901;", 1, Fault::Number),
        ("#9999999999999999999;", 1, Fault::Number),
        ("a=1,;", 4, Fault::Name),
        ("9=1;", 0, Fault::Name),
        ("a;", 1, Fault::Equals),
        ("a=\"1;", 2, Fault::Quotes),
        ("a=\"1\"2;", 5, Fault::Quotes),
        ("a=1\"2;", 2, Fault::Value),
        ("a=1\\;", 2, Fault::Value),
        ("a=\"1\\\";", 2, Fault::Value),
    ] {
        assert_eq!(fault(text), (at, wrong), "{text}");
    }
    assert_eq!(AsmProperty::new("a", " b", false), Err(Fault::Value));
    assert_eq!(AsmProperty::new("a b", "", false), Err(Fault::Name));
}

#[test]
fn limits_hold() {
    let deep = |depth| format!("#{}1{};", "(".repeat(depth), ")".repeat(depth));
    book(&deep(MOST_DEPTH));
    assert_eq!(fault(&deep(MOST_DEPTH + 1)).1, Fault::TooDeep);
    assert_eq!(fault(&deep(MOST_BOOK_BYTES / 2 - 2)).1, Fault::TooDeep);
    // One pair of parentheses for every three parts within parts.
    let nested = |depth| format!("#{}1{};", "(1 || 1 && 1 < ".repeat(depth), ")".repeat(depth));
    book(&nested(10));
    assert_eq!(fault(&nested(11)).1, Fault::TooDeep);
    book(&";".repeat(MOST_RULES));
    assert_eq!(fault(&";".repeat(MOST_RULES + 1)), (MOST_RULES, Fault::TooManyRules));
    assert_eq!(fault(&" ".repeat(MOST_BOOK_BYTES + 1)).1, Fault::TooLong);
}

fn any_condition() -> impl Strategy<Value = AsmCondition> {
    let number = prop_oneof![(0u32..=u32::MAX).prop_map(f64::from), -1e6..1e6f64.trunc(), Just(0.5)];
    let leaf = prop_oneof![
        number.prop_map(|number| AsmCondition::Number((number * 1e3).trunc() / 1e3)),
        Just(AsmCondition::Variable(AsmCondition::BANDWIDTH.into())),
        "[A-Za-z_][A-Za-z0-9_.-]{0,8}".prop_map(|name| AsmCondition::Variable(name.into())),
    ];
    let operator = (0..AsmOperator::ALL.len()).prop_map(|index| AsmOperator::ALL[index].1);
    leaf.prop_recursive(6, 40, 4, move |inner| {
        prop_oneof![
            (inner.clone(), operator.clone(), inner.clone()).prop_map(|(left, operator, right)| {
                AsmCondition::Compare(left.into(), operator, right.into())
            }),
            vec(inner.clone(), 2..4).prop_map(AsmCondition::All),
            vec(inner, 2..4).prop_map(AsmCondition::Any),
        ]
    })
}

fn any_property() -> impl Strategy<Value = AsmProperty> {
    let value = prop_oneof!["[A-Za-z0-9.# =&]{0,8}", "[ -~]{0,12}", any::<String>()];
    ("[A-Za-z_][A-Za-z0-9_.-]{0,12}", value, any::<bool>())
        .prop_filter_map("a value", |(name, value, quoted)| AsmProperty::new(&name, &value, quoted).ok())
}

fn any_book() -> impl Strategy<Value = AsmRuleBook> {
    let rule = (option::of(any_condition()), vec(any_property(), 0..4))
        .prop_map(|(condition, properties)| AsmRule { condition, properties });
    vec(rule, 0..6).prop_map(|rules| AsmRuleBook { rules })
}

proptest! {
    #[test]
    fn books_are_read_as_written(book in any_book()) {
        prop_assert_eq!(book.to_string().parse(), Ok(book));
    }

    /// Any text is a book or a problem; a parsed book is written and read again as the same.
    #[test]
    fn takes_any_text(text in prop_oneof![
        any::<String>(),
        vec(prop_oneof![
            Just("#".to_owned()), Just("($Bandwidth >= 1)".into()), Just(" && ".into()), Just("||".into()),
            Just("(".into()), Just(")".into()), Just(",".into()), Just(";".into()), Just("a=".into()),
            Just("\\\"".into()), Just("\"".into()), Just("$".into()), "[<>=!]{1,2}", "[0-9.-]{1,22}", "[ -~]{0,4}",
        ], 0..20).prop_map(|pieces| pieces.concat()),
    ]) {
        if let Ok(book) = text.parse::<AsmRuleBook>() {
            prop_assert_eq!(book.to_string().parse(), Ok(book.clone()));
            prop_assert!(book.holding(5e4).count() <= book.rules.len());
            let _ = (book.bandwidths(), book.average_bandwidth_bps(5e4));
        }
    }

    /// Between the bandwidths that a book names, nothing changes.
    #[test]
    fn rules_change_at_the_bandwidths_that_are_named(
        edges in vec(1u32..1_000_000, 1..5), low in 0u32..1_000_000, high in 0u32..1_000_000,
    ) {
        let rules = edges.windows(2).map(|two| AsmCondition::bandwidth(two[0], Some(two[1])));
        let rules = rules.chain([AsmCondition::bandwidth(edges[0], None)]).map(|c| AsmRule::when(Some(c)));
        let book = AsmRuleBook { rules: rules.collect() };
        let (low, high) = (f64::from(low.min(high)), f64::from(low.max(high)));
        if !book.bandwidths().iter().any(|edge| (low..=high).contains(edge)) {
            prop_assert!(book.holding(low).eq(book.holding(high)));
        }
    }
}
