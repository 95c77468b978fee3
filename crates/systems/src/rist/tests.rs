use proptest::prelude::*;
use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_wire::rist::{Data, NackRange, RistApp, is_repeated};
use streamgauge_wire::rtcp::{self, Packet};

use super::*;
use crate::app::{App, Envelope, Input, Io};
use crate::testing::{Pair, Pipe};

/// Pictures of 5 datagrams each 40 ms: 10 s of 1.3 Mbit/s.
fn spec() -> RistSpec {
    RistSpec {
        clip: ClipSpec {
            name: "test".into(),
            duration: Duration::from_secs(10),
            frame_interval: Duration::from_millis(40),
            frame_bytes: vec![6_000].into(),
            ..ClipSpec::default()
        },
        latency: Duration::from_millis(300),
        ..RistSpec::usual()
    }
}

fn pair(spec: &RistSpec, pipe: Pipe) -> Pair {
    let made = spec.machines("video", 1).unwrap();
    let mut pair = Pair::new(made.server, made.player, pipe);
    pair.begins_with(&made.channels);
    pair
}

fn run(spec: &RistSpec, pipe: Pipe) -> Pair {
    let mut pair = pair(spec, pipe);
    pair.run(at(60_000));
    pair
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn named<'a>(pair: &'a Pair, name: &str) -> Vec<&'a Event> {
    pair.events.iter().filter(|event| event.name == name).collect()
}

fn count(pair: &Pair, name: &str) -> usize {
    named(pair, name).len()
}

fn sum(pair: &Pair, name: &str) -> f64 {
    named(pair, name).iter().filter_map(|event| event.value).sum()
}

/// Time, number and whether it was sent before, of the sender's packets of media.
fn media(pair: &Pair) -> Vec<(Instant, u16, bool)> {
    let media = pair.sent.iter().filter(|sent| sent.channel == MEDIA);
    media
        .map(|sent| {
            let data = Data::parse(&sent.datagram).unwrap();
            (sent.at, data.sequence, data.is_repeated)
        })
        .collect()
}

/// Packets of RTCP.
fn control(sent: &[crate::testing::Sent]) -> Vec<(Instant, Vec<Packet>)> {
    let control = sent.iter().filter(|sent| sent.channel == CONTROL);
    control.map(|sent| (sent.at, rtcp::parse(sent.datagram.head()).map(Result::unwrap).collect())).collect()
}

/// The numbers that the receiver asks for, by time.
fn asked(pair: &Pair) -> Vec<(Instant, Vec<u16>)> {
    let numbers = |packet: &Packet| match packet {
        Packet::Rist(RistApp::Ranges { ranges, .. }) => {
            Some(ranges.iter().flat_map(|one| one.sequences()).collect())
        }
        Packet::Nack(nack) => Some(nack.sequences().collect::<Vec<u16>>()),
        _ => None,
    };
    let control = control(&pair.sent_by_player).into_iter();
    control.filter_map(|(at, packets)| Some((at, packets.iter().find_map(numbers)?))).collect()
}

/// Loses datagrams of the sender, and none of the last ones: no later packet would show them as missing.
const LOSSY: fn(u64) -> bool = |number| (10..1_300).contains(&number) && number % 20 == 19;

#[test]
fn on_a_clean_path_every_picture_is_shown_a_latency_after_it_would_arrive() {
    let pair = run(&spec(), Pipe::default());
    let shown = named(&pair, "frame_shown");
    let first = media(&pair)[0].0;
    // The receiver's first report is there after a round trip.
    assert_eq!((shown.len(), first), (250, at(20)));
    let due = first + Duration::from_millis(310);
    assert!(shown[0].at.saturating_since(due) <= Duration::from_millis(1), "{:?} {due:?}", shown[0].at);
    let end = named(&pair, crate::MEDIA_END);
    assert_eq!(
        (end.len(), end[0].value, end[0].reason.as_ref()),
        (1, Some(250.0), "all frames were shown or given up")
    );
    assert_eq!(sum(&pair, "nack") + sum(&pair, "repeated") + sum(&pair, "unrepaired"), 0.0);
    assert_eq!((media(&pair).len(), count(&pair, "connected")), (250 * 5, 2));
}

