use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use streamgauge_base::Chunk;

use super::types::PARAMETERS_SHA256_DIGEST;
use super::*;

mod faults;
mod fragments;
mod names;
mod packets;
mod streams;
mod vectors;

/// The bytes of hexadecimal digits.
fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u32> = digits.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

/// How much of a chunk has no bytes.
trait Filler {
    fn filler_bytes(&self) -> usize;
}

impl Filler for Chunk {
    fn filler_bytes(&self) -> usize {
        self.len() - self.head().len()
    }
}

fn any_component() -> impl Strategy<Value = Component<'static>> {
    let kind =
        prop_oneof![Just(8u16), Just(8), Just(32), Just(50), Just(54), Just(300), 3u16.., Just(u16::MAX)];
    let bytes = prop_oneof![vec(any::<u8>(), 0..9), vec(Just(b'.'), 0..5), vec(any::<u8>(), 250..256)];
    prop_oneof![
        (kind, bytes).prop_map(|(kind, bytes)| Component::of(kind, bytes).expect("3 and more")),
        any::<u64>().prop_map(Component::segment),
        (0u64..300).prop_map(Component::version),
        any::<[u8; 32]>().prop_map(Component::implicit_digest),
    ]
}

fn any_name(least: usize) -> impl Strategy<Value = Name> {
    vec(any_component(), least..6).prop_map(|components| Name::of(components).expect("a few components"))
}

fn any_interest() -> impl Strategy<Value = Interest> {
    let bytes = || vec(any::<u8>(), 0..40).prop_map(Vec::into_boxed_slice);
    let options = (option::of(bytes()), any::<Option<u32>>(), any::<Option<u64>>(), any::<Option<u8>>());
    let parameters =
        option::of(bytes()).prop_map(|value| Some(Parameters { value: value?, signature: [].into() }));
    (any_name(1), any::<(bool, bool)>(), options, parameters).prop_map(
        |(name, (can_be_prefix, must_be_fresh), options, parameters)| {
            let (forwarding_hint, nonce, lifetime_ms, hop_limit) = options;
            let plain = Interest {
                can_be_prefix,
                must_be_fresh,
                forwarding_hint,
                nonce,
                lifetime_ms,
                hop_limit,
                ..Interest::of(name)
            };
            match parameters {
                Some(parameters) => plain.with_parameters(parameters).expect("there is room"),
                None => plain,
            }
        },
    )
}

/// Some real bytes and some filler, or either, or none.
fn any_content() -> impl Strategy<Value = Chunk> {
    (vec(any::<u8>(), 0..300), prop_oneof![Just(0u32), 1u32..6000])
        .prop_map(|(head, filler)| Chunk::with_filler(head, filler))
}

fn any_signature() -> impl Strategy<Value = Signature> {
    let value = vec(any::<u8>(), 0..80);
    prop_oneof![
        Just(Signature::DigestSha256),
        Just(Signature::ZEROS),
        (1u8.., value)
            .prop_map(|(kind, value)| Signature::Other { info: [27, 1, kind].into(), value: value.into() }),
    ]
}

fn any_data() -> impl Strategy<Value = Data> {
    let meta = (any::<Option<u64>>(), any::<Option<u64>>(), option::of(any_component()));
    (any_name(0), meta, any_content(), any_signature()).prop_map(|(name, meta, content, signature)| {
        let (content_type, freshness_ms, final_block_id) = meta;
        Data { name, content_type, freshness_ms, final_block_id, content, signature }
    })
}

/// An Interest or a Data.
fn any_packet() -> impl Strategy<Value = Chunk> {
    prop_oneof![
        any_interest().prop_map(|interest| interest.write()),
        any_data().prop_map(|data| data.write()),
    ]
}

/// Its content may be no packet.
fn any_lp() -> impl Strategy<Value = LpPacket> {
    let token = option::of(vec(any::<u8>(), 1..33).prop_map(Vec::into_boxed_slice));
    let nack = option::of(any::<u16>().prop_map(|number| NackReason::of((number % 200).into())));
    (token, nack, any::<Option<u64>>(), any_packet()).prop_map(
        |(pit_token, nack, congestion_mark, packet)| LpPacket {
            pit_token,
            nack,
            congestion_mark,
            ..LpPacket::of(packet)
        },
    )
}
