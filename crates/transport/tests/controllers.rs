//! Properties that hold for every congestion controller, with any input.

use proptest::prelude::*;
use streamgauge_base::{Duration, Instant};
use streamgauge_transport::tcp::congestion::{Ack, Controller, Repair};
use streamgauge_transport::tcp::{Config, CongestionControl, Hystart, RateSample};

/// Something that happens to a controller, `after` us later than the previous one.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// `segments` and some `bytes` are delivered and `lost` segments are lost.
    Ack {
        segments: u64,
        bytes: u64,
        lost: u64,
        rtt_us: Option<u64>,
        limited: bool,
    },
    Congestion,
    Timeout {
        repeated: bool,
    },
    Undo,
    Idle {
        ms: u64,
    },
}

fn happening() -> impl Strategy<Value = (u64, Happening)> {
    let rtt = prop_oneof![Just(None), (1u64..400_000).prop_map(Some)];
    let ack = (0u64..40, 0u64..1448, prop_oneof![9 => Just(0u64), 1 => 1u64..10], rtt, any::<bool>())
        .prop_map(|(segments, bytes, lost, rtt_us, limited)| Happening::Ack {
            segments,
            bytes,
            lost,
            rtt_us,
            limited,
        });
    let happening = prop_oneof![
        40 => ack,
        2 => Just(Happening::Congestion),
        1 => any::<bool>().prop_map(|repeated| Happening::Timeout { repeated }),
        1 => Just(Happening::Undo),
        1 => (201u64..100_000).prop_map(|ms| Happening::Idle { ms }),
    ];
    (prop_oneof![0u64..3_000, 3_000u64..300_000], happening)
}

fn config() -> impl Strategy<Value = Config> {
    (
        prop::sample::select(CongestionControl::BUILT_IN),
        prop::sample::select(Hystart::NAMED),
        prop_oneof![Just(536u32), Just(1448), Just(8948)],
        prop_oneof![Just(None), (1u64..100_000).prop_map(Some)],
        1u32..40,
    )
        .prop_map(|(congestion, (_, hystart), mss, fixed_window, initial_window)| Config {
            congestion,
            hystart,
            mss,
            fixed_window,
            initial_window,
            ..Config::default()
        })
}

/// A controller and the sender around it, as far as it needs one.
struct Bench {
    controller: Box<dyn Controller>,
    mss: u64,
    now: Instant,
    una: u64,
    delivered: u64,
    lost: u64,
    repair: Repair,
}

impl Bench {
    fn new(config: &Config) -> Self {
        let mut controller = config.congestion.make(&config.start());
        controller.on_open(Instant::ZERO, Some(Duration::from_millis(20)));
        Bench {
            controller,
            mss: config.mss.into(),
            now: Instant::ZERO,
            una: 1,
            delivered: 0,
            lost: 0,
            repair: Repair::None,
        }
    }

    fn take(&mut self, after_us: u64, happening: Happening) {
        self.now += Duration::from_micros(after_us);
        let (now, window) = (self.now, self.controller.window());
        match happening {
            Happening::Ack { segments, bytes, lost, rtt_us, limited } => {
                let delivered = segments * self.mss + bytes % self.mss;
                let (lost, prior) = (lost * self.mss, self.delivered);
                self.una += delivered;
                self.delivered += delivered;
                self.lost += lost;
                let rtt = rtt_us.map(Duration::from_micros);
                let rate = rtt.filter(|_| delivered > 0).map(|interval| RateSample {
                    delivered,
                    interval,
                    prior_delivered: prior,
                    total_delivered: self.delivered,
                    prior_in_flight: window,
                    lost,
                    total_lost: self.lost,
                    app_limited: !limited,
                });
                let srtt = rtt.unwrap_or(Duration::from_millis(20));
                self.repair = if self.repair == Repair::Recovery { Repair::None } else { self.repair };
                self.controller.on_ack(&Ack {
                    now,
                    delivered,
                    segments: segments as u32,
                    marked: 0,
                    lost,
                    una: self.una,
                    next: self.una + window,
                    prior_in_flight: window,
                    in_flight: window.saturating_sub(delivered + lost),
                    rtt,
                    srtt,
                    min_rtt: srtt.min(Duration::from_millis(20)),
                    window_limited: limited,
                    repair: self.repair,
                    departs: now,
                    rate,
                });
            }
            Happening::Congestion => {
                self.repair = Repair::Recovery;
                self.controller.on_congestion_event(now);
            }
            Happening::Timeout { repeated } => {
                self.repair = Repair::Timeout;
                self.controller.on_timeout(now, repeated);
                self.controller.on_start(now, Duration::from_millis(200), self.una + window, false);
            }
            Happening::Undo => {
                self.repair = Repair::None;
                self.controller.on_undo(now);
            }
            Happening::Idle { ms } => {
                let idle = Duration::from_millis(ms);
                self.now += idle;
                self.controller.on_idle(self.now, idle, Duration::from_millis(200));
                self.controller.on_start(self.now, idle, self.una, true);
            }
        }
    }
}

