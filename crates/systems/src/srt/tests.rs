use proptest::prelude::*;
use streamgauge_base::{Chunk, Duration, Event, Instant};
use streamgauge_wire::srt::{HandshakeKind, LossRange, Packet, PacketContent, SequenceNumber};

use super::*;
use crate::app::{App, Input, Io};
use crate::testing::{Pair, Pipe};

/// Pictures of 5 datagrams each 40 ms: 10 s of 1.3 Mbit/s.
fn spec() -> SrtSpec {
    SrtSpec {
        clip: ClipSpec {
            name: "test".into(),
            duration: Duration::from_secs(10),
            frame_interval: Duration::from_millis(40),
            frame_bytes: vec![6_000].into(),
            ..ClipSpec::default()
        },
        ..SrtSpec::usual()
    }
}

fn pair(spec: &SrtSpec, pipe: Pipe) -> Pair {
    let made = spec.machines("video", 1).unwrap();
    let mut pair = Pair::new(made.server, made.player, pipe);
    pair.begins_with(&made.channels);
    pair
}

fn run(spec: &SrtSpec, pipe: Pipe) -> Pair {
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

fn sum(pair: &Pair, name: &str) -> f64 {
    named(pair, name).iter().filter_map(|event| event.value).sum()
}

fn packets(sent: &[crate::testing::Sent]) -> Vec<(Instant, Packet<'_>)> {
    sent.iter().map(|sent| (sent.at, Packet::parse(&sent.datagram).unwrap())).collect()
}

fn data(pair: &Pair) -> Vec<(Instant, u32, bool)> {
    let is_data = |(at, packet): (Instant, Packet<'_>)| match packet.content {
        PacketContent::Data(data) => Some((at, data.sequence.get(), data.is_retransmitted)),
        _ => None,
    };
    packets(&pair.sent).into_iter().filter_map(is_data).collect()
}

/// Loses datagrams of the sender, not the two of its handshake.
const LOSSY: fn(u64) -> bool = |number| number > 1 && number % 20 == 19;

#[test]
fn on_a_clean_path_every_picture_is_shown_a_latency_after_it_would_arrive() {
    for caller in [Caller::Sender, Caller::Receiver] {
        let pair = run(&SrtSpec { caller, ..spec() }, Pipe::default());
        let connected: Vec<_> = named(&pair, "connected").iter().map(|event| event.at).collect();
        assert_eq!(connected.len(), 2);
        let shown = named(&pair, "frame_shown");
        assert_eq!(shown.len(), 250, "{caller:?}");
        // The sender begins as it is connected; 10 ms of delay and the latency follow, by the handshake's stamps.
        let began = connected.iter().max().copied().unwrap();
        let began = if caller == Caller::Sender { began } else { connected[0] };
        let due = began + Duration::from_millis(130);
        assert!(shown[0].at.saturating_since(due) <= Duration::from_millis(1), "{:?} {due:?}", shown[0].at);
        assert_eq!(shown[249].at.saturating_since(shown[0].at), Duration::from_millis(249 * 40));
        let end = named(&pair, crate::MEDIA_END);
        assert_eq!(
            (end.len(), end[0].value, end[0].reason.as_ref()),
            (1, Some(250.0), "all frames were shown or given up")
        );
        assert_eq!(sum(&pair, "nack") + sum(&pair, "repeated") + sum(&pair, "unrepaired"), 0.0);
        assert_eq!(data(&pair).len(), 250 * 5);
    }
}

#[test]
fn the_larger_of_both_latencies_is_agreed_on() {
    let ms = Duration::from_millis;
    for caller in [Caller::Sender, Caller::Receiver] {
        for (latency, peer_latency, agreed) in
            [(ms(80), ms(300), "0.300"), (ms(300), ms(80), "0.300"), (ms(0), ms(0), "0.000")]
        {
            let pair = run(&SrtSpec { caller, latency, peer_latency, ..spec() }, Pipe::default());
            let said: Vec<_> =
                named(&pair, "connected").iter().map(|event| event.reason.to_string()).collect();
            assert_eq!(said, vec![format!("latency {agreed} s"); 2], "{caller:?}");
        }
    }
}

#[test]
fn lost_packets_come_again_within_the_latency() {
    let pair = run(&spec(), Pipe { drop: LOSSY, ..Pipe::default() });
    let lost = pair.sent.len() / 20;
    assert!(sum(&pair, "repeated") >= lost as f64 * 0.9, "{lost} lost, {} repeated", sum(&pair, "repeated"));
    assert_eq!((named(&pair, "frame_shown").len(), sum(&pair, "unrepaired")), (250, 0.0));
    // A round trip is 20 ms; some repeats are lost too, and wait for a periodic report.
    let waits: Vec<f64> = named(&pair, "picture_wait").iter().filter_map(|event| event.value).collect();
    let waited = waits.iter().filter(|wait| **wait >= 0.020).count();
    assert!(waited > 30 && waits.iter().all(|wait| *wait < 0.120), "{waited} waited");
}

#[test]
fn the_wait_of_a_picture_is_the_latency_that_shows_it() {
    let needs = |latency| {
        let spec = SrtSpec { latency: Duration::from_millis(latency), ..spec() };
        let pair = run(&spec, Pipe { drop: LOSSY, ..Pipe::default() });
        let waits = named(&pair, "picture_wait").iter().filter_map(|event| event.value).fold(0.0, f64::max);
        (waits, named(&pair, "frame_shown").len())
    };
    let (longest, shown) = needs(500);
    assert_eq!(shown, 250);
    let ms = (longest * 1e3).ceil() as u64;
    assert_eq!(needs(ms).1, 250, "{ms} ms suffice");
    assert!(needs(ms - 2).1 < 250, "and less does not");
}

#[test]
fn below_a_round_trip_nothing_is_repaired() {
    let spec = SrtSpec { latency: Duration::from_millis(120), ..spec() };
    let pipe = Pipe { delay: Duration::from_millis(100), drop: LOSSY, ..Pipe::default() };
    let pair = run(&spec, pipe);
    let lost = data(&pair).iter().filter(|(_, _, again)| !again).count() / 20;
    assert!(sum(&pair, "unrepaired") >= lost as f64 * 0.9);
    assert!(sum(&pair, "discarded") > 0.0, "what was repeated came too late");
    assert!(named(&pair, "frame_incomplete").len() >= lost * 9 / 10);
    let each = ["frame_shown", "frame_late", "frame_incomplete"].map(|name| named(&pair, name).len());
    assert_eq!(each.iter().sum::<usize>(), 250);
}

#[test]
fn without_retransmission_each_loss_costs_its_picture() {
    let pair = run(
        &SrtSpec { retransmission: Retransmission::Off, ..spec() },
        Pipe { drop: LOSSY, ..Pipe::default() },
    );
    assert_eq!(sum(&pair, "repeated"), 0.0);
    assert!(named(&pair, "frame_incomplete").len() > 30);
}

#[test]
fn a_report_comes_at_once_and_again_each_interval() {
    // Some packets are lost, and never sent again.
    let spec =
        SrtSpec { latency: Duration::from_millis(1_000), retransmission: Retransmission::Off, ..spec() };
    let pair = run(
        &spec,
        Pipe {
            drop: |number| (403..409).contains(&number),
            delay: Duration::from_millis(50),
            ..Pipe::default()
        },
    );
    let naks: Vec<Instant> = packets(&pair.sent_by_player)
        .into_iter()
        .filter(|(_, packet)| matches!(packet.content, PacketContent::Nak(_)))
        .map(|(at, _)| at)
        .collect();
    assert!((15..=25).contains(&naks.len()), "{} reports in a second", naks.len());
    // The round trip is near 100 ms by then, and its variance small: half of it.
    let gaps: Vec<u64> = naks.windows(2).map(|two| (two[1] - two[0]).as_nanos() / 1_000_000).collect();
    assert!(gaps.iter().all(|gap| (45..65).contains(gap)), "{gaps:?}");
}

#[test]
fn the_aggressive_sender_repeats_at_each_report_and_the_efficient_one_does_not() {
    let with = |retransmission| {
        let spec = SrtSpec { retransmission, latency: Duration::from_millis(1_000), ..spec() };
        let pipe = Pipe { delay: Duration::from_millis(100), drop: LOSSY, ..Pipe::default() };
        let pair = run(&spec, pipe);
        assert_eq!(named(&pair, "frame_shown").len(), 250);
        sum(&pair, "repeated")
    };
    let (efficient, aggressive) = (with(Retransmission::Efficient), with(Retransmission::Aggressive));
    assert!(aggressive > 1.5 * efficient, "{aggressive} and {efficient}");
}

#[test]
fn without_drops_the_receiver_waits_for_what_is_missing() {
    let spec = SrtSpec { too_late_drop: false, latency: Duration::from_millis(20), ..spec() };
    let pipe = Pipe { delay: Duration::from_millis(100), drop: LOSSY, ..Pipe::default() };
    let pair = run(&spec, pipe);
    let late = named(&pair, "frame_late").len();
    assert!(late > 30 && named(&pair, "frame_shown").len() + late == 250, "{late} late");
    assert_eq!(sum(&pair, "unrepaired"), 0.0);
}

#[test]
fn the_sender_drops_what_is_older_than_a_second_or_the_latency_and_a_quarter() {
    let spec = spec();
    assert_eq!(spec.hold(Duration::from_millis(120)), Duration::from_secs(1));
    assert_eq!(spec.hold(Duration::from_secs(2)), Duration::from_millis(2_500));
    // Two seconds in which nothing arrives.
    let pair = run(&spec, Pipe { drop: |number| (300..560).contains(&number), ..Pipe::default() });
    assert!(sum(&pair, "sender_dropped") > 50.0);
    let oldest = named(&pair, "send_buffer").iter().filter_map(|event| event.value).fold(0.0, f64::max);
    assert!((0.9..=1.0).contains(&oldest), "{oldest}");
    // Those of the last second come again, too late to be shown in time.
    let [late, lost] = ["frame_late", "frame_incomplete"].map(|name| named(&pair, name).len());
    assert!(late > 10 && lost > 10, "{late} late, {lost} lost");
}

#[test]
fn a_bounded_rate_is_kept_and_starves_below_the_input() {
    let with = |maxbw_bps| {
        let pair = run(&SrtSpec { maxbw_bps, ..spec() }, Pipe::default());
        let found = data(&pair);
        let bits: usize = pair
            .sent
            .iter()
            .filter(|sent| sent.datagram.len() > 200)
            .map(|sent| 8 * sent.datagram.len())
            .sum();
        let took = found[found.len() - 1].0 - found[0].0;
        (bits as f64 / took.as_secs_f64(), named(&pair, "frame_shown").len())
    };
    let (rate, shown) = with(3_000_000);
    assert!((1.2e6..1.4e6).contains(&rate) && shown == 250, "{rate}, {shown} shown");
    let (rate, shown) = with(1_000_000);
    assert!((0.95e6..1.02e6).contains(&rate) && shown < 100, "{rate}, {shown} shown");
}

#[test]
fn a_pause_sends_no_media_and_the_connection_is_kept() {
    let mut pair = pair(&spec(), Pipe::default());
    pair.at(Duration::from_millis(3_010), Input::Pause);
    pair.at(Duration::from_millis(10_010), Input::Resume);
    pair.run(at(60_000));
    assert!(!data(&pair).iter().any(|(sent, ..)| at(3_010) < *sent && *sent < at(10_010)));
    let kept =
        packets(&pair.sent).iter().filter(|(_, packet)| packet.content == PacketContent::KeepAlive).count();
    assert!((5..=8).contains(&kept), "{kept} keep-alives");
    assert_eq!((named(&pair, "frame_shown").len(), named(&pair, "frame_incomplete").len()), (250, 0));
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
fn without_an_answer_a_caller_gives_up_and_says_so() {
    let pair = run(&SrtSpec { caller: Caller::Sender, ..spec() }, Pipe { drop: |_| true, ..Pipe::default() });
    let closed = named(&pair, "connection_closed");
    assert_eq!((closed.len(), closed[0].reason.as_ref()), (1, "no answer to the handshake"));
    assert_eq!(closed[0].at, at(3_000));
    assert_eq!(pair.sent.len(), 12, "each 250 ms");
    let end = named(&pair, crate::MEDIA_END);
    assert_eq!((end.len(), end[0].reason.as_ref()), (1, "no connection"));
}

#[test]
fn a_vanished_peer_is_noticed() {
    let pair = run(&spec(), Pipe { drop: |number| number > 300, ..Pipe::default() });
    let end = named(&pair, crate::MEDIA_END);
    assert_eq!((end.len(), end[0].reason.as_ref()), (1, "nothing came from the other end for too long"));
    assert!(end[0].at < at(9_000) && pair.sent.iter().all(|sent| sent.at < at(13_000)));
}

#[test]
fn handshakes_may_be_lost() {
    for lost in [|number| number == 0, |number| number == 1, |number| number < 4] {
        let pair = run(&spec(), Pipe { drop: lost, ..Pipe::default() });
        assert_eq!(named(&pair, "frame_shown").len(), 250);
    }
}

#[test]
fn numbers_and_stamps_wrap() {
    let mut spec = spec();
    spec.clip.duration = Duration::from_secs(4_400);
    spec.clip.frame_interval = Duration::from_secs(1);
    spec.ack_interval = Duration::from_millis(100);
    let (mut sender, receiver) = spec.ends("video", 1).unwrap();
    sender.begin_at(SequenceNumber::of(u64::from(SequenceNumber::COUNT) - 10_000));
    let mut pair = Pair::new(Box::new(sender), Box::new(receiver), Pipe::default());
    pair.run(at(4_500_000));
    let numbers = data(&pair);
    assert!(numbers.iter().any(|(_, number, _)| *number < 1_000), "the numbers wrapped");
    // A stamp wraps after 4,295 s.
    assert_eq!(named(&pair, "frame_shown").len(), 4_400);
}

#[test]
fn refuses_what_it_cannot_send() {
    let with = |change: fn(&mut SrtSpec)| {
        let mut bad = spec();
        change(&mut bad);
        bad.machines("video", 1).err().expect("must be refused").0
    };
    assert_eq!(with(|s| s.clip.frame_bytes = vec![].into()), "app.srt.clip.frame_bytes");
    assert_eq!(with(|s| s.clip.display_order = vec![0].into()), "app.srt.clip.display_order");
    assert_eq!(with(|s| s.latency = Duration::from_secs(66)), "app.srt.latency");
    assert_eq!(with(|s| s.ts_packets = 8), "app.srt.ts_packets");
    assert_eq!(with(|s| s.ack_interval = Duration::ZERO), "app.srt.ack_interval");
    assert_eq!(with(|s| s.buffer = 1), "app.srt.buffer");
    assert_eq!(with(|s| s.drop_after = 0.5), "app.srt.drop_after");
}

#[test]
fn it_wants_the_rate_that_it_sends() {
    let pair = run(&spec(), Pipe::default());
    let bits: usize = pair
        .sent
        .iter()
        .filter(|sent| sent.datagram.len() > 200)
        .map(|sent| 8 * (sent.datagram.len() + 28))
        .sum();
    let wanted = spec().wanted_bps(0).unwrap();
    // The tables are in every second picture of the clip, and in its one picture as `wanted_bps` sees it.
    assert!((wanted / (bits as f64 / 10.0) - 1.0).abs() < 0.05, "{wanted} {bits}");
}

/// Collects the datagrams of a machine.
#[derive(Default)]
struct Outgoing(Vec<Chunk>);

impl Io for Outgoing {
    fn open(&mut self, _: &Carrier) -> ChannelId {
        MEDIA
    }
    fn send_as(&mut self, _: ChannelId, datagram: Chunk, _: crate::app::Envelope) {
        self.0.push(datagram);
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

impl Outgoing {
    /// Gives a machine a packet; returns its answers.
    fn ask(&mut self, machine: &mut dyn App, now: Instant, packet: &Packet<'_>) -> Vec<Chunk> {
        let bytes = packet.write();
        machine.handle(now, Input::datagram(MEDIA, &bytes, now), self);
        std::mem::take(&mut self.0)
    }
}

fn handshake(chunk: &Chunk) -> streamgauge_wire::srt::Handshake<'_> {
    match Packet::parse(chunk).unwrap().content {
        PacketContent::Handshake(handshake) => handshake,
        other => panic!("{other:?}"),
    }
}

/// Opens a connection to a listener as a caller may; returns the last answer.
fn call(
    machine: &mut dyn App,
    change: impl Fn(&mut streamgauge_wire::srt::Handshake<'static>),
) -> Option<Chunk> {
    use streamgauge_wire::srt::{Extension, Handshake, Latencies};
    let mut io = Outgoing::default();
    machine.handle(at(0), Input::Start, &mut io);
    let mut induction = Handshake {
        version: 4,
        encryption: 0,
        extension: 2,
        initial: SequenceNumber::of(100),
        mtu: 1500,
        flow_window: 8192,
        kind: HandshakeKind::Induction,
        socket: 55,
        cookie: 0,
        address: [0; 16],
        extensions: Vec::new(),
    };
    let packet = |handshake: &Handshake<'static>| Packet {
        timestamp_us: 0,
        socket: 0,
        content: PacketContent::Handshake(handshake.clone()),
    };
    let answers = io.ask(machine, at(0), &packet(&induction));
    let answer = handshake(&answers[0]);
    assert_eq!((answers.len(), answer.version, answer.extension), (1, 5, streamgauge_wire::srt::MAGIC));
    (induction.version, induction.kind, induction.cookie) = (5, HandshakeKind::Conclusion, answer.cookie);
    induction.extensions =
        vec![Extension::Request(Latencies { version: 0x10401, flags: 0xbf, receiver_ms: 0, sender_ms: 0 })];
    change(&mut induction);
    io.ask(machine, at(1), &packet(&induction)).into_iter().next()
}

#[test]
fn a_caller_that_cannot_be_served_is_refused_with_the_reason() {
    use streamgauge_wire::srt::{Extension, Latencies};
    let listener = || spec().ends("video", 1).unwrap().1;
    let refused = |change: fn(&mut streamgauge_wire::srt::Handshake<'static>)| {
        let answer = call(&mut listener(), change).expect("an answer");
        match handshake(&answer).kind {
            HandshakeKind::Rejection(code) => code,
            kind => panic!("{kind:?}"),
        }
    };
    assert_eq!(refused(|one| one.version = 4), 1008);
    assert_eq!(refused(|one| one.extensions.clear()), 1004);
    assert_eq!(
        refused(|one| {
            one.encryption = 2;
            one.extensions.push(Extension::Other { kind: 3, contents: &[0; 8] });
        }),
        1011
    );
    let stream = Latencies { flags: 0xff, ..Latencies::default() };
    assert_eq!(
        {
            let answer =
                call(&mut listener(), |one| one.extensions = vec![Extension::Request(stream)]).unwrap();
            handshake(&answer).kind
        },
        HandshakeKind::Rejection(1012)
    );
    assert_eq!(refused(|one| one.extensions.push(Extension::Other { kind: 6, contents: b"elif" })), 1013);
    assert_eq!(refused(|one| one.extensions.push(Extension::Other { kind: 7, contents: b"cef," })), 1014);
    assert_eq!(refused(|one| one.extensions.push(Extension::Other { kind: 8, contents: &[0; 8] })), 1015);
    // A wrong cookie gets no answer at all.
    assert_eq!(call(&mut listener(), |one| one.cookie ^= 1), None);
    let answer = call(&mut listener(), |_| {}).unwrap();
    assert_eq!(handshake(&answer).kind, HandshakeKind::Conclusion);
    assert_eq!(handshake(&answer).latencies().unwrap().receiver_ms, 120);
}

#[test]
fn reports_are_answered_once_a_round_trip_and_not_for_what_was_never_sent() {
    let mut sender = SrtSpec { caller: Caller::Receiver, ..spec() }.ends("video", 1).unwrap().0;
    let answer = call(&mut sender, |_| {}).unwrap();
    let socket = handshake(&answer).socket;
    let mut io = Outgoing::default();
    while let Some(next) = sender.poll_timeout().filter(|next| *next < at(200)) {
        sender.handle(next, Input::Timeout, &mut io);
    }
    let sent = std::mem::take(&mut io.0).len() as u64;
    // One left with the answer.
    assert_eq!(sent + 1, 5 * 5);
    let nak = |first: u64, last: u64| {
        let range = LossRange { first: SequenceNumber::of(first), last: SequenceNumber::of(last) };
        Packet { timestamp_us: 0, socket, content: PacketContent::Nak(vec![range; 100]) }
    };
    assert_eq!(io.ask(&mut sender, at(200), &nak(101 + sent, 1_000_000_000)).len(), 0, "never sent");
    assert_eq!(io.ask(&mut sender, at(200), &nak(0, 99)).len(), 0, "before the first");
    // LiveCC lets one leave at once, and the rest soon.
    let mut repeated = io.ask(&mut sender, at(200), &nak(100, 104)).len();
    while let Some(next) = sender.poll_timeout().filter(|next| *next < at(201)) {
        sender.handle(next, Input::Timeout, &mut io);
        repeated += std::mem::take(&mut io.0).len();
    }
    assert_eq!(repeated, 5, "each once, though a hundred ranges name it");
    let strange = Packet { socket: socket ^ 4, ..nak(100, 104) };
    assert_eq!(
        io.ask(&mut sender, at(200) + Duration::from_micros(900), &strange).len(),
        0,
        "of another socket"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_packets_at_any_time_are_survived_and_bounded(
        packets in prop::collection::vec((0u32..10, prop::collection::vec(any::<u32>(), 3..20), 0u64..50, any::<bool>()), 1..60),
    ) {
        let mut receiver = spec().ends("video", 1).unwrap().1;
        let answer = call(&mut receiver, |_| {});
        prop_assert!(answer.is_some());
        let mut io = Outgoing::default();
        let (mut now, mut sent) = (at(1), 0);
        for (kind, mut words, later, is_data) in packets {
            now += Duration::from_millis(later);
            while let Some(next) = receiver.poll_timeout().filter(|next| *next <= now) {
                receiver.handle(next, Input::Timeout, &mut io);
            }
            // Half of them go to no socket of ours.
            words.insert(0, if is_data { words[0] & 0x7fff_ffff } else { 1 << 31 | kind << 16 });
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            sent += bytes.len();
            receiver.handle(now, Input::datagram(MEDIA, &Chunk::bytes(bytes), now), &mut io);
        }
        let answered: usize = io.0.iter().map(Chunk::len).sum();
        prop_assert!(answered <= 3 * sent + 10_000, "{answered} B for {sent} B");
    }
}
