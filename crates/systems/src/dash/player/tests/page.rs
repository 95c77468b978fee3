//! Behaviour of players in a browser's page that others do not share: their delays, and their parallel requests.

use super::playing::{adds_up, shows_all};
use super::*;
use crate::dash::player::clock::Held;
use crate::dash::player::settings::PlayerKind;

/// When each request was made, and its target.
fn requests(events: &[Event]) -> Vec<(Instant, &str)> {
    named(events, "http_request").iter().map(|event| (event.at, &*event.reason)).collect()
}

#[test]
fn a_page_takes_time_where_no_bytes_move() {
    let ladder = ladder(&[400_000], 20);
    let playing = |settings| play(presented(&ladder), settings, MPD, pipe(4_000_000), 60);
    let (set_up, append, first_append, first_picture) = (ms(200), ms(30), ms(100), ms(300));
    let page = DashPlayerSettings {
        set_up: vec![set_up],
        append: vec![append],
        first_append: vec![first_append],
        first_picture: vec![first_picture],
        ..fixed(0)
    };
    let (plain, page) = (playing(fixed(0)), playing(page));
    for events in [&plain, &page] {
        shows_all(events, 500);
        adds_up(events, 20.0);
    }
    // The manifest, the initialisation, the first segment.
    let (before, after) = (requests(&plain), requests(&page));
    assert_eq!(before[0], after[0]);
    assert_eq!(after[1].0, before[1].0 + set_up);
    let came: Vec<Instant> = named(&page, "segment_fetched").iter().map(|event| event.at).collect();
    assert_eq!(named(&page, "playout_start")[0].at, came[0] + first_picture);
    assert_eq!(after[3].0, came[0] + first_append);
    for (came, (asked, target)) in came[1..].iter().zip(&after[4..]) {
        assert_eq!(*asked, *came + append, "{target}");
    }
}

#[test]
fn play_goes_on_after_a_stall_when_the_decoder_has_the_segment() {
    let ladder = ladder(&[400_000], 20);
    let settings = DashPlayerSettings { append: vec![ms(30)], ..fixed(0) };
    let events = play(presented(&ladder), settings, MPD, pipe(300_000), 100);
    shows_all(&events, 500);
    let came: Vec<Instant> = named(&events, "segment_fetched").iter().map(|event| event.at).collect();
    let resumed = named(&events, "resume");
    assert!(resumed.len() > 3);
    for one in resumed {
        assert!(came.iter().any(|came| *came + ms(30) == one.at), "{:?}", one.at);
    }
}

#[test]
fn a_page_takes_time_over_a_later_initialisation() {
    let ladder = ladder(&[300_000, 600_000, 1_200_000], 20);
    let playing = |init_append| {
        let rule = "dashjs-throughput".into();
        let settings = DashPlayerSettings { rule, init_append, ..DashPlayerSettings::default() };
        play(presented(&ladder), settings, MPD, pipe(3_000_000), 60)
    };
    let (plain, page) = (playing(Vec::new()), playing(vec![ms(50)]));
    let (before, after) = (requests(&plain), requests(&page));
    let inits = |asked: &[(Instant, &str)]| -> Vec<usize> {
        (0..asked.len()).filter(|at| asked[*at].1.contains("init")).collect()
    };
    // The first one's time is in `set_up`.
    let (first, second) = (inits(&after)[0], inits(&after)[1]);
    assert_eq!(before[..=second], after[..=second]);
    assert!(first + 1 < second && after[second + 1].0 == before[second + 1].0 + ms(50));
}

/// Shaka chooses when 128 kB were read, by samples of at least 16 kB, which take 256 ms.
#[test]
fn a_page_that_reads_late_gives_up_late() {
    let ladder = ladder_of(&[300_000, 700_000, 1_500_000], 48, 4);
    let gives_up = |late: &[Duration]| {
        let (read, first_read) = (late.to_vec(), late.to_vec());
        let settings = DashPlayerSettings { rule: "shaka".into(), read, first_read, ..fixed(0) };
        let events = play(presented(&ladder), settings, MPD, pipe(500_000), 120);
        shows_all(&events, 1_200);
        named(&events, "segment_abandoned")[0].at
    };
    let (plain, late) = (gives_up(&[]), gives_up(&[ms(40)]));
    assert!(plain < late && late <= plain + ms(256 + 40), "{plain:?} {late:?}");
}

#[test]
fn a_full_buffer_is_looked_at_each_so_often() {
    let ladder = ladder(&[400_000], 60);
    let settings = DashPlayerSettings { buffer: ms(10_000), look_each: ms(700), ..fixed(0) };
    let events = play(presented(&ladder), settings, MPD, pipe(8_000_000), 100);
    shows_all(&events, 1_500);
    let offs = named(&events, "download_off");
    let ons = named(&events, "download_on");
    assert!(offs.len() > 10 && ons.len() + 1 >= offs.len());
    for (off, on) in offs.iter().zip(&ons) {
        let rested = on.at.saturating_since(off.at).as_nanos();
        assert!(rested > 0 && rested % ms(700).as_nanos() == 0, "{rested}");
    }
}

