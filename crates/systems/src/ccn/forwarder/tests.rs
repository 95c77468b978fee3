use proptest::prelude::*;
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::ndn::{Component, Data, Interest, NackReason, Name};

use super::*;

const A: FaceId = FaceId(1);
const B: FaceId = FaceId(2);
const UP: FaceId = FaceId(9);

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn name(path: &str) -> Name {
    let parts = path.split('/').filter(|part| !part.is_empty());
    Name::of(parts.map(|part| Component::generic(part.as_bytes()))).unwrap()
}

fn interest(path: &str, nonce: u32) -> Interest {
    let mut interest = Interest::of(name(path));
    (interest.nonce, interest.lifetime_ms) = (Some(nonce), Some(1_000));
    interest
}

fn data(path: &str, bytes: u32) -> Data {
    Data { freshness_ms: Some(500), ..Data::of(name(path), Chunk::filler(bytes)) }
}

fn settings() -> ForwarderSettings {
    ForwarderSettings {
        most_pending: 100,
        suppression: Duration::from_millis(400),
        nacks: true,
        store_bytes: 0,
        store_policy: StorePolicy::Lru,
    }
}

fn forwarder(store_bytes: u64) -> Forwarder {
    let mut forwarder = Forwarder::new(&ForwarderSettings { store_bytes, ..settings() });
    forwarder.route(name("/v"), UP);
    forwarder
}

fn out(forwarder: &mut Forwarder) -> Vec<(FaceId, FacePacket)> {
    std::iter::from_fn(|| forwarder.next_packet()).collect()
}

fn ask(
    forwarder: &mut Forwarder,
    at: Instant,
    face: FaceId,
    interest: &Interest,
) -> Vec<(FaceId, FacePacket)> {
    forwarder.receive(at, face, FacePacket::Interest(interest.clone()));
    out(forwarder)
}

fn is_nack(sent: &[(FaceId, FacePacket)], to: FaceId, wanted: NackReason) -> bool {
    matches!(sent, [(face, FacePacket::Nack(reason, _))] if *face == to && *reason == wanted)
}

#[test]
fn who_asks_for_the_same_gets_one_answer_each_and_the_network_one_interest() {
    let mut one = forwarder(0);
    let first = interest("/v/1", 1);
    assert_eq!(ask(&mut one, ms(0), A, &first), [(UP, FacePacket::Interest(first.clone()))]);
    assert_eq!(ask(&mut one, ms(5), B, &interest("/v/1", 2)), []);
    one.receive(ms(10), UP, FacePacket::Data(data("/v/1", 10)));
    let sent = out(&mut one);
    assert_eq!(sent.iter().map(|(face, _)| *face).collect::<Vec<_>>(), [A, B]);
    // No face waits any more.
    one.receive(ms(11), UP, FacePacket::Data(data("/v/1", 10)));
    assert_eq!(out(&mut one), []);
    assert_eq!((one.counts().aggregated, one.counts().unsolicited, one.pending()), (1, 1, 0));
}

#[test]
fn an_interest_that_comes_again_is_passed_on_unless_that_is_too_soon() {
    let mut one = forwarder(0);
    ask(&mut one, ms(0), A, &interest("/v/1", 1));
    assert_eq!(ask(&mut one, ms(100), A, &interest("/v/1", 2)), []);
    assert_eq!(ask(&mut one, ms(450), A, &interest("/v/1", 3)).len(), 1);
    // The last one's lifetime counts.
    one.expire(ms(1_200));
    assert_eq!(one.pending(), 1);
    one.expire(ms(1_450));
    assert_eq!((one.pending(), one.counts().expired), (0, 1));
}

#[test]
fn who_waits_with_others_may_ask_again_too() {
    let mut one = forwarder(0);
    assert_eq!(ask(&mut one, ms(0), A, &interest("/v/1", 1)).len(), 1);
    // A first Interest of a face waits with the other, however long that has been.
    assert_eq!(ask(&mut one, ms(500), B, &interest("/v/1", 2)), []);
    // The forwarded Interest is lost, as one of the two finds out, and then the other.
    assert_eq!(ask(&mut one, ms(600), A, &interest("/v/1", 3)).len(), 1);
    assert_eq!(ask(&mut one, ms(700), B, &interest("/v/1", 4)), [], "the other's is on its way");
    assert_eq!(ask(&mut one, ms(1_100), B, &interest("/v/1", 5)).len(), 1);
    one.receive(ms(1_110), UP, FacePacket::Data(data("/v/1", 10)));
    assert_eq!(out(&mut one).iter().map(|(face, _)| *face).collect::<Vec<_>>(), [A, B]);
    assert_eq!((one.counts().forwarded, one.counts().aggregated), (3, 2));
}

