use proptest::prelude::*;

use super::*;

fn bps(rate: u64) -> BitRate {
    BitRate::from_bps(rate)
}

fn encoder(settings: LiveEncoderSettings, target: u64, seed: u64) -> LiveEncoder {
    LiveEncoder::new(settings, bps(target), seed).unwrap()
}

/// Returns the mean rate over this many frames, bit/s.
fn rate_of(encoder: &mut LiveEncoder, frames: u64) -> f64 {
    let bytes: u64 = (0..frames).map(|_| u64::from(encoder.next_frame().bytes)).sum();
    bytes as f64 * 8.0 / (frames as f64 * encoder.interval().as_secs_f64())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_mean_rate_is_the_target_within_floor_and_ceiling(
        codec in prop::sample::select(&["x264", "vp8"][..]),
        sequence in prop::sample::select(&["carphone", "bikes", "bigbuckbunny"][..]),
        target in 50_000u64..3_000_000,
        key_s in prop::option::of(1u64..10),
        seed: u64,
    ) {
        let settings = LiveEncoderSettings {
            codec: codec.into(),
            sequence: sequence.into(),
            key_interval: key_s.map(Duration::from_secs),
            ..LiveEncoderSettings::default()
        };
        let mut encoder = encoder(settings, target, seed);
        rate_of(&mut encoder, 300);
        let (rate, wanted) = (rate_of(&mut encoder, 3000), target.clamp(150_000, 1_500_000) as f64);
        prop_assert!((rate / wanted - 1.0).abs() < 0.03, "{rate} {wanted}");
    }

    #[test]
    fn the_same_seed_gives_the_same_frames(seed: u64, targets in prop::collection::vec(10_000u64..5_000_000, 1..20)) {
        let [mut one, mut other] = [(); 2].map(|()| encoder(LiveEncoderSettings::default(), 500_000, seed));
        for target in targets {
            one.set_target(bps(target));
            other.set_target(bps(target));
            for _ in 0..10 {
                prop_assert_eq!(one.next_frame(), other.next_frame());
            }
        }
    }
}

#[test]
fn seeds_differ() {
    let sizes = |seed| {
        let mut encoder = encoder(LiveEncoderSettings::default(), 500_000, seed);
        (0..30).map(|_| encoder.next_frame().bytes).collect::<Vec<_>>()
    };
    assert_ne!(sizes(1), sizes(2));
}

#[test]
fn the_rate_follows_a_step_with_its_lag() {
    let lag = Duration::from_secs(1);
    let mut encoder = encoder(LiveEncoderSettings { lag, ..LiveEncoderSettings::default() }, 1_000_000, 1);
    rate_of(&mut encoder, 90);
    encoder.set_target(bps(300_000));
    // One lag is 30 frames: 1/e of the step is left.
    (0..30).for_each(|_| _ = encoder.next_frame());
    let left = (encoder.rate().as_bps() as f64 - 300e3) / 700e3;
    assert!((left - (-1.0f64).exp()).abs() < 0.01, "{left}");
    let at_once = LiveEncoderSettings { lag: Duration::ZERO, ..LiveEncoderSettings::default() };
    let mut encoder = self::encoder(at_once, 1_000_000, 1);
    encoder.next_frame();
    encoder.set_target(bps(300_000));
    encoder.next_frame();
    assert_eq!(encoder.rate(), bps(300_000));
}

#[test]
fn key_frames_come_first_when_asked_for_and_at_their_interval_and_are_larger() {
    let mut encoder = encoder(LiveEncoderSettings::default(), 700_000, 1);
    let mut frames: Vec<_> = (0..100).map(|_| encoder.next_frame()).collect();
    encoder.ask_for_key();
    frames.extend((0..100).map(|_| encoder.next_frame()));
    let keys: Vec<_> = frames.iter().filter(|frame| frame.is_key).map(|frame| frame.number).collect();
    assert_eq!(keys, [0, 100]);
    let mean = frames.iter().map(|frame| f64::from(frame.bytes)).sum::<f64>() / frames.len() as f64;
    assert!(f64::from(frames[100].bytes) > 1.5 * mean);

    let every = Some(Duration::from_secs(1));
    let settings = LiveEncoderSettings { key_interval: every, ..LiveEncoderSettings::default() };
    let mut encoder = self::encoder(settings, 700_000, 1);
    let keys = (0..91).filter(|_| encoder.next_frame().is_key).collect::<Vec<_>>();
    assert_eq!(keys, [0, 30, 60, 90]);
}

#[test]
fn settings_that_cannot_be_are_refused_by_their_key() {
    let usual = LiveEncoderSettings::default;
    let ms = Duration::from_millis;
    for (settings, key) in [
        (LiveEncoderSettings { codec: "av1".into(), ..usual() }, "codec"),
        (LiveEncoderSettings { sequence: "foreman".into(), ..usual() }, "sequence"),
        (LiveEncoderSettings { interval: Duration::ZERO, ..usual() }, "interval"),
        (LiveEncoderSettings { key_interval: Some(ms(1)), ..usual() }, "key_interval"),
        (LiveEncoderSettings { floor: bps(0), ..usual() }, "floor"),
        (LiveEncoderSettings { ceiling: bps(100_000), ..usual() }, "floor"),
    ] {
        assert_eq!(LiveEncoder::new(settings, bps(500_000), 1).unwrap_err().key, key);
    }
}
