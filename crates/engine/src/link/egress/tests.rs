use etherparse::{Ipv4HeaderSlice, PacketBuilder, SlicedPacket, UdpSlice};
use proptest::prelude::*;
use streamgauge_base::{FlowId, Fragment, PacketId, PacketInfo, PacketKind};
use streamgauge_record::parse_frame;

use super::*;

fn udp(payload: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    let payload: Vec<u8> = (0..payload).map(|n| (n * 7) as u8).collect();
    let ip = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4([10, 1, 0, 1], [10, 2, 0, 1], 64);
    ip.udp(5004, 6000).write(&mut frame, &payload).unwrap();
    // As a host without path MTU discovery sends it.
    frame[IP + 6..IP + 8].fill(0);
    frame[IP + 10..IP + 12].fill(0);
    let sum = checksum(&frame[IP..ABOVE_IP]);
    frame[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// The frame in a slab, with the item that a path would be given.
fn kept(frame: &[u8]) -> (Slab, Item, Meta) {
    let parsed = parse_frame(frame);
    let (header_bytes, payload_bytes) = (parsed.headers.header_bytes, parsed.headers.payload_bytes);
    let info = PacketInfo {
        kind: PacketKind::Media,
        flags: 0,
        header_bytes,
        payload_bytes,
        seq: None,
        connection: None,
    };
    let (fragment, ip_bytes) = (parsed.fragment, parsed.ip_bytes);
    let meta = Meta { info, ecn: parsed.ecn, came: 0, fragment, ip_bytes, egress: 0 };
    let mut slab = Slab::new(1, 1);
    let body = slab.insert(meta, frame).unwrap();
    let item = Item {
        body,
        ecn: parsed.ecn,
        protocol: parsed.protocol,
        fragment: parsed.fragment,
        ..Item::new(PacketId(7), FlowId(0), parsed.ip_bytes)
    };
    (slab, item, meta)
}

fn sent(slab: &mut Slab, item: &Item, meta: &Meta) -> Vec<u8> {
    match prepare(slab, item, meta) {
        Some(altered) => altered.parts(slab.frame(item.body)).concat(),
        None => slab.frame(item.body).to_vec(),
    }
}

/// `item` cut to an MTU as a router does it.
fn cut(item: &Item, mtu: u32) -> Vec<Item> {
    let (payload, most) = (item.ip_bytes - 20, (mtu - 20) & !7);
    let part = |from: u32| {
        let bytes = most.min(payload - from);
        let more = from + bytes < payload || item.fragment.more();
        let fragment = Fragment::part(item.fragment.offset() + (from / 8) as u16, more);
        Item { fragment, ip_bytes: bytes + 20, bytes: bytes + 34, ..*item }
    };
    (0..payload).step_by(most as usize).map(part).collect()
}

/// IP payload put together again, after a look at every header.
fn reassembled(fragments: &[Vec<u8>]) -> Vec<u8> {
    let mut payload = Vec::new();
    let mut more = true;
    for frame in fragments {
        assert!(more, "a fragment behind the last");
        let ip = Ipv4HeaderSlice::from_slice(&frame[IP..]).unwrap();
        assert_eq!(checksum(ip.slice()), 0, "{:x?}", ip.slice());
        assert_eq!(usize::from(ip.total_len()) + IP, frame.len());
        assert_eq!(usize::from(ip.fragments_offset().value()) * 8, payload.len());
        payload.extend(&frame[ABOVE_IP..]);
        more = ip.more_fragments();
    }
    assert!(!more, "the last fragment says that more follow");
    payload
}

#[test]
fn a_marked_header_still_checks() {
    for (tos, ident) in [(0x02u8, 0u16), (0x01, 0xffff), (0xb9, 0x1234)] {
        let mut frame = udp(20);
        frame[IP + 1] = tos;
        frame[IP + 4..IP + 6].copy_from_slice(&ident.to_be_bytes());
        frame[IP + 10..IP + 12].fill(0);
        let sum = checksum(&frame[IP..ABOVE_IP]);
        frame[IP + 10..IP + 12].copy_from_slice(&sum.to_be_bytes());
        let (mut slab, item, meta) = kept(&frame);
        let marked = Item { ecn: Ecn::Ce, ..item };
        // In place, and beside another item of the same bytes, which stays as it was.
        slab.hold(item.body);
        let beside = sent(&mut slab, &marked, &meta);
        assert_eq!(sent(&mut slab, &item, &meta), frame);
        slab.release(item.body);
        let alone = sent(&mut slab, &marked, &meta);
        assert_eq!(alone, beside);
        assert_eq!(alone[IP + 1], tos | 3);
        assert_eq!(checksum(&alone[IP..ABOVE_IP]), 0, "tos {tos:#x}");
        assert_eq!(alone[ABOVE_IP..], frame[ABOVE_IP..]);
    }
}

#[test]
fn an_untouched_packet_is_sent_as_it_came() {
    let (mut slab, item, meta) = kept(&udp(100));
    assert!(prepare(&mut slab, &item, &meta).is_none());
}

/// Whether the receiver's host would take it.
fn udp_checksum_is_right(frame: &[u8]) -> bool {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let ip = Ipv4HeaderSlice::from_slice(&frame[IP..]).unwrap();
    assert_eq!(checksum(ip.slice()), 0, "the IP header is not to be touched");
    let udp = UdpSlice::from_slice(&frame[ABOVE_IP..]).unwrap();
    assert!(packet.transport.is_some());
    let expected =
        udp.to_header().calc_checksum_ipv4_raw(ip.source(), ip.destination(), udp.payload()).unwrap();
    udp.checksum() == expected && udp.checksum() != 0
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Cut, and cut again, and put together: the same bytes.
    #[test]
    fn fragments_hold_the_datagram(payload in 0usize..1473, mtu in 68u32..1500, again in 68u32..1500) {
        let frame = udp(payload);
        let (mut slab, item, meta) = kept(&frame);
        let parts = cut(&item, mtu);
        let nested: Vec<_> = parts.iter().flat_map(|part| cut(part, again)).collect();
        for items in [parts, nested] {
            for _ in 1..items.len() {
                slab.hold(item.body);
            }
            let fragments: Vec<_> = items.iter().map(|item| sent(&mut slab, item, &meta)).collect();
            for (bytes, item) in fragments.iter().zip(&items) {
                let read = parse_frame(bytes);
                prop_assert_eq!(read.fragment, item.fragment);
                prop_assert_eq!(read.ip_bytes, item.ip_bytes);
                prop_assert_eq!(meta.info.payload_bytes_in(item), read.headers.payload_bytes);
            }
            prop_assert_eq!(&reassembled(&fragments)[..], &frame[ABOVE_IP..]);
            for _ in 1..items.len() {
                slab.release(item.body);
            }
        }
    }

    /// A fragment that a host made itself is cut once more.
    #[test]
    fn a_hosts_own_fragment_is_cut(offset in 1u16..100, more in any::<bool>(), mtu in 68u32..400) {
        let mut frame = udp(800);
        frame.truncate(ABOVE_IP + 800);
        let word = Fragment::part(offset, more).word();
        frame[IP + 2..IP + 4].copy_from_slice(&820u16.to_be_bytes());
        frame[IP + 6..IP + 8].copy_from_slice(&word.to_be_bytes());
        let (mut slab, item, meta) = kept(&frame);
        let parts = cut(&item, mtu);
        slab.hold(item.body);
        let mut payload: Vec<u8> = Vec::new();
        for part in &parts {
            let bytes = sent(&mut slab, part, &meta);
            let ip = Ipv4HeaderSlice::from_slice(&bytes[IP..]).unwrap();
            prop_assert_eq!(checksum(ip.slice()), 0);
            prop_assert_eq!(usize::from(ip.fragments_offset().value()), usize::from(offset) + payload.len() / 8);
            payload.extend(&bytes[ABOVE_IP..]);
            prop_assert_eq!(ip.more_fragments(), more || payload.len() < 800);
        }
        prop_assert_eq!(&payload[..], &frame[ABOVE_IP..]);
    }

    /// One bit is wrong beyond the IP header, the same one each time, in place or beside a copy, and the
    /// checksum reveals it.
    #[test]
    fn corruption_is_one_bit_and_the_checksum_finds_it(payload in 0usize..200, id in any::<u64>(), shared in any::<bool>()) {
        let frame = udp(payload);
        let (mut slab, item, meta) = kept(&frame);
        let item = Item { id: PacketId(id), corrupted: true, ..item };
        if shared {
            slab.hold(item.body);
        }
        let bytes = sent(&mut slab, &item, &meta);
        let differ: u32 = bytes.iter().zip(&frame).map(|(a, b)| (a ^ b).count_ones()).sum();
        prop_assert_eq!((differ, bytes.len()), (1, frame.len()));
        prop_assert!(udp_checksum_is_right(&frame) && !udp_checksum_is_right(&bytes));
        let (mut other, ..) = kept(&frame);
        prop_assert_eq!(sent(&mut other, &item, &meta), bytes);
    }

    /// A corrupted fragment is wrong in one bit of its own payload.
    #[test]
    fn corruption_of_a_fragment(payload in 100usize..1400, mtu in 68u32..400, which in any::<prop::sample::Index>()) {
        let frame = udp(payload);
        let (mut slab, item, meta) = kept(&frame);
        let parts = cut(&item, mtu);
        slab.hold(item.body);
        let part = parts[which.index(parts.len())];
        let clean = sent(&mut slab, &part, &meta);
        let dirty = sent(&mut slab, &Item { corrupted: true, ..part }, &meta);
        prop_assert_eq!(clean.len(), dirty.len());
        let differ: Vec<usize> = (0..clean.len()).filter(|&at| clean[at] != dirty[at]).collect();
        prop_assert_eq!(differ.len(), 1);
        prop_assert!(differ[0] >= ABOVE_IP);
    }

    /// There is an answer for any bytes and any item.
    #[test]
    fn nothing_panics(
        bytes in prop::collection::vec(any::<u8>(), 1..200), ipv4 in any::<bool>(), word in any::<u16>(),
        ip_bytes in 0u32..3000, ecn in any::<bool>(), corrupted in any::<bool>(), shared in any::<bool>(),
    ) {
        let mut bytes = bytes;
        if ipv4 && bytes.len() >= 14 {
            bytes[12..14].copy_from_slice(&[8, 0]);
        }
        let (mut slab, item, meta) = kept(&bytes);
        if shared {
            slab.hold(item.body);
        }
        let fragment = if shared { Fragment::from_word(word) } else { item.fragment };
        let ecn = if ecn { Ecn::Ce } else { item.ecn };
        sent(&mut slab, &Item { fragment, ecn, corrupted, ip_bytes, ..item }, &meta);
    }
}
