use streamgauge_base::{Duration, Event, Instant};

use super::*;
use crate::app::Input;
use crate::media::ClipSpec;
use crate::testing::{Pair, Pipe};
use streamgauge_plan::TcpSpec;

fn spec(tcp: bool) -> RtpSpec {
    let settings = TcpSpec { receive_window: 65_536, send_buffer: Some(65_536), ..TcpSpec::default() };
    RtpSpec {
        // Every tenth frame needs four packets, the rest one: 13 packets in 10 frames.
        clip: ClipSpec {
            name: "test".into(),
            duration: Duration::from_secs(20),
            frame_interval: Duration::from_millis(40),
            frame_bytes: vec![5000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000].into(),
            ..ClipSpec::default()
        },
        max_payload: 1400,
        tcp: tcp.then_some(settings),
        rtcp_interval: Duration::from_secs(5),
        playout_delay: Duration::from_millis(500),
        decoder: Decoder::Ideal,
    }
}

fn run(spec: &RtpSpec, pipe: Pipe, actions: &[(u64, Input<'static>)]) -> Pair {
    let made = spec.machines("video", 1).unwrap();
    let mut pair = Pair::new(made.server, made.player, pipe);
    for (ms, input) in actions {
        pair.at(Duration::from_millis(*ms), *input);
    }
    pair.run(Instant::from_nanos(60_000_000_000));
    pair
}

fn named<'a>(pair: &'a Pair, name: &str) -> Vec<&'a Event> {
    pair.events.iter().filter(|e| e.name == name).collect()
}

fn media_sent(pair: &Pair) -> usize {
    pair.sent.iter().filter(|s| s.channel == MEDIA).count()
}

#[test]
fn over_a_clean_path_every_frame_is_shown_when_due() {
    let pair = run(&spec(false), Pipe::default(), &[]);
    assert_eq!(media_sent(&pair), 650);
    let shown = named(&pair, "frame_shown");
    assert_eq!(shown.len(), 500);
    // Sent at 0, there at 10 ms, due 500 ms later; then every 40 ms.
    assert_eq!(shown[0].at, Instant::from_nanos(510_000_000));
    assert_eq!(shown[499].at, Instant::from_nanos(510_000_000 + 499 * 40_000_000));
    assert!(named(&pair, "frame_late").is_empty() && named(&pair, "frame_incomplete").is_empty());
    let end = named(&pair, crate::MEDIA_END);
    assert_eq!((end.len(), end[0].value), (1, Some(500.0)));
}

/// Makes a plan with frames I0 P4 B2 B1 B3, then P8 B6 B5 B7 P10 B9 again and again.
fn with_b_frames(tcp: bool) -> RtpSpec {
    let mut spec = spec(tcp);
    spec.clip.display_order = vec![0, 4, 2, 1, 3, 8, 6, 5, 7, 9].into();
    spec
}

#[test]
fn b_frames_are_sent_in_the_order_of_decoding_and_shown_at_their_times() {
    for tcp in [false, true] {
        let stream = tcp.then_some(1_000_000);
        let pipe = Pipe { stream_bytes_per_s: stream, ..Pipe::default() };
        let pair = run(&with_b_frames(tcp), pipe, &[]);
        let shown: Vec<f64> = named(&pair, "frame_shown").iter().filter_map(|event| event.value).collect();
        assert_eq!(shown, (0..500).map(f64::from).collect::<Vec<_>>(), "in the order of showing");
        assert!(named(&pair, "stall").is_empty() && named(&pair, "frame_late").is_empty());
    }
    // Over UDP the second frame, of one packet, has the timestamp of the fifth that is shown.
    let pair = run(&with_b_frames(false), Pipe::default(), &[]);
    let stamps: Vec<u32> = pair
        .sent
        .iter()
        .filter(|sent| sent.channel == MEDIA)
        .map(|sent| u32::from_be_bytes(sent.datagram.head()[4..8].try_into().unwrap()))
        .collect();
    let steps: Vec<i32> =
        stamps[3..9].iter().map(|stamp| stamp.wrapping_sub(stamps[0]).cast_signed() / 3600).collect();
    assert_eq!(steps, [0, 4, 2, 1, 3, 8]);
}

#[test]
fn a_stream_waits_for_a_b_frame_though_a_later_picture_is_there() {
    let outage = (Duration::from_secs(5), Duration::from_secs(9));
    let pipe = Pipe { stream_bytes_per_s: Some(200_000), outage, ..Pipe::default() };
    let pair = run(&with_b_frames(true), pipe, &[]);
    assert_eq!((named(&pair, "stall").len(), named(&pair, "resume").len()), (1, 1));
    assert_eq!(named(&pair, "frame_shown").len(), 500, "nothing is lost on a stream");
    // The clip is 35 kB/s.
    let slow = Pipe { stream_bytes_per_s: Some(25_000), ..Pipe::default() };
    assert_eq!(named(&run(&with_b_frames(true), slow, &[]), "frame_shown").len(), 500);
}