#[test]
fn each_end_reports_with_its_name_no_less_than_ten_times_a_second() {
    let pair = run(&spec(), Pipe::default());
    for (sent, is_sender) in [(&pair.sent, true), (&pair.sent_by_player, false)] {
        let compounds = control(sent);
        let mut last = compounds[0].0;
        for (at, packets) in compounds.iter().filter(|(at, _)| *at < self::at(9_000)) {
            assert!(matches!(packets[0], Packet::SenderReport { .. } | Packet::ReceiverReport { .. }));
            assert!(matches!(packets[1], Packet::Cname { .. }), "{packets:?}");
            assert!(at.saturating_since(last) <= Duration::from_millis(101));
            last = *at;
        }
        let reports = compounds.iter().filter(|(_, packets)| match &packets[0] {
            Packet::SenderReport { .. } => is_sender,
            Packet::ReceiverReport { blocks, .. } => !is_sender && blocks.len() == 1,
            _ => false,
        });
        assert!(reports.count() > 90);
    }
    // The echo has the round trip.
    let rtts = named(&pair, "rist_rtt");
    let last = rtts[rtts.len() - 1].value.unwrap();
    assert!((0.019..0.022).contains(&last), "{last}");
}

#[test]
fn lost_packets_come_again_within_the_latency() {
    for request_form in [RequestForm::Ranges, RequestForm::Bits] {
        let pair = run(&RistSpec { request_form, ..spec() }, Pipe { drop: LOSSY, ..Pipe::default() });
        assert_eq!((count(&pair, "frame_shown"), sum(&pair, "unrepaired")), (250, 0.0), "{request_form:?}");
        let repeated = sum(&pair, "repeated");
        assert!((40.0..80.0).contains(&repeated), "{repeated}");
        // From the gap to the first request: half of the least round trip, then the round trip of 20 ms.
        let waits: Vec<f64> = named(&pair, "picture_wait").iter().filter_map(|event| event.value).collect();
        let waited = waits.iter().filter(|wait| **wait >= 0.045).count();
        assert!(waited > 30 && waits.iter().all(|wait| *wait < 0.3), "{waited} waited");
    }
}

#[test]
fn a_repetition_has_the_number_and_the_time_of_its_original_and_the_last_bit_of_its_source() {
    let pair = run(&spec(), Pipe { drop: LOSSY, ..Pipe::default() });
    let packets = pair.sent.iter().filter(|sent| sent.channel == MEDIA);
    let packets: Vec<Data<'_>> = packets.map(|sent| Data::parse(&sent.datagram).unwrap()).collect();
    let repeated: Vec<_> = packets.iter().filter(|data| data.is_repeated).collect();
    assert!(repeated.len() > 40);
    for again in repeated {
        let original = Data { is_repeated: false, ..*again };
        assert!(packets.contains(&original), "{again:?}");
    }
}

#[test]
fn a_packet_is_asked_for_each_round_trip_and_a_tenth_until_the_bound() {
    // The sixth picture is lost and, but for one, all repetitions are withheld: the rate is exceeded.
    let spec = |max_retries| RistSpec {
        max_retries,
        latency: Duration::from_millis(2_000),
        maxbitrate_bps: 100_000,
        ..spec()
    };
    let pipe = || Pipe {
        delay: Duration::from_millis(50),
        drop: |number| (300..303).contains(&number),
        ..Pipe::default()
    };
    let pair = run(&spec(6), pipe());
    let requests = asked(&pair);
    assert_eq!(requests.len(), 6, "{requests:?}");
    assert!(requests.iter().all(|(_, numbers)| numbers == &requests[0].1));
    let gaps: Vec<u64> =
        requests.windows(2).map(|two| (two[1].0 - two[0].0).as_nanos() / 1_000_000).collect();
    assert!(gaps.iter().all(|gap| (105..=120).contains(gap)), "{gaps:?}");
    // With the default, the age ends it: 1.1 latencies.
    let requests = asked(&run(&spec(100), pipe()));
    let lasts = requests[requests.len() - 1].0 - requests[0].0;
    assert!((18..=20).contains(&requests.len()), "{}", requests.len());
    assert!(lasts <= Duration::from_millis(2_200), "{lasts:?}");
}

