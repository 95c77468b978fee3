//! MMS and HTTP behave as RTSP does.

use proptest::prelude::*;

use super::*;

const MMS_AND_HTTP: [WmTransport; 3] = [WmTransport::MmsUdp, WmTransport::MmsTcp, WmTransport::Http];

#[test]
fn all_of_the_highest_rate_is_shown_by_every_protocol() {
    for transport in MMS_AND_HTTP {
        let pair = run(&spec(transport), pipe(), &[]);
        let (shown, why) = end(&pair);
        assert_eq!(shown, (SECONDS * 10) as f64, "{transport:?}: {why}");
        assert_eq!(why, "the server said that all was sent", "{transport:?}");
        assert_eq!(values(&pair, "level_changed"), [316_000.0], "{transport:?}");
        for nothing in ["stall", "frame_incomplete", "frame_late", "packets_missed", "session_timeout"] {
            assert!(named(&pair, nothing).is_empty(), "{transport:?}: {nothing}");
        }
        assert!(named(&pair, "protocol_tried").is_empty(), "{transport:?}");
    }
}

#[test]
fn the_buffer_fills_faster_than_it_plays() {
    for transport in MMS_AND_HTTP {
        let pair = run(&spec(transport), pipe(), &[]);
        let begins = values(&pair, "playout_start");
        // At four times its rate 15 s of media arrive within 4 s.
        assert!((3.0..6.0).contains(&begins[0]), "{transport:?}: {begins:?}");
        let slow = WindowsMediaSpec {
            player: PlayerSettings { accelerated_share: 0.0, ..spec(transport).player },
            ..spec(transport)
        };
        let begins = values(&run(&slow, pipe(), &[]), "playout_start");
        assert!((13.0..16.0).contains(&begins[0]), "{transport:?}: {begins:?}");
    }
}

#[test]
fn mms_measures_the_link_by_two_packets_over_udp_and_by_none_on_a_connection() {
    let pair = run(&spec(WmTransport::MmsUdp), pipe(), &[]);
    let pairs = pair.sent.iter().take_while(|sent| sent.datagram.len() == 1_472).count();
    assert_eq!(pairs, 2, "they come first");
    for transport in [WmTransport::MmsTcp, WmTransport::Http] {
        assert!(named(&run(&spec(transport), pipe(), &[]), "estimate").is_empty(), "{transport:?}");
    }
}

#[test]
fn what_mms_loses_over_udp_is_asked_for_and_comes() {
    let lossy = Pipe { drop: |n| n > 20 && n % 60 == 17, ..pipe() };
    let pair = run(&spec(WmTransport::MmsUdp), lossy, &[]);
    let (missed, again) =
        (values(&pair, "packets_missed").iter().sum::<f64>(), named(&pair, "packet_resent").len());
    assert!(missed > 20.0 && again as f64 >= missed, "{missed} missed, {again} sent again");
    assert_eq!(end(&pair).0, (SECONDS * 10) as f64);
}

#[test]
fn a_header_that_is_lost_is_asked_for_again() {
    // The packet pair, and the header behind it.
    let pair = run(&spec(WmTransport::MmsUdp), Pipe { drop: |n| n < 3, ..pipe() }, &[]);
    assert_eq!(end(&pair).0, (SECONDS * 10) as f64);
}

#[test]
fn who_loses_too_much_by_mms_takes_less_and_less() {
    let mut stubborn = spec(WmTransport::MmsUdp);
    stubborn.player.retransmission = false;
    stubborn.player.judged_again = Duration::from_secs(5);
    let pair = run(&stubborn, Pipe { drop: |n| n > 20 && n % 10 == 3, ..pipe() }, &[]);
    assert_eq!(values(&pair, "level_changed"), [316_000.0, 136_000.0, 56_000.0, 16_000.0, 16_000.0]);
    let sent = values(&pair, "level_sent");
    assert_eq!((sent.first(), sent.last()), (Some(&316_000.0), Some(&16_000.0)));
    assert!(sent.windows(2).all(|pair| pair[1] < pair[0]), "{sent:?}");
}

#[test]
fn a_pause_holds_every_protocol_and_a_stop_ends_it() {
    for transport in MMS_AND_HTTP {
        let pair = run(&spec(transport), pipe(), &[(20_000, Input::Pause), (40_000, Input::Resume)]);
        let (shown, why) = end(&pair);
        assert_eq!(shown, (SECONDS * 10) as f64, "{transport:?}: {why}");
        let pair = run(&spec(transport), pipe(), &[(10_000, Input::Stop)]);
        assert_eq!(end(&pair).1, "stopped", "{transport:?}");
    }
    let pair = run(&spec(WmTransport::MmsUdp), pipe(), &[(20_000, Input::Pause), (40_000, Input::Resume)]);
    let held = pair.sent.iter().filter(|sent| {
        let at = sent.at.saturating_since(Instant::ZERO);
        (Duration::from_millis(20_600)..Duration::from_millis(40_000)).contains(&at)
    });
    assert_eq!(held.count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// At any rates and any configured rate of the link: a connection shows all that is chosen, and the choice is the
    /// same as RTSP's.
    #[test]
    fn every_connection_brings_what_rtsp_brings(rate in 30_000u64..2_000_000, transport in 0usize..2) {
        let told = |transport| {
            let mut told = spec(transport);
            (told.player.preference_bps, told.player.packet_pair) = (rate, false);
            told
        };
        let by_rtsp = run(&told(WmTransport::Tcp), pipe(), &[]);
        let other = run(&told([WmTransport::MmsTcp, WmTransport::Http][transport]), pipe(), &[]);
        prop_assert_eq!(end(&by_rtsp).0, end(&other).0);
        prop_assert_eq!(values(&by_rtsp, "level_changed"), values(&other, "level_changed"));
        let shown = |pair: &Pair| values(pair, "frame_shown");
        prop_assert_eq!(shown(&by_rtsp), shown(&other));
    }
}