#[test]
fn libavcodec_discards_no_b_frame_as_out_of_order() {
    let lossy = Pipe { drop: |n| n % 23 == 7, ..Pipe::default() };
    let pair = run(&RtpSpec { decoder: Decoder::Libavcodec, ..with_b_frames(false) }, lossy, &[]);
    assert!(named(&pair, "dropped_frames").is_empty());
}

#[test]
fn payload_bytes_follow_the_clip() {
    let pair = run(&spec(false), Pipe::default(), &[]);
    let bytes: usize = pair.sent.iter().filter(|s| s.channel == MEDIA).map(|s| s.datagram.len() - 12).sum();
    // A cut frame loses its NAL header and gains two bytes a fragment.
    assert_eq!(bytes, 50 * (5000 - 1 + 2 * 4) + 450 * 1000);
}

#[test]
fn reports_carry_loss_jitter_and_the_round_trip() {
    let pipe = Pipe { drop: |n| n % 10 == 9, ..Pipe::default() };
    let pair = run(&spec(false), pipe, &[]);
    let lost = named(&pair, "cumulative_lost");
    assert!(lost.len() >= 3);
    assert_eq!(lost.len(), named(&pair, "jitter").len());
    // The server reads the data that the player wrote.
    let values = |name: &str| named(&pair, name).iter().map(|e| e.value).collect::<Vec<_>>();
    let heard = values("rtcp_cumulative_lost");
    assert_eq!(heard, values("cumulative_lost")[..heard.len()]);
    let fraction = named(&pair, "rtcp_fraction_lost")[1].value.unwrap();
    assert!((fraction - 0.1).abs() < 0.03, "{fraction}");
    let rtt = named(&pair, "rtcp_rtt");
    assert!(!rtt.is_empty() && rtt.iter().all(|e| (e.value.unwrap() - 0.020).abs() < 1e-4), "{rtt:?}");
}

#[test]
fn a_lost_packet_makes_its_frame_incomplete() {
    // The second of the first frame's four packets, and the one packet of frame 5.
    let pair = run(&spec(false), Pipe { drop: |n| n == 1 || n == 8, ..Pipe::default() }, &[]);
    let incomplete = named(&pair, "frame_incomplete");
    let reasons: Vec<_> = incomplete.iter().map(|e| (e.value, e.reason.as_ref())).collect();
    assert_eq!(reasons, [(Some(1.0), "frame 0: 3 of 4 packets"), (None, "frame 5: no packet")]);
    assert_eq!(named(&pair, "frame_shown").len(), 498);
}

#[test]
fn nothing_arriving_ends_in_a_stated_end() {
    let pair = run(&spec(false), Pipe { drop: |_| true, ..Pipe::default() }, &[]);
    let end = named(&pair, crate::MEDIA_END);
    assert_eq!(end.len(), 1);
    assert_eq!((end[0].value, end[0].reason.as_ref()), (Some(0.0), "no packet arrived"));
    assert_eq!(end[0].at, Instant::from_nanos(30_500_000_000));
}

#[test]
fn a_pause_holds_the_clip_and_its_playout() {
    let pair = run(&spec(false), Pipe::default(), &[(5_010, Input::Pause), (8_010, Input::Resume)]);
    let shown = named(&pair, "frame_shown");
    assert_eq!(shown.len(), 500);
    assert_eq!(shown[499].at, Instant::from_nanos(510_000_000 + 499 * 40_000_000 + 3_000_000_000));
    let quiet = 5_010_000_000..8_010_000_000;
    assert!(!pair.sent.iter().any(|s| quiet.contains(&s.at.as_nanos())));
}

#[test]
fn a_stop_ends_the_clip_at_both_ends() {
    for tcp in [false, true] {
        let stream = tcp.then_some(1_000_000);
        let pair =
            run(&spec(tcp), Pipe { stream_bytes_per_s: stream, ..Pipe::default() }, &[(5_010, Input::Stop)]);
        let end = named(&pair, crate::MEDIA_END);
        assert_eq!((end.len(), end[0].reason.as_ref()), (1, "stopped"));
        assert!(named(&pair, "frame_shown").len() <= 125);
        assert!(pair.sent.iter().all(|sent| sent.at <= Instant::from_nanos(5_010_000_000)));
    }
}