#[test]
fn what_goes_in_a_circle_is_refused() {
    let mut one = forwarder(0);
    ask(&mut one, ms(0), A, &interest("/v/1", 7));
    // It returns on the face that it was sent by, and on another.
    assert!(is_nack(&ask(&mut one, ms(1), B, &interest("/v/1", 7)), B, NackReason::Duplicate));
    one.receive(ms(2), UP, FacePacket::Nack(NackReason::Duplicate, interest("/v/1", 7)));
    assert!(is_nack(&out(&mut one), A, NackReason::Duplicate));
    // A hop limit ends it as well.
    let mut last = interest("/v/2", 1);
    last.hop_limit = Some(1);
    assert!(is_nack(&ask(&mut one, ms(3), A, &last), A, NackReason::NoRoute));
    last.hop_limit = Some(0);
    assert_eq!(ask(&mut one, ms(4), A, &last), []);
}

#[test]
fn the_longest_prefix_leads_the_way() {
    let mut one = forwarder(0);
    one.route(name("/v/a"), B);
    let to = |sent: &[(FaceId, FacePacket)]| sent[0].0;
    assert_eq!(to(&ask(&mut one, ms(0), A, &interest("/v/a/1", 1))), B);
    assert_eq!(to(&ask(&mut one, ms(0), A, &interest("/v/b/1", 2))), UP);
    assert!(is_nack(&ask(&mut one, ms(0), A, &interest("/w", 3)), A, NackReason::NoRoute));
    // Nothing is sent back by the face that it arrived on.
    assert!(is_nack(&ask(&mut one, ms(0), UP, &interest("/v/b/2", 4)), UP, NackReason::NoRoute));
    one.remove_face(B);
    assert_eq!(to(&ask(&mut one, ms(0), A, &interest("/v/a/2", 5))), UP);
}

#[test]
fn a_flood_of_interests_takes_bounded_room_and_others_are_served() {
    let mut one = forwarder(0);
    let mut refused = 0;
    for number in 0..100_000u32 {
        let sent = ask(&mut one, ms(0), A, &interest(&format!("/v/{number}"), number));
        refused += u32::from(is_nack(&sent, A, NackReason::Congestion));
    }
    assert_eq!((one.pending(), refused), (100, 99_900));
    one.expire(ms(1_000));
    assert_eq!(ask(&mut one, ms(1_000), B, &interest("/v/x", 1)).len(), 1);
    one.receive(ms(1_001), UP, FacePacket::Data(data("/v/x", 1)));
    assert_eq!(out(&mut one)[0].0, B);
}

#[test]
fn a_face_that_is_gone_waits_for_nothing() {
    let mut one = forwarder(0);
    ask(&mut one, ms(0), A, &interest("/v/1", 1));
    one.remove_face(A);
    assert_eq!(one.pending(), 0);
    one.receive(ms(1), UP, FacePacket::Data(data("/v/1", 1)));
    assert_eq!(out(&mut one), []);
}

#[test]
fn what_is_stored_answers_while_it_is_fresh_enough() {
    let mut one = forwarder(10_000);
    ask(&mut one, ms(0), A, &interest("/v/1", 1));
    one.receive(ms(1), UP, FacePacket::Data(data("/v/1", 100)));
    out(&mut one);
    let answered = |sent: &[(FaceId, FacePacket)]| matches!(sent, [(B, FacePacket::Data(_))]);
    assert!(answered(&ask(&mut one, ms(5), B, &interest("/v/1", 2))));
    let mut fresh = interest("/v", 3);
    (fresh.can_be_prefix, fresh.must_be_fresh) = (true, true);
    assert!(answered(&ask(&mut one, ms(6), B, &fresh)));
    fresh.nonce = Some(4);
    assert!(!answered(&ask(&mut one, ms(502), B, &fresh)));
    assert_eq!(one.counts().store_hits, 2);
}

