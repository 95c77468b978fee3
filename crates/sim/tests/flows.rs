//! Starts, actions and ends.

mod common;

use common::*;
use streamgauge_base::{Direction, Duration, Fate, Instant, PacketInfo};
use streamgauge_path::spec::Limit;
use streamgauge_plan::{Action, AppSpec, TrialPlan};
use streamgauge_plan::{TcpSpec, TrialLimits};
use streamgauge_sim::{EndedBy, SimError, run};
use streamgauge_systems::System;
use streamgauge_systems::bulk::BulkSpec;

fn wide(flows: Vec<streamgauge_plan::FlowSpec>, seconds: u64) -> TrialPlan {
    plan(path(2_000_000, Limit::Packets(100), 10), flows, seconds, 1)
}

#[test]
fn a_flow_is_silent_before_it_starts_while_paused_and_after_it_stops() {
    for app in [
        cbr("x", 100.0, 500, &[]),
        bulk("x", "cubic", 16 << 10),
        bulk_agreed("x", "cubic", 16 << 10),
        rtp("x", 60, None),
        ping("x", 50, 56),
    ] {
        let mut flow = starting(app, Duration::from_secs(2));
        let second = Duration::from_secs;
        flow.actions =
            vec![(second(4), Action::Pause), (second(6), Action::Resume), (second(8), Action::Stop)];
        let (_, record) = Rows::of(&wide(vec![flow.clone()], 12));
        // Among the data that it sends: bytes in flight at a pause still drain, and the end needs a farewell.
        let sent = |from: u64, to: u64| {
            let between =
                Instant::ZERO + Duration::from_millis(from)..Instant::ZERO + Duration::from_millis(to);
            let rows =
                record.at(0, 0).filter(|(_, info, _)| info.payload_bytes > 300 || info.payload_bytes == 56);
            rows.filter(|(fate, ..)| between.contains(&fate.t_in)).count()
        };
        assert_eq!(sent(0, 2_000), 0, "{flow:?}");
        assert!(sent(2_000, 4_000) > 20, "{flow:?}");
        // TCP's send buffer (4 MB at 2 Mbit/s) outlives the pause, and is given up at the stop, which a bulk flow's
        // server learns from its player.
        let is_bulk = flow.app.system() == BulkSpec::NAME;
        if !is_bulk {
            assert_eq!(sent(4_001, 6_000), 0, "{flow:?}");
        }
        assert_eq!(sent(if is_bulk { 8_012 } else { 8_001 }, 12_000), 0, "{flow:?}");
        assert!(sent(6_000, 8_000) > 20, "{flow:?}");
    }
}

/// Data that waits in a stream's buffer when it is stopped never leaves.
#[test]
fn a_stopped_stream_gives_up_what_it_has_not_sent() {
    let second = Duration::from_secs;
    let ahead = TcpSpec { send_buffer: Some(1 << 20), ..tcp("cubic", 256 << 10) };
    let streams =
        [rtp("x", 60, Some(ahead)), bulk("x", "bbr", 256 << 10), bulk_agreed("x", "bbr", 256 << 10)];
    for mut flow in streams {
        flow.actions = vec![(second(4), Action::Stop)];
        // Too slow for the clip: the send buffer has been full for long.
        let (summary, record) =
            Rows::of(&plan(path(300_000, Limit::Packets(20), 10), vec![flow.clone()], 10, 1));
        let late = Instant::ZERO + Duration::from_millis(4_012);
        let data =
            |(fate, info, _): &&(Fate, PacketInfo, Direction)| info.payload_bytes > 0 && fate.t_in > late;
        assert_eq!(record.at(0, 0).filter(data).count(), 0, "{flow:?}");
        let sent = &summary.flows[0];
        assert!(sent.server_sent_bytes > sent.player_received_bytes + (64 << 10), "{sent:?}");
        assert_eq!(record.named("media_end").len(), 1);
        assert_eq!(record.named("media_end")[0].reason, "stopped");
    }
}

/// By the packets of iperf3: four round trips in the place of one.
#[test]
fn the_data_come_three_round_trips_later_where_a_control_connection_is_first() {
    let first = |flow, seed| {
        let mut plan = plan(path(10_000_000, Limit::Packets(100), 50), vec![flow], 2, seed);
        plan.host_jitter = Duration::ZERO;
        let (_, record) = Rows::of(&plan);
        let mut data = record.at(0, 0).filter(|(_, info, _)| info.payload_bytes > 1_000);
        data.next().expect("data").0.t_in.saturating_since(Instant::ZERO).as_secs_f64()
    };
    let at_once = first(bulk("x", "cubic", 1 << 20), 1);
    let agreed: Vec<f64> = (1..6).map(|seed| first(bulk_agreed("x", "cubic", 1 << 20), seed)).collect();
    // This includes the time to send so few bytes at 10 Mbit/s, and to start the server's program: 1.3 to 8.8 ms.
    assert!(agreed.iter().all(|at| (0.3013..0.311).contains(&(at - at_once))), "{at_once} {agreed:?}");
    assert!(agreed.windows(2).all(|pair| pair[0] != pair[1]), "drawn by the seed: {agreed:?}");
}

#[test]
fn the_trial_ends_with_the_media() {
    let mut plan = wide(vec![rtp("video", 5, None), cbr("mgen", 10.0, 100, &[])], 60);
    plan.until_media_end = Some("video".into());
    let (summary, record) = Rows::of(&plan);
    assert_eq!(summary.ended_by, EndedBy::MediaEnd);
    // The last frame, sent at 4.96 s, is due half a second after the first one would have been due at once.
    assert!((5.4..5.6).contains(&summary.duration_s), "{}", summary.duration_s);
    assert_eq!(record.named("frame_shown").len(), 125);
}