#[test]
fn the_first_request_waits_for_packets_out_of_order() {
    let first = |reorder, delay| {
        let spec = RistSpec { reorder: Duration::from_millis(reorder), ..spec() };
        let pipe =
            Pipe { delay: Duration::from_millis(delay), drop: |number| number == 303, ..Pipe::default() };
        let pair = run(&spec, pipe);
        let lost = asked(&pair)[0].clone();
        // The next packet shows the gap on arrival.
        let next = lost.1[0].wrapping_add(1);
        let sent = media(&pair).into_iter().find(|(_, number, _)| *number == next).unwrap();
        (lost.0 - sent.0).as_nanos() / 1_000_000 - delay
    };
    // The least round trip is 50 ms, and turns of the loop are 5 ms apart.
    assert!((25..=30).contains(&first(0, 10)), "{}", first(0, 10));
    assert!((70..=75).contains(&first(70, 10)), "{}", first(70, 10));
    assert!((100..=106).contains(&first(25, 100)), "{}", first(25, 100));
}

#[test]
fn below_a_round_trip_nothing_is_repaired() {
    let pipe = Pipe { delay: Duration::from_millis(160), drop: LOSSY, ..Pipe::default() };
    let pair = run(&spec(), pipe);
    let lost = media(&pair).iter().filter(|(_, _, again)| !again).count() / 20;
    assert!(sum(&pair, "unrepaired") >= lost as f64 * 0.8, "{lost} {}", sum(&pair, "unrepaired"));
    assert!(sum(&pair, "discarded") > 0.0, "what was repeated came too late");
    let each = ["frame_shown", "frame_late", "frame_incomplete"].map(|name| count(&pair, name));
    assert!(each.iter().sum::<usize>() == 250 && each[2] > 30, "{each:?}");
}

#[test]
fn the_wait_of_a_picture_is_the_latency_that_shows_it() {
    let needs = |latency| {
        let spec = RistSpec { latency: Duration::from_millis(latency), ..spec() };
        let pair = run(&spec, Pipe { drop: LOSSY, ..Pipe::default() });
        let waits = named(&pair, "picture_wait").iter().filter_map(|event| event.value).fold(0.0, f64::max);
        (waits, count(&pair, "frame_shown"))
    };
    let (longest, shown) = needs(500);
    assert_eq!(shown, 250);
    let ms = (longest * 1e3).ceil() as u64;
    assert_eq!(needs(ms).1, 250, "{ms} ms suffice");
    assert!(needs(ms - 2).1 < 250, "and less does not");
}

/// Requests come more often than once in a round trip.
fn with(congestion_control: RepairControl) -> Pair {
    let spec = RistSpec {
        congestion_control,
        request_spacing: 0.3,
        latency: Duration::from_millis(1_000),
        ..spec()
    };
    run(&spec, Pipe { delay: Duration::from_millis(100), drop: LOSSY, ..Pipe::default() })
}

#[test]
fn modes_answer_each_request_or_one_in_one_or_two_round_trips() {
    let pairs = [RepairControl::Off, RepairControl::Normal, RepairControl::Aggressive].map(with);
    let repeated = pairs.each_ref().map(|pair| sum(pair, "repeated"));
    let withheld = pairs.each_ref().map(|pair| sum(pair, "withheld"));
    assert!(repeated[0] > 2.0 * repeated[1] && repeated[1] >= repeated[2], "{repeated:?}");
    assert!(withheld[0] == 0.0 && withheld[1] > 0.0 && withheld[2] >= withheld[1], "{withheld:?}");
    // Two repetitions of one number, in mode 2, are two round trips apart.
    let spaced = |pair: &Pair, least: u64| {
        let again: Vec<_> = media(pair).into_iter().filter(|(_, _, again)| *again).collect();
        let of = |number: u16| {
            let times: Vec<_> = again.iter().filter(|one| one.1 == number).map(|one| one.0).collect();
            times.windows(2).all(|two| two[1] - two[0] >= Duration::from_millis(least))
        };
        again.iter().all(|(_, number, _)| of(*number))
    };
    assert!(spaced(&pairs[1], 190) && spaced(&pairs[2], 390) && !spaced(&pairs[0], 190));
}

#[test]
fn above_the_greatest_rate_nothing_is_repeated() {
    let spec = RistSpec { maxbitrate_bps: 500_000, ..spec() };
    let pair = run(&spec, Pipe { drop: LOSSY, ..Pipe::default() });
    // The slow average passes 500 kbit/s within some seconds.
    let last = media(&pair).iter().filter(|(_, _, again)| *again).map(|one| one.0).max().unwrap();
    assert!(last < at(6_000) && sum(&pair, "withheld") > 20.0, "{last:?}");
    assert!(count(&pair, "frame_incomplete") > 15);
}

