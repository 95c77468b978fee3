//! Bytes that others wrote. Vectors that are not from the specification were made with two client libraries
//! by our own calls: python-ndn 0.5.2 and ndnd 1.5.3.

use super::*;
use crate::ndn::tlv::{Elements, integer, put_integer, put_number};
use crate::ndn::types::FORWARDING_HINT;

fn chunk(digits: &str) -> Chunk {
    Chunk::bytes(hex(digits))
}

/// It is read as this, which is written as the same bytes.
fn same(digits: &str, interest: &Interest) {
    assert_eq!(Interest::read(&chunk(digits)).as_ref(), Ok(interest));
    assert_eq!(interest.write(), chunk(digits));
}

fn same_data(digits: &str, data: &Data) {
    assert_eq!(Data::read(&chunk(digits)).as_ref(), Ok(data));
    assert_eq!(data.write(), chunk(digits));
}

/// "Type-Length-Value (TLV) Encoding", sections "Variable Size Encoding for Type and Length" and "Non-Negative Integer
/// Encoding".
#[test]
fn numbers_of_the_specification() {
    let integers = [
        (0, "TT0100"),
        (1, "TT0101"),
        (255, "TT01FF"),
        (256, "TT020100"),
        (65535, "TT02FFFF"),
        (65536, "TT0400010000"),
    ];
    for (number, digits) in integers {
        let bytes = hex(&digits.replace("TT", "21"));
        let mut written = Vec::new();
        put_integer(&mut written, 33, number);
        assert_eq!(written, bytes);
        assert_eq!(integer(&bytes[2..]), Some(number));
    }
    let numbers = [
        (252, "fc"),
        (253, "fd00fd"),
        (65535, "fdffff"),
        (65536, "fe00010000"),
        (u64::from(u32::MAX), "feffffffff"),
        (1 << 32, "ff0000000100000000"),
    ];
    for (number, digits) in numbers {
        let mut written = Vec::new();
        put_number(&mut written, number);
        assert_eq!(written, hex(digits));
        // As a type, which has no more than 32 bits.
        written.push(0);
        let read =
            Elements::of_bytes(&written).next().map(|element| element.map(|element| element.kind.into()));
        assert_eq!(read.ok().flatten(), Some(number).filter(|&number| number <= u32::MAX.into()));
    }
}

/// "Name", section "NDN URI Scheme".
#[test]
fn a_digest_of_the_specification() {
    let digest = "893259d98aca58c451453f29ec7dc38688e690dd0b59ef4f3b9d33738bff0b8d";
    let uri = format!("/sha256digest={digest}");
    assert_eq!(name(&uri).as_bytes(), hex(&format!("0120{digest}")));
    assert_eq!(name(&uri).to_string(), uri);
}

/// python-ndn's `Name.to_bytes` and ndnd's `Name.Bytes`, which agree.
#[test]
fn names() {
    let uri = "/a%20b/~._-/x/seg=0/off=256/v=65535/t=1700000000000000/seq=4294967296/32=metadata";
    let value = "0803612062 08047e2e5f2d 080178 320100 34020100 3602ffff 380800060a24181e4000 3a080000000100000000 \
                 20086d65746164617461";
    assert_eq!(name(uri).as_bytes(), hex(value));
    assert_eq!(name(uri).to_string(), uri);
}

/// python-ndn's `make_interest`.
#[test]
fn interests_of_python_ndn() {
    let clip = Interest {
        nonce: Some(0x0102_0304),
        lifetime_ms: Some(4000),
        ..Interest::of(name("/clip/v=1/seg=258"))
    };
    same("0519070d0804636c6970360101320201020a04010203040c020fa0", &clip);
    let all = Interest {
        can_be_prefix: true,
        must_be_fresh: true,
        forwarding_hint: Some(hex("0706080468696e74").into()),
        nonce: Some(0xfffe_fdfc),
        lifetime_ms: Some(10),
        hop_limit: Some(32),
        ..Interest::of(name("/a/b"))
    };
    same("05220706080161080162210012001e080706080468696e740a04fffefdfc0c010a220120", &all);

    let plain = Interest { nonce: Some(1), lifetime_ms: Some(1000), ..Interest::of(name("/a")) };
    let asking = Parameters { value: (*b"ask").into(), signature: [].into() };
    let asking = plain.clone().with_parameters(asking).expect("there is room");
    same(
        "05360725080161022057e8bfd5e722295f53179a3e52d8dc7f03f27f70b10b2c0efa00db1360ba4c38\
         0a04000000010c0203e8240361736b",
        &asking,
    );
    let signature = "2c171b010026080bc81163ea5134fb2808000001a21431cc222e20b40934394123ad7c1e6fd9b952442cc1\
                     1684b4651e009fe38cbc1d34a58a7035";
    let signed = Parameters { value: (*b"ask").into(), signature: hex(signature).into() };
    let signed = plain.with_parameters(signed).expect("there is room");
    let head = "05710725080161022087db7b89d3a06066ee8876d02dc4dc81f0a81959d5c4a5d798f0f23a859937d0\
                0a04000000010c0203e8240361736b";
    same(&format!("{head}{signature}"), &signed);
}

