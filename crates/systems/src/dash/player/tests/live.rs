//! Live: play begins behind the edge and follows it.

use super::*;
use crate::dash::origin::{EPOCH, MASTER, TIMELINE_MPD};

fn live(on_air_s: u64) -> Presentation {
    let settings =
        OriginSettings { live: true, on_air: Duration::from_secs(on_air_s), ..OriginSettings::default() };
    Presentation::of_ladder(&ladder(&[400_000], 80), &settings).unwrap()
}

fn follow(form: &str, delay_s: Option<u64>) -> Vec<Event> {
    let settings = DashPlayerSettings { live_delay: delay_s.map(Duration::from_secs), ..fixed(0) };
    let player = DashPlayer::new(settings, source(form), 1).with_server_clock(EPOCH);
    let mut pair = Pair::new(serving(live(30)), Box::new(player), pipe(4_000_000));
    pair.run(at(40));
    pair.events
}

#[test]
fn a_live_stream_is_followed_behind_its_edge() {
    for form in [MPD, TIMELINE_MPD] {
        let events = follow(form, Some(6));
        assert!(named(&events, "stall").is_empty(), "{form}: {:?}", named(&events, "stall"));
        assert!(named(&events, "http_failure").is_empty(), "{form}: {:?}", named(&events, "http_failure"));
        let latency = values(&events, "live_latency");
        // It begins with the segment that was captured 6 s ago.
        assert!(latency.len() > 60 && latency.iter().all(|s| (6.0..8.3).contains(s)), "{form}: {latency:?}");
        let numbers = values(&events, "frame_shown");
        assert!(numbers.len() > 900 && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1.0), "{form}");
    }
}

#[test]
fn a_live_playlist_is_fetched_again_as_it_grows() {
    let events = follow(MASTER, None);
    assert!(named(&events, "stall").len() <= 1, "{:?}", named(&events, "stall"));
    assert!(named(&events, "http_failure").is_empty());
    let numbers = values(&events, "frame_shown");
    assert!(
        numbers.len() > 800 && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1.0),
        "{}",
        numbers.len()
    );
    let reloads =
        named(&events, "http_request").iter().filter(|event| event.reason.ends_with("v0.m3u8")).count();
    assert!((15..=45).contains(&reloads), "{reloads}");
}

#[test]
fn a_live_stream_that_ends_is_played_to_its_end() {
    for form in [MPD, TIMELINE_MPD, MASTER] {
        let player = DashPlayer::new(fixed(0), source(form), 1).with_server_clock(EPOCH);
        let mut pair = Pair::new(serving(live(60)), Box::new(player), pipe(4_000_000));
        pair.run(at(60));
        assert_eq!(ended(&pair.events), "played to the end", "{form}");
        // The times of HLS begin with the first listed segment, and the last segment is the stream's.
        let last = values(&pair.events, "frame_shown").last().copied();
        assert!(form == MASTER || last == Some(1999.0), "{form}: {last:?}");
        let fetched = named(&pair.events, "segment_fetched");
        // Its number, where segments are listed by numbers from 1.
        let number = if form == MPD { "segment 39 " } else { "segment 40 " };
        assert!(
            fetched.last().unwrap().reason.starts_with(number),
            "{form}: {}",
            fetched.last().unwrap().reason
        );
    }
}