/// The segments of /v that are stored after each of `asked` was asked for once, if `room` of them fit.
fn kept(policy: StorePolicy, room: u64, asked: &[u32]) -> Vec<u32> {
    let size = 100 + name("/v/0").as_bytes().len() as u64;
    let settings = ForwarderSettings { store_policy: policy, store_bytes: room * size, ..settings() };
    let mut one = Forwarder::new(&settings);
    one.route(name("/v"), UP);
    for (number, segment) in asked.iter().enumerate() {
        let path = format!("/v/{segment}");
        let sent = ask(&mut one, ms(number as u64), A, &interest(&path, number as u32));
        if matches!(sent[..], [(UP, _)]) {
            one.receive(ms(number as u64), UP, FacePacket::Data(data(&path, 100)));
            out(&mut one);
        }
        assert!(one.stored().0 <= room * size);
    }
    let hits = |segment: &u32| {
        let before = one.counts().store_hits;
        ask(&mut one, ms(1_000), B, &interest(&format!("/v/{segment}"), 1_000_000 + segment));
        one.counts().store_hits > before
    };
    (0..10).filter(hits).collect()
}

#[test]
fn the_least_recently_or_least_frequently_used_goes_first() {
    assert_eq!(kept(StorePolicy::Lru, 2, &[1, 1, 1, 2, 3]), [2, 3]);
    assert_eq!(kept(StorePolicy::Lfu, 2, &[1, 1, 1, 2, 3]), [1, 3]);
    assert_eq!(kept(StorePolicy::Lru, 2, &[1, 2, 1, 3]), [1, 3]);
    assert!(kept(StorePolicy::Lru, 0, &[1, 2]).is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Ask(u32, u8, bool),
    Answer(u8),
    Refuse(u8, u32),
    Gone(u32),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u32..4, 0u8..6, any::<bool>()).prop_map(|(face, what, fresh)| Step::Ask(face, what, fresh)),
        3 => (0u8..6).prop_map(Step::Answer),
        1 => (0u8..6, any::<u32>()).prop_map(|(what, nonce)| Step::Refuse(what, nonce)),
        1 => (0u32..4).prop_map(Step::Gone),
        2 => (1u64..600).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..200)
}

proptest! {
    /// Data are sent to the faces that asked for them alone, once for each time; room is bounded for any
    /// input.
    #[test]
    fn nobody_gets_what_he_did_not_ask_for(steps in steps(), store in 0u64..2_000, pit in 1u32..5) {
        let most_pending = pit as usize;
        let suppression = Duration::ZERO;
        let settings = ForwarderSettings { most_pending, suppression, store_bytes: store, ..settings() };
        let mut one = Forwarder::new(&settings);
        one.route(name("/v"), UP);
        let (mut now, mut nonce) = (ms(0), 0);
        let mut asked = std::collections::BTreeMap::<(u32, u8), u32>::new();
        for step in steps {
            match step {
                Step::Ask(face, what, must_be_fresh) => {
                    nonce += 1;
                    let mut interest = interest(&format!("/v/{what}"), nonce);
                    interest.must_be_fresh = must_be_fresh;
                    *asked.entry((face, what)).or_default() += 1;
                    one.receive(now, FaceId(face), FacePacket::Interest(interest));
                }
                Step::Answer(what) => one.receive(now, UP, FacePacket::Data(data(&format!("/v/{what}"), 300))),
                Step::Refuse(what, nonce) => {
                    let nack = FacePacket::Nack(NackReason::Congestion, interest(&format!("/v/{what}"), nonce));
                    one.receive(now, UP, nack);
                }
                Step::Gone(face) => one.remove_face(FaceId(face)),
                Step::Wait(wait) => now += Duration::from_millis(wait),
            }
            for (face, packet) in out(&mut one) {
                if let FacePacket::Data(data) = packet {
                    let last = data.name.last().unwrap();
                    let what = std::str::from_utf8(last.value()).unwrap().parse::<u8>().unwrap();
                    let left = asked.get_mut(&(face.0, what)).filter(|left| **left > 0);
                    prop_assert!(left.is_some(), "{face:?} {what}");
                    if let Some(left) = left { *left -= 1 }
                }
            }
            prop_assert!(one.pending() <= pit as usize && one.stored().0 <= store);
        }
        one.expire(now + Duration::from_secs(100));
        prop_assert_eq!(one.pending(), 0);
        prop_assert_eq!(one.deadline(), None);
    }
}