#[test]
fn the_segments_before_where_play_begins_come_first() {
    for target in [MPD, crate::dash::origin::MASTER] {
        let ladder = ladder(&[400_000], 60);
        let settings = |begin_early| DashPlayerSettings { begin_at: ms(21_000), begin_early, ..fixed(0) };
        let playing = |early| play(presented(&ladder), settings(early), target, pipe(2_000_000), 100);
        let (usual, early) = (playing(Duration::ZERO), playing(ms(2_000)));
        for events in [&usual, &early] {
            assert_eq!(values(events, "frame_shown")[0], (25 * 21) as f64);
            adds_up(events, 39.0);
        }
        let first = |events: &[Event]| named(events, "segment_fetched")[0].reason.clone();
        assert!(first(&usual).starts_with("segment 10 ") && first(&early).starts_with("segment 9 "));
        assert_eq!(values(&early, "segment_shown").len(), 20);
    }
}

/// On a link of one round trip, a segment that waits for its initialisation arrives a round trip after its request.
#[test]
fn an_initialisation_is_asked_for_beside_its_segment() {
    let ladder = ladder(&[300_000, 600_000, 1_200_000], 40);
    let playing = |init_beside, rule: &str| {
        let settings = DashPlayerSettings { rule: rule.into(), init_beside, ..DashPlayerSettings::default() };
        play(presented(&ladder), settings, MPD, pipe(3_000_000), 80)
    };
    for rule in ["bba-0", "shaka", "hlsjs"] {
        let (plain, beside) = (playing(false, rule), playing(true, rule));
        for events in [&plain, &beside] {
            shows_all(events, 1_000);
            adds_up(events, 40.0);
        }
        let together = |events: &[Event]| {
            let asked = requests(events);
            let inits = asked.iter().zip(&asked[1..]).filter(|(init, _)| init.1.contains("init"));
            inits.map(|(init, next)| init.0 == next.0).collect::<Vec<_>>()
        };
        assert!(together(&plain).iter().all(|same| !same));
        assert!(!together(&beside).is_empty() && together(&beside).iter().all(|same| *same), "{rule}");
    }
}

#[test]
fn shaka_gives_up_what_comes_when_it_chooses_another_level() {
    let ladder = ladder_of(&[300_000, 700_000, 1_500_000, 3_000_000], 72, 4);
    for bits_per_s in [500_000, 2_500_000, 6_000_000] {
        let settings = DashPlayerSettings { cmcd: true, ..DashPlayerSettings::of(PlayerKind::Shaka) };
        let events = play(presented(&ladder), settings, MPD, pipe(bits_per_s), 200);
        shows_all(&events, 1_800);
        adds_up(&events, 72.0);
        let given_up = named(&events, "segment_abandoned");
        assert!(!given_up.is_empty(), "{bits_per_s}");
        for one in given_up {
            // "segment 3 at 700 kbit/s, for 1500 kbit/s: ...": that segment is next.
            let number = one.reason.split(' ').nth(1).unwrap();
            let next = named(&events, "segment_fetched").into_iter().find(|event| event.at > one.at).unwrap();
            assert_eq!(next.reason.split(' ').nth(1), Some(number));
        }
    }
}

fn held(ordinal: u64, bps: u64) -> Held {
    let (start, end) = (ms(2_000 * ordinal), ms(2_000 * (ordinal + 1)));
    Held { ordinal, start, end, bps, bytes: 1, frames: 50, times: Vec::new(), is_filler: false }
}

/// If the play position is just before the end of the media that ran out, that segment is still shown, at the level
/// that arrived last for it.
#[test]
fn what_ran_out_is_shown_still() {
    let (mut clock, mut events) = (Clock::new(ms(0), ms(0), Instant::ZERO, ms(0)), Outbox::default());
    let mut shelves = [Shelf::default()];
    shelves[0].push(held(0, 100), ms(0));
    clock.advance(Instant::ZERO, &mut shelves, &mut events);
    clock.advance(at(3), &mut shelves, &mut events);
    let shown = |shelf: &Shelf, at| shelf.at(at).map(|held| (held.ordinal, held.bps));
    assert_eq!(clock.position(at(3)), ms(2_000));
    assert_eq!(shown(&shelves[0], ms(1_980)), Some((0, 100)));
    assert_eq!(shown(&shelves[0], ms(2_000)), None);
    shelves[0].push(held(0, 300), ms(2_000));
    assert_eq!(shown(&shelves[0], ms(1_980)), Some((0, 300)));
    shelves[0].push(held(1, 200), ms(2_000));
    assert_eq!(shown(&shelves[0], ms(1_980)), Some((0, 300)));
    assert_eq!(shown(&shelves[0], ms(2_000)), Some((1, 200)));
}
