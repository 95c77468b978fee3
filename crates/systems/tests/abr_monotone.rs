//! More of a rule's inputs never makes it ask for less, after any past.

use proptest::prelude::*;
use streamgauge_base::{BitRate, Duration};
use streamgauge_systems::abr::{Fetched, Ladder, Live, Rule, Situation, Tuning, rule};

/// A segment of the past: the throughput, the time to the first byte, the buffer when it was asked for.
#[derive(Clone, Copy, Debug)]
struct Past {
    kbps: u32,
    latency_ms: u32,
    buffer_ms: u32,
    idle_ms: u32,
    dry: bool,
}

prop_compose! {
    fn past()(
        kbps in 20..60_000u32, latency_ms in 0..400u32, buffer_ms in 0..40_000u32, idle_ms in 0..3_000u32,
        dry in prop::bool::weighted(0.1),
    ) -> Past {
        Past { kbps, latency_ms, buffer_ms, idle_ms, dry }
    }
}

fn ladders() -> impl Strategy<Value = Ladder> {
    (prop::collection::btree_set(50..20_000u64, 1..12), 1..8u64, any::<bool>()).prop_map(|(kbps, s, live)| {
        Ladder {
            rates: kbps.into_iter().map(|kbps| BitRate::from_bps(kbps * 1000)).collect(),
            segment: Duration::from_secs(s),
            segments: (!live).then_some(60),
            sizes: Vec::new(),
        }
    })
}

/// One rule on its way, and where it is.
struct Told<'a> {
    rule: Box<dyn Rule>,
    ladder: &'a Ladder,
    now_ms: u64,
    segment: usize,
    live: Option<Live>,
}

impl<'a> Told<'a> {
    fn new(name: &str, ladder: &'a Ladder) -> Self {
        let live = ladder.segments.is_none().then_some(Live {
            latency: Duration::from_millis(2200),
            target: Duration::from_millis(3000),
            speed: 1.02,
        });
        let rule = (rule(name).unwrap().make)(&Tuning::default());
        Told { rule, ladder, now_ms: 0, segment: 0, live }
    }

    fn at(&self, buffer_ms: u64) -> Situation<'a> {
        Situation {
            now: Duration::from_millis(self.now_ms),
            ladder: self.ladder,
            segment: self.segment,
            level: None,
            buffer: Duration::from_millis(buffer_ms),
            target: Duration::from_secs(25),
            playing: true,
            live: self.live,
        }
    }

    fn decide(&mut self, buffer_ms: u64) -> usize {
        let decision = self.rule.decide(&self.at(buffer_ms));
        assert!(decision.level <= self.ladder.top(), "{decision:?}");
        assert!(decision.wait <= Duration::from_secs(3600) && !decision.why.is_empty(), "{decision:?}");
        decision.level
    }

    fn fetched(&self, past: Past, level: usize, bytes: u64) -> Fetched {
        let asked = Duration::from_millis(self.now_ms);
        let first_byte = asked + Duration::from_millis(past.latency_ms.into());
        let time = Duration::from_nanos(bytes * 8_000_000 / u64::from(past.kbps).max(1));
        let done = first_byte + time;
        Fetched {
            segment: self.segment,
            level,
            bytes,
            asked,
            first_byte,
            done,
            seen: done,
            appended: done,
            reading: time,
            abandoned: false,
        }
    }

    /// Adds a segment at the past's throughput, times `more`; the same level for all: two rules get equal
    /// segments.
    fn pass(&mut self, past: Past, more: f64) -> usize {
        self.rule.idled(Duration::from_millis(past.idle_ms.into()));
        self.now_ms += u64::from(past.idle_ms);
        let level = self.decide(past.buffer_ms.into());
        let kbps = (f64::from(past.kbps) * more) as u32;
        let fetched = self.fetched(Past { kbps, ..past }, 0, 250_000);
        if past.dry {
            self.rule.ran_dry();
        }
        self.now_ms = fetched.done.as_nanos() / 1_000_000;
        self.segment += 1;
        self.rule.fetched(&fetched, &self.at(u64::from(past.buffer_ms)));
        level
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn more_throughput_never_lowers_what_goes_by_throughput(
        ladder in ladders(), pasts in prop::collection::vec(past(), 1..30), more in 1.0..4.0f64,
    ) {
        for name in ["throughput", "dashjs-throughput"] {
            let (mut less, mut rich) = (Told::new(name, &ladder), Told::new(name, &ladder));
            for &past in &pasts {
                let past = Past { buffer_ms: 40_000, latency_ms: 0, ..past };
                less.pass(past, 1.0);
                rich.pass(past, more);
            }
            // For dash.js only as long as fewer than eight requests are remembered: the drops among them are
            // others with more.
            if name == "throughput" || pasts.len() < 8 {
                let (one, other) = (less.decide(40_000), rich.decide(40_000));
                prop_assert!(one <= other, "{name}: {one} with less, {other} with more");
            }
        }
    }

    #[test]
    fn more_buffer_never_lowers_what_goes_by_buffer(
        ladder in ladders(), pasts in prop::collection::vec(past(), 1..30), buffer_ms in 0..30_000u64,
        more_ms in 0..20_000u64,
    ) {
        for name in ["throughput", "bola", "bola-e", "dashjs-throughput", "dashjs-bola"] {
            let (mut less, mut rich) = (Told::new(name, &ladder), Told::new(name, &ladder));
            for &past in &pasts {
                prop_assert_eq!(less.pass(past, 1.0), rich.pass(past, 1.0));
            }
            let (one, other) = (less.decide(buffer_ms), rich.decide(buffer_ms + more_ms));
            prop_assert!(one <= other, "{}: {} with less, {} with more", name, one, other);
        }
    }
}