#[test]
fn a_sender_that_does_not_wait_begins_at_once() {
    let spec = RistSpec { waits_for_receiver: false, ..spec() };
    let pair = run(&spec, Pipe::default());
    assert_eq!((media(&pair)[0].0, count(&pair, "frame_shown")), (at(0), 250));
}

#[test]
fn a_pause_sends_no_media_and_the_other_end_is_not_given_up() {
    let mut pair = pair(&spec(), Pipe::default());
    pair.at(Duration::from_millis(3_030), Input::Pause);
    pair.at(Duration::from_millis(10_030), Input::Resume);
    pair.run(at(60_000));
    assert!(!media(&pair).iter().any(|(sent, ..)| at(3_030) < *sent && *sent < at(10_030)));
    assert_eq!((count(&pair, "frame_shown"), count(&pair, "frame_incomplete")), (250, 0));
}

#[test]
fn a_stop_ends_both_ends_at_once() {
    let mut pair = pair(&spec(), Pipe::default());
    pair.at(Duration::from_millis(5_010), Input::Stop);
    pair.run(at(60_000));
    let end = named(&pair, crate::MEDIA_END);
    assert_eq!((end.len(), end[0].reason.as_ref(), end[0].at), (1, "stopped", at(5_010)));
    assert!(pair.sent.iter().chain(&pair.sent_by_player).all(|sent| sent.at <= at(5_010)));
}

#[test]
fn a_vanished_sender_is_noticed_and_one_that_never_came() {
    let pair = run(&spec(), Pipe { drop: |number| number > 300, ..Pipe::default() });
    let end = named(&pair, crate::MEDIA_END);
    assert_eq!((end.len(), end[0].reason.as_ref()), (1, "nothing came from the other end for too long"));
    assert!(end[0].at < at(6_000));
    let pair = run(&spec(), Pipe { drop: |_| true, ..Pipe::default() });
    let end = named(&pair, crate::MEDIA_END);
    assert_eq!((end.len(), end[0].reason.as_ref(), end[0].at), (1, "no connection", at(20_300)));
}

#[test]
fn numbers_and_stamps_wrap() {
    let mut spec = spec();
    spec.clip.duration = Duration::from_secs(800);
    let (mut sender, receiver) = spec.ends("video", 1).unwrap();
    // Both wrap within the first seconds, and the numbers again.
    sender.begin_at(65_000, u32::MAX - 200_000);
    let mut pair = Pair::new(Box::new(sender), Box::new(receiver), Pipe { drop: LOSSY, ..Pipe::default() });
    pair.begins_with(&spec.machines("video", 1).unwrap().channels);
    pair.run(at(900_000));
    assert_eq!((count(&pair, "frame_shown"), sum(&pair, "unrepaired")), (20_000, 0.0));
    assert!(sum(&pair, "repeated") > 40.0);
}

#[test]
fn refuses_what_it_cannot_send() {
    let with = |change: fn(&mut RistSpec)| {
        let mut bad = spec();
        change(&mut bad);
        bad.machines("video", 1).err().expect("must be refused").0
    };
    assert_eq!(with(|s| s.clip.frame_bytes = vec![].into()), "app.rist.clip.frame_bytes");
    assert_eq!(with(|s| s.clip.display_order = vec![0].into()), "app.rist.clip.display_order");
    assert_eq!(with(|s| s.latency = Duration::ZERO), "app.rist.latency");
    assert_eq!(with(|s| s.latency = Duration::from_secs(66)), "app.rist.latency");
    assert_eq!(with(|s| s.rtt_min = Duration::from_secs(1)), "app.rist.rtt_min");
    assert_eq!(with(|s| s.ts_packets = 8), "app.rist.ts_packets");
    assert_eq!(with(|s| s.report_interval = Duration::ZERO), "app.rist.report_interval");
    assert_eq!(with(|s| s.max_retries = 0), "app.rist.max_retries");
    assert_eq!(with(|s| s.request_spacing = f64::NAN), "app.rist.request_spacing");
}

#[test]
fn bounds_of_librist() {
    let spec = RistSpec { latency: Duration::from_millis(1_000), ..spec() };
    assert_eq!((spec.most_missing(), spec.most_repeated()), (4_166, 88));
    assert_eq!(spec.hold(), Duration::from_millis(2_000));
}