/// Returns whether it neither paces nor measures: only losses lower its window, and only acknowledgements raise it.
fn by_loss(control: &CongestionControl) -> bool {
    [CongestionControl::RENO, CongestionControl::BIC, CongestionControl::CUBIC].contains(control)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// A segment always fits, a paced sender always gets on, and a threshold is of two segments at least.
    #[test]
    fn a_sender_is_never_stopped(config in config(), story in prop::collection::vec(happening(), 1..300)) {
        let mut bench = Bench::new(&config);
        for (after, happening) in story {
            bench.take(after, happening);
            prop_assert!(bench.controller.window() >= bench.mss, "{:?}", bench.controller);
            prop_assert!(bench.controller.window() < 1 << 50, "{:?}", bench.controller);
            prop_assert!(bench.controller.ssthresh() >= 2 * bench.mss, "{:?}", bench.controller);
            prop_assert!(bench.controller.pacing_rate() != Some(0), "{:?}", bench.controller);
        }
    }

    #[test]
    fn only_losses_and_idling_lower_a_window(
        config in config().prop_filter("judges by loss", |config| by_loss(&config.congestion)),
        story in prop::collection::vec(happening(), 1..300),
    ) {
        let mut bench = Bench::new(&config);
        for (after, happening) in story {
            let before = bench.controller.window();
            bench.take(after, happening);
            let window = bench.controller.window();
            let told = format!("{before} to {window} by {happening:?}: {:?}", bench.controller);
            match happening {
                Happening::Ack { limited: false, .. } => prop_assert_eq!(window, before, "{}", told),
                // At most by the delivered segments, and the remainder from before.
                Happening::Ack { segments, .. } => {
                    prop_assert!(window >= before, "{}", told);
                    prop_assert!(window <= before + (segments + 2) * bench.mss, "{}", told);
                }
                // Two segments are left.
                Happening::Congestion => prop_assert!(window <= before.max(2 * bench.mss), "{}", told),
                Happening::Timeout { .. } => prop_assert_eq!(window, bench.mss, "{}", told),
                Happening::Undo => prop_assert!(window >= before, "{}", told),
                Happening::Idle { .. } => prop_assert!(window <= before, "{}", told),
            }
        }
    }

    #[test]
    fn a_fixed_window_is_fixed(config in config(), story in prop::collection::vec(happening(), 1..100)) {
        let mut bench = Bench::new(&Config { congestion: CongestionControl::FIXED, ..config });
        let before = bench.controller.window();
        for (after, happening) in story {
            bench.take(after, happening);
            prop_assert_eq!(bench.controller.window(), before);
        }
    }

    /// An undo leaves no less than there was.
    #[test]
    fn an_undone_reduction_leaves_no_trace_in_the_window(
        config in config().prop_filter("Linux undoes it", |config| {
            by_loss(&config.congestion) || config.congestion == CongestionControl::VEGAS
        }),
        story in prop::collection::vec(happening(), 1..100),
        timeout in any::<bool>(),
    ) {
        let mut bench = Bench::new(&config);
        for (after, happening) in story {
            bench.take(after, happening);
        }
        let before = bench.controller.window();
        bench.take(10, if timeout { Happening::Timeout { repeated: false } } else { Happening::Congestion });
        bench.take(10, Happening::Undo);
        // A window of one segment after a timeout may have been raised to the least of two.
        prop_assert!(bench.controller.window() >= before);
        prop_assert!(bench.controller.window() <= before.max(2 * bench.mss));
        let segments = before / bench.mss;
        prop_assert!(bench.controller.ssthresh() >= (segments / 2 + segments / 4) * bench.mss);
    }

    #[test]
    fn the_same_story_has_the_same_end(config in config(), story in prop::collection::vec(happening(), 1..200)) {
        let mut pair = [Bench::new(&config), Bench::new(&config)];
        for (after, happening) in story {
            pair.iter_mut().for_each(|bench| bench.take(after, happening));
        }
        let [first, second] = pair.map(|bench| {
            let c = &bench.controller;
            (c.window(), c.ssthresh(), c.pacing_rate(), format!("{c:?}"))
        });
        prop_assert_eq!(first, second);
    }
}
