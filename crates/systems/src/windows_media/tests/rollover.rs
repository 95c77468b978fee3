//! A player that tries one protocol after another.

use super::*;

/// Media has to arrive by the protocol of that number, after those before it were tried for this time.
struct Case {
    what: &'static str,
    drop: fn(u64) -> bool,
    silent: fn(u16) -> bool,
    listens: fn(u16) -> bool,
    /// Reasons of the tries, without the rest of the text.
    tried: &'static [&'static str],
    /// Time when the last was tried, in s.
    at: f64,
}

const NONE: fn(u16) -> bool = |_| false;
const ALL: fn(u16) -> bool = |_| true;

const CASES: [Case; 8] = [
    Case {
        what: "an open path",
        drop: |_| false,
        silent: NONE,
        listens: ALL,
        tried: &["RTSP over UDP"],
        at: 0.0,
    },
    Case {
        what: "no UDP",
        drop: |_| true,
        silent: NONE,
        listens: ALL,
        tried: &["RTSP over UDP", "RTSP over TCP; RTSP over UDP: no packet-pair data came within 10 s"],
        at: 10.0,
    },
    Case {
        what: "nobody at port 554",
        drop: |_| false,
        silent: NONE,
        listens: |port| port != 554,
        tried: &[
            "RTSP over UDP",
            "RTSP over TCP; RTSP over UDP: the server could not be reached",
            "MMS over UDP; RTSP over TCP: the server could not be reached",
        ],
        at: 0.0,
    },
    Case {
        what: "port 554 blocked",
        drop: |_| false,
        silent: |port| port == 554,
        listens: ALL,
        tried: &[
            "RTSP over UDP",
            "RTSP over TCP; RTSP over UDP: no connection came to be for 21 s",
            "MMS over UDP; RTSP over TCP: no connection came to be for 21 s",
        ],
        at: 42.0,
    },
    Case {
        what: "no UDP, nobody at port 554",
        drop: |_| true,
        silent: NONE,
        listens: |port| port != 554,
        tried: &[
            "RTSP over UDP",
            "RTSP over TCP",
            "MMS over UDP",
            "MMS over TCP; MMS over UDP: no packet-pair data and no header came within 10 s",
        ],
        at: 10.0,
    },
    Case {
        what: "HTTP alone",
        drop: |_| true,
        silent: NONE,
        listens: |port| port == 80,
        tried: &[
            "RTSP over UDP",
            "RTSP over TCP",
            "MMS over UDP",
            "MMS over TCP; MMS over UDP: the server could not be reached",
            "HTTP; MMS over TCP: the server could not be reached",
        ],
        at: 0.0,
    },
    Case {
        what: "all ports but HTTP's blocked",
        drop: |_| true,
        silent: |port| port != 80,
        listens: ALL,
        tried: &["RTSP over UDP", "RTSP over TCP", "MMS over UDP", "MMS over TCP", "HTTP"],
        at: 84.0,
    },
    Case {
        what: "packets that measure the link lost, and media not",
        drop: |n| n < 3,
        silent: NONE,
        listens: ALL,
        tried: &["RTSP over UDP", "RTSP over TCP; RTSP over UDP: no packet-pair data"],
        at: 10.0,
    },
];

#[test]
fn each_protocol_is_reached_where_those_before_it_do_not_work() {
    for Case { what, drop, silent, listens, tried, at } in CASES {
        let pipe = Pipe { drop, silent, ..pipe() };
        let pair = run_listening(&spec(WmTransport::Rollover), pipe, &[], listens);
        let told = named(&pair, "protocol_tried");
        assert_eq!(told.len(), tried.len(), "{what}: {told:?}");
        for (event, reason) in told.iter().zip(tried) {
            assert!(event.reason.starts_with(reason), "{what}: {:?}", event.reason);
        }
        let counts: Vec<f64> = told.iter().filter_map(|event| event.value).collect();
        assert_eq!(counts, (1..=tried.len()).map(|count| count as f64).collect::<Vec<_>>(), "{what}");
        let last = told[tried.len() - 1].at.saturating_since(Instant::ZERO).as_secs_f64();
        assert!((at..at + 0.5).contains(&last), "{what}: {last} s");
        let (shown, why) = end(&pair);
        assert_eq!(shown, (SECONDS * 10) as f64, "{what}: {why}");
        // The requests of the protocols before it are no longer served.
        assert!(named(&pair, "session_timeout").is_empty() && named(&pair, "stall").is_empty(), "{what}");
    }
}

#[test]
fn where_nothing_works_all_is_told_in_one_error() {
    let pair = run_listening(&spec(WmTransport::Rollover), pipe(), &[], |_| false);
    let (shown, why) = end(&pair);
    assert_eq!(shown, 0.0);
    assert!(why.starts_with("an error: no protocol works; RTSP over UDP: the server could not"), "{why}");
    assert_eq!(why.matches("the server could not be reached").count(), 5, "{why}");
}

#[test]
fn the_waits_are_those_of_the_settings() {
    let mut hasty = spec(WmTransport::Rollover);
    hasty.player.connect_wait = Duration::from_millis(1_500);
    let pipe = Pipe { drop: |_| true, silent: |port| port != 80, ..pipe() };
    let pair = run(&hasty, pipe.clone(), &[]);
    let at = |pair: &Pair, n: usize| named(pair, "protocol_tried")[n].at.saturating_since(Instant::ZERO);
    assert_eq!(
        (0..5).map(|n| at(&pair, n).as_nanos() / 1_000_000).collect::<Vec<_>>(),
        [0, 1500, 3000, 4500, 6000]
    );
    // A player that stops is closed, with any number of protocols left to try.
    let pair = run(&hasty, pipe, &[(2_000, Input::Stop)]);
    assert_eq!((named(&pair, "protocol_tried").len(), end(&pair).1.as_str()), (2, "stopped"));
}

#[test]
fn a_server_without_media_is_left_for_the_next_protocol() {
    // No packets that measure the link are asked for: then silence behind PLAY ends the try.
    let mut told = spec(WmTransport::Rollover);
    (told.player.packet_pair, told.player.retransmission) = (false, false);
    let pair = run(&told, Pipe { drop: |_| true, ..pipe() }, &[]);
    let tried = named(&pair, "protocol_tried");
    assert_eq!(tried.len(), 2);
    assert_eq!(tried[1].reason, "RTSP over TCP; RTSP over UDP: no media came for 10 s");
    assert_eq!(end(&pair).0, (SECONDS * 10) as f64);
}

#[test]
fn once_media_has_come_nothing_else_is_tried() {
    // The connection ends in the middle.
    let pipe = Pipe { outage: (Duration::from_secs(10), Duration::from_secs(300)), ..pipe() };
    let mut told = spec(WmTransport::Rollover);
    told.player.give_up_after = Duration::from_secs(20);
    let pair = run_listening(&told, Pipe { drop: |n| n > 400, ..pipe }, &[], |_| true);
    assert_eq!(named(&pair, "protocol_tried").len(), 1);
    assert_eq!(end(&pair).1, "nothing came from the server for 20 s");
}