#[test]
fn it_wants_the_rate_that_it_sends() {
    let pair = run(&spec(), Pipe::default());
    let media = pair.sent.iter().filter(|sent| sent.channel == MEDIA);
    let bits: usize = media.map(|sent| 8 * (sent.datagram.len() + 28)).sum();
    let wanted = spec().wanted_bps(0).unwrap();
    // The tables are in every second picture of the clip, and in its one picture as `wanted_bps` sees it.
    assert!((wanted / (bits as f64 / 10.0) - 1.0).abs() < 0.05, "{wanted} {bits}");
}

/// Collects the datagrams of a machine.
#[derive(Default)]
struct Outgoing(Vec<(ChannelId, Chunk)>);

impl Io for Outgoing {
    fn open(&mut self, _: &Carrier) -> ChannelId {
        MEDIA
    }
    fn send_as(&mut self, on: ChannelId, datagram: Chunk, _: Envelope) {
        self.0.push((on, datagram));
    }
    fn write(&mut self, _: ChannelId, _: Chunk) -> usize {
        0
    }
    fn read(&mut self, _: ChannelId, _: usize) -> Option<Chunk> {
        None
    }
    fn close(&mut self, _: ChannelId) {}
    fn port(&self, _: ChannelId) -> Option<u16> {
        None
    }
    fn direct(&mut self, _: ChannelId, _: u16) {}
}

#[test]
fn a_request_for_every_number_is_answered_with_those_that_are_kept() {
    let mut sender = RistSpec { waits_for_receiver: false, ..spec() }.ends("video", 1).unwrap().0;
    let mut io = Outgoing::default();
    sender.handle(at(0), Input::Start, &mut io);
    let source =
        io.0.iter().find(|(on, _)| *on == MEDIA).map(|(_, media)| Data::parse(media).unwrap().source);
    let all =
        RistApp::Ranges { source: source.unwrap(), ranges: vec![NackRange { first: 0, more: u16::MAX }; 16] };
    let other =
        RistApp::Ranges { source: source.unwrap() ^ 4, ranges: vec![NackRange { first: 0, more: u16::MAX }] };
    for (app, repeated) in [(other, 0), (all, 5)] {
        io.0.clear();
        let report = Packet::ReceiverReport { ssrc: 8, blocks: Vec::new() };
        let request = Chunk::bytes(rtcp::write(&[report, Packet::Rist(app)]));
        sender.handle(at(1), Input::datagram(CONTROL, &request, at(1)), &mut io);
        let again = io.0.iter().filter(|(on, media)| {
            *on == MEDIA && is_repeated(u32::from_be_bytes(media.head()[8..12].try_into().unwrap()))
        });
        assert_eq!(again.count(), repeated, "each once, though sixteen ranges name it");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_packets_at_any_time_are_survived_and_bounded(
        packets in prop::collection::vec(
            (0u8..4, any::<u16>(), any::<u32>(), prop::collection::vec(any::<u32>(), 0..20), 0u64..50), 1..60),
    ) {
        let mut receiver = spec().ends("video", 1).unwrap().1;
        let mut io = Outgoing::default();
        receiver.handle(at(0), Input::Start, &mut io);
        let (mut now, mut sent) = (at(1), 0);
        for (kind, sequence, timestamp, words, later) in packets {
            now += Duration::from_millis(later);
            while let Some(next) = receiver.poll_timeout().filter(|next| *next <= now) {
                receiver.handle(next, Input::Timeout, &mut io);
            }
            let payload: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            let data = Data { sequence, timestamp, source: 8, is_repeated: kind == 1, payload: (&payload[..]).into() };
            let (on, bytes) = match kind {
                0 | 1 => (MEDIA, data.write()),
                2 => (MEDIA, Chunk::bytes(payload)),
                _ => (CONTROL, Chunk::bytes([&[0x80, 200 + (sequence % 8) as u8, 0, words.len() as u8, 0, 0, 0, 8][..], &payload].concat())),
            };
            sent += 1;
            receiver.handle(now, Input::datagram(on, &bytes, now), &mut io);
        }
        // Reports each 100 ms, and no more than each missing packet twenty times.
        prop_assert!(io.0.len() <= 200 * (sent + 40), "{} for {sent}", io.0.len());
    }
}