/// ndnd's `Spec.MakeInterest`.
#[test]
fn interests_of_ndnd() {
    let all = Interest {
        can_be_prefix: true,
        must_be_fresh: true,
        forwarding_hint: Some(hex("0709080468696e74080161").into()),
        nonce: Some(0x0102_0304),
        lifetime_ms: Some(5000),
        hop_limit: Some(9),
        ..Interest::of(name("/clip/v=1/seg=258"))
    };
    same(INTEREST_OF_NDND, &all);
    let asking = Parameters { value: (*b"ask").into(), signature: [].into() };
    let plain =
        Interest { nonce: Some(1), lifetime_ms: Some(1000), ..Interest::of(name("/clip/v=1/seg=258")) };
    same(
        "0540072f0804636c697036010132020102022057e8bfd5e722295f53179a3e52d8dc7f03f27f70b10b2c0efa00db13\
         60ba4c380a04000000010c0203e8240361736b",
        &plain.with_parameters(asking).expect("there is room"),
    );
}

const INTEREST_OF_NDND: &str = "052d070d0804636c697036010132020102210012001e0b0709080468696e740801610a0401020304\
                                0c021388220109";

/// python-ndn's `make_data` with `DigestSha256Signer` and `HmacSha256Signer`.
#[test]
fn data_of_python_ndn() {
    let hello = Data {
        content_type: Some(0),
        freshness_ms: Some(10_000),
        final_block_id: Some(Component::segment(65_536)),
        ..Data::of(name("/clip/v=1/seg=258"), Chunk::bytes(*b"hello"))
    };
    same_data(
        "064e070d0804636c697036010132020102140f180100190227101a06320400010000150568656c6c6f16031b010017\
         20bc61f1ba5d23e8d80e012d988a6b7649729460be71bd3ddcb257cf94cbf1a6c8",
        &hello,
    );
    let key = Data { content_type: Some(2), ..Data::of(name("/k"), Chunk::default()) };
    same_data(
        "0633070308016b1403180102150016031b010017208a1a46929b8ebb883a45f870b9efc41fecc290733fb21b77a703\
         6f8d7e0c9edb",
        &key,
    );
    let hmac = Signature::Other {
        info: hex("1b01041c07070508036b6579").into(),
        value: hex("0226a8959a60892a49254071b42ce6a61f430f78133ae26ed4a082960878f261").into(),
    };
    let authenticated =
        Data { content_type: Some(0), signature: hmac, ..Data::of(name("/h"), Chunk::bytes(*b"x")) };
    same_data(
        "063d07030801681403180100150178160c1b01041c07070508036b657917200226a8959a60892a49254071b42ce6a6\
         1f430f78133ae26ed4a082960878f261",
        &authenticated,
    );
    // Lengths in three bytes.
    let content: Vec<u8> = (0..=255).chain(0..=255).collect();
    let long = Data { content_type: Some(0), ..Data::of(name("/long"), Chunk::bytes(content.clone())) };
    let digest = "16031b01001720eefa1deb31304fc1e95f9128b9d6166d815660c03d21b1c3bbbbbf92ed6ae317";
    let bytes = [hex("06fd0238070608046c6f6e67140318010015fd0200"), content, hex(digest)].concat();
    assert_eq!(long.write(), Chunk::bytes(bytes));
    assert_eq!(Data::read(&long.write()), Ok(long));
}

/// ndnd's `Spec.MakeData` with its SHA-256 signer.
#[test]
fn data_of_ndnd() {
    let hello = Data {
        content_type: Some(0),
        freshness_ms: Some(10_000),
        final_block_id: Some(Component::segment(300)),
        ..Data::of(name("/clip/v=1/seg=258"), Chunk::bytes(*b"hello"))
    };
    same_data(
        "064c070d0804636c697036010132020102140d180100190227101a043202012c150568656c6c6f16031b010017205d\
         3055ea5cdd498eba562f1a405eeed4a5f9aeabb5ac431ff20869ff5452a660",
        &hello,
    );
}

/// python-ndn's `make_network_nack`; ndnd's `LpPacket`, with fields that we pass over: IncomingFaceId, NonDiscovery, Ack.
#[test]
fn link_packets() {
    let nack = "641cfd032005fd032101965011050f070308016e0a04000000070c020fa0";
    let interest = Interest { nonce: Some(7), lifetime_ms: Some(4000), ..Interest::of(name("/n")) };
    let read = LpPacket::read(chunk(nack)).expect("theirs");
    assert_eq!(read, LpPacket::nack(NackReason::NoRoute, interest.write()));
    assert_eq!(read.write(), chunk(nack));

    let fragment = "641651080102030405060708520101530103500470617274";
    let expected = LpPacket {
        sequence: Some(0x0102_0304_0506_0708),
        frag_index: Some(1),
        frag_count: Some(3),
        ..LpPacket::of(Chunk::bytes(*b"part"))
    };
    assert_eq!(LpPacket::read(chunk(fragment)).as_ref(), Ok(&expected));
    assert_eq!(expected.write(), chunk(fragment));

    let fields = "644f620401020304fd032005fd03210132fd032c02012cfd03400101fd034c00502f";
    let read = LpPacket::read(chunk(&format!("{fields}{INTEREST_OF_NDND}"))).expect("theirs");
    let expected = LpPacket {
        pit_token: Some([1, 2, 3, 4].into()),
        congestion_mark: Some(1),
        ..LpPacket::nack(NackReason::Congestion, chunk(INTEREST_OF_NDND))
    };
    assert_eq!(read, expected);
    let carried = Interest::read(&read.fragment.expect("an Interest")).expect("theirs");
    assert_eq!(carried.forwarding_hint.map(|hint| hint.len()), Some(11), "type {FORWARDING_HINT}");
    assert_eq!(LpPacket::read(chunk("640cfd0344080000000000000005")), Ok(LpPacket::default()));
}