#[test]
fn the_trial_ends_when_nothing_has_moved_for_long() {
    // The second flow starts when nothing has moved for five seconds: that is no end.
    let flows =
        vec![cbr("a", 10.0, 100, &[(0, 5_000)]), starting(cbr("b", 10.0, 100, &[(0, 11_000)]), ms(10_000))];
    let mut plan = wide(flows, 60);
    plan.until_idle = Some(Duration::from_secs(4));
    let (summary, _) = Rows::of(&plan);
    assert_eq!(summary.ended_by, EndedBy::Idle);
    // The last packet is sent at 10.9 s and needs 0.568 ms + 10 ms.
    assert!((14.9..14.92).contains(&summary.duration_s), "{}", summary.duration_s);
}

#[test]
fn over_tcp_a_stream_squeezed_by_cross_traffic_stalls_and_recovers() {
    let mut settings = tcp("cubic", 256 << 10);
    settings.send_buffer = Some(32 << 10);
    let flows = vec![rtp("video", 40, Some(settings)), cbr("mgen", 120.0, 1000, &[(10_000, 20_000)])];
    let mut plan = plan(path(1_000_000, Limit::Packets(100), 10), flows, 90, 1);
    plan.until_media_end = Some("video".into());
    let (summary, record) = Rows::of(&plan);
    assert_eq!(record.named("frame_shown").len(), 1000, "a stream loses nothing");
    assert!(!record.named("stall").is_empty());
    assert_eq!(record.named("stall").len(), record.named("resume").len());
    assert!(record.named("stall").iter().all(|e| e.at >= Instant::from_nanos(10_000_000_000)));
    assert!(!record.named("sender_behind").is_empty());
    assert_eq!(summary.ended_by, EndedBy::MediaEnd);
}

#[test]
fn over_udp_the_same_squeeze_costs_frames() {
    let flows = vec![rtp("video", 40, None), cbr("mgen", 120.0, 1000, &[(10_000, 20_000)])];
    let (_, record) = Rows::of(&plan(path(1_000_000, Limit::Packets(100), 10), flows, 60, 1));
    let count = |name: &str| record.named(name).len();
    assert_eq!(count("frame_shown") + count("frame_late") + count("frame_incomplete"), 1000);
    assert!(count("frame_incomplete") + count("frame_late") > 100);
    assert!(count("frame_shown") > 700);
    let lost = record.named("cumulative_lost").last().unwrap().value.unwrap();
    assert!(lost > 50.0, "{lost}");
}

#[test]
fn refuses_plans_that_mean_nothing_and_says_where() {
    let refused = |change: fn(&mut TrialPlan)| {
        let mut bad = wide(vec![bulk("ftp", "reno", 16 << 10)], 10);
        change(&mut bad);
        run(&bad, ()).expect_err("must be refused").to_string()
    };
    assert!(refused(|p| p.duration = Duration::ZERO).starts_with("duration: "));
    assert!(refused(|p| p.flows.push(p.flows[0].clone())).contains("\"ftp\""));
    assert!(refused(|p| p.until_media_end = Some("vid".into())).starts_with("until_media_end: "));
    assert!(refused(|p| p.path.up.clear()).starts_with("path.up: "));
    assert!(refused(|p| p.flows[0].app = AppSpec::external()).starts_with("flows.ftp.app: "));
    let unknown = refused(|p| p.flows[0] = bulk("ftp", "westwood", 16 << 10));
    assert!(unknown.starts_with("flows.ftp.tcp.congestion_control: \"westwood\""), "{unknown}");
    assert!(refused(|p| p.flows[0] = bulk("ftp", "reno", 100)).starts_with("flows.ftp.tcp.receive_window: "));
}

#[test]
fn a_full_or_missing_directory_is_an_error_and_leaves_nothing() {
    let plan = wide(vec![cbr("a", 10.0, 100, &[])], 5);
    let missing = std::env::temp_dir().join("streamgauge-sim-test/no/such/folder");
    let error = streamgauge_sim::simulate(&plan, &missing).unwrap_err();
    assert!(matches!(error, SimError::Record(_)), "{error}");
    assert!(error.to_string().contains("packets.parquet"), "{error}");
}

#[test]
fn a_trial_beyond_its_limits_ends_in_an_error_that_names_the_key_and_the_time() {
    let plan = |events, memory_bytes| TrialPlan {
        limits: TrialLimits { events, memory_bytes },
        ..wide(vec![cbr("x", 100.0, 500, &[])], 1_000)
    };
    let refused = |plan: &TrialPlan, recorder: Rows| {
        let Err(SimError::Plan { key, what }) = run(plan, recorder).map(|_| ()) else {
            panic!("a trial of {} s ran to its end", plan.duration.as_secs_f64());
        };
        (key, what)
    };
    let (key, what) = refused(&plan(5_000, u64::MAX), Rows::default());
    assert_eq!(key, "limits.events");
    assert!(what.starts_with("more than 5000 events at ") && what.contains("raise this key"), "{what}");

    let (key, what) = refused(&plan(u64::MAX, 100), Rows::default());
    assert_eq!(key, "limits.memory");
    assert!(what.contains("the limit is 100 B"), "{what}");
}