#[test]
fn on_a_wide_stream_nothing_stalls() {
    let pair = run(&spec(true), Pipe { stream_bytes_per_s: Some(1_000_000), ..Pipe::default() }, &[]);
    assert_eq!(named(&pair, "frame_shown").len(), 500);
    assert!(named(&pair, "stall").is_empty() && named(&pair, "sender_behind").is_empty());
    assert!(!named(&pair, "rtcp_rtt").is_empty(), "reports pass both ways");
    assert_eq!(named(&pair, crate::MEDIA_END).len(), 1);
}

#[test]
fn an_outage_of_the_stream_stalls_once_and_is_caught_up_by_the_server() {
    let outage = (Duration::from_secs(5), Duration::from_secs(9));
    let pair = run(&spec(true), Pipe { stream_bytes_per_s: Some(200_000), outage, ..Pipe::default() }, &[]);
    let (stalls, resumes) = (named(&pair, "stall"), named(&pair, "resume"));
    assert_eq!((stalls.len(), resumes.len()), (1, 1));
    // Stalls once the 0.5 s buffer is spent; resumes when 0.5 s of media is there again after the outage.
    assert!((5.3..5.7).contains(&stalls[0].at.as_secs_f64()), "{:?}", stalls[0]);
    assert!((9.0..9.5).contains(&resumes[0].at.as_secs_f64()), "{:?}", resumes[0]);
    assert_eq!(named(&pair, "frame_shown").len(), 500, "nothing is lost on a stream");
}

#[test]
fn a_stream_slower_than_the_clip_puts_the_server_behind() {
    // The clip is 35 kB/s.
    let pair = run(&spec(true), Pipe { stream_bytes_per_s: Some(25_000), ..Pipe::default() }, &[]);
    assert!(named(&pair, "sender_behind").len() > 5);
    assert!(named(&pair, "stall").len() > 3);
    assert_eq!(named(&pair, "stall").len(), named(&pair, "resume").len());
    assert_eq!(named(&pair, "frame_shown").len(), 500);
}

#[test]
fn refuses_what_it_cannot_play() {
    let with = |change: fn(&mut RtpSpec)| {
        let mut bad = spec(false);
        change(&mut bad);
        bad.machines("video", 1).err().expect("must be refused").0
    };
    assert_eq!(with(|s| s.max_payload = 1461), "app.rtp.max_payload");
    assert_eq!(with(|s| s.clip.frame_bytes = vec![].into()), "app.rtp.clip.frame_bytes");
    assert_eq!(with(|s| s.clip.frame_bytes = vec![1000, 0].into()), "app.rtp.clip.frame_bytes");
    assert_eq!(with(|s| s.clip.frame_interval = Duration::ZERO), "app.rtp.clip.frame_interval");
    assert_eq!(with(|s| s.rtcp_interval = Duration::ZERO), "app.rtp.rtcp_interval");
}

#[test]
fn an_outage_across_the_wrap_of_sequence_numbers_ends() {
    let mut spec = spec(false);
    spec.clip.duration = Duration::from_secs(200);
    // The first number after the outage is far below the last before it.
    let wraps = |seed: &u64| {
        (61_000..64_000).contains(&SessionDescription::new(&spec, "video", *seed).first_sequence)
    };
    let seed = (0..).find(wraps).unwrap();
    let made = spec.machines("video", seed).unwrap();
    let outage = Pipe { drop: |n| (1_000..5_000).contains(&n), ..Pipe::default() };
    let mut pair = Pair::new(made.server, made.player, outage);
    pair.run(Instant::from_nanos(250_000_000_000));
    assert_eq!(media_sent(&pair), 6_500);
    // Out of 5,000 frames those of some 1,000 packets before it and 1,500 after it (reports are among the dropped
    // packets).
    let shown = named(&pair, "frame_shown").len();
    assert!((1_900..2_000).contains(&shown), "{shown}");
}

#[test]
fn a_decoder_that_loses_count_shows_less_of_the_same_packets() {
    let pipe = || Pipe { drop: |n| n % 23 == 7, ..Pipe::default() };
    let ideal = run(&spec(false), pipe(), &[]);
    let real = run(&RtpSpec { decoder: Decoder::Libavcodec, ..spec(false) }, pipe(), &[]);
    let shown = |pair: &Pair| named(pair, "frame_shown").iter().map(|e| e.value).collect::<Vec<_>>();
    let (all, some) = (shown(&ideal), shown(&real));
    assert!(named(&ideal, "dropped_frames").is_empty());
    assert!(some.iter().all(|number| all.contains(number)));
    let dropped = named(&real, "dropped_frames");
    assert_eq!(dropped.last().unwrap().value, Some((all.len() - some.len()) as f64));
    assert_eq!(named(&ideal, "frame_incomplete").len(), named(&real, "frame_incomplete").len());
}
