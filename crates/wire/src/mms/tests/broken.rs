//! Faults are reported, and cost little.

use super::*;

fn fault(bytes: &[u8]) -> (u64, Fault) {
    let problem = parse(bytes).expect_err("a problem");
    (problem.at, problem.fault)
}

/// Returns a packet around a message's MID and body, with a correct length.
fn packet(mid: u32, body: &[u8]) -> Vec<u8> {
    let body = [body, &[0; 8][..body.len().next_multiple_of(8) - body.len()]].concat();
    write(TcpHeader::default(), &[MmsMessage::Other { mid, body }])
}

const FIRST_FIELD: u64 = TCP_HEADER_BYTES as u64 + 8;

#[test]
fn a_packet_has_a_header() {
    let whole = write(TcpHeader::default(), &[MmsMessage::Ping]);
    let truncated = |missing| Fault::Truncated { missing };
    assert_eq!(fault(&whole[..7]), (4, truncated(1)));
    assert_eq!(fault(&whole[..40]), (32, truncated(8)));
    assert_eq!(fault(&[&whole[..], &[0; 8]].concat()), (8, Fault::Length(32)));
    let mut other = whole.clone();
    other[4] = 0;
    assert_eq!(fault(&other), (0, Fault::NotMms));
    for length in [0u32, 15, 33, u32::MAX] {
        let mut other = whole.clone();
        other[8..12].copy_from_slice(&length.to_le_bytes());
        assert_eq!(fault(&other), (8, Fault::Length(length)));
    }
    for (chunks, expected) in [(0u32, (32, Fault::Length(0))), (3, (36, truncated(8)))] {
        let mut other = whole.clone();
        other[32..36].copy_from_slice(&chunks.to_le_bytes());
        assert_eq!(fault(&other), expected);
    }
    // No message at all.
    assert_eq!(parse(&write(TcpHeader::default(), &[])), Ok((TcpHeader::default(), vec![])));
}

#[test]
fn fields_have_values() {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let said = |mid, body: &[u32]| {
        let (at, fault) = fault(&packet(mid, &words(body)));
        (at - FIRST_FIELD, fault)
    };
    assert_eq!(said(mids::STREAM_SWITCH, &[1, 0xffff_ffff, 3]), (8, Fault::Thinning(3)));
    assert_eq!(
        said(mids::STREAM_SWITCH, &[u32::MAX]),
        (4, Fault::Truncated { missing: 6 * u64::from(u32::MAX) - 4 })
    );
    let nan = 0x7ff8_0000;
    assert_eq!(said(mids::START_PLAYING, &[1, 0, 0, nan, 0, 0, 0, 1]), (8, Fault::Time));
    assert_eq!(said(mids::START_PLAYING, &[1, 0, 0, 0xbff0_0000, 0, 0, 0, 1]), (8, Fault::Time), "-1 s");
    for rate in [0u32, nan, 0x4018_0000] {
        let striding = [1, 0, 0, 0, 0, 0, 0, 1, 0, rate];
        assert_eq!(said(mids::START_STRIDING, &striding), (32, Fault::Rate));
    }
    assert_eq!(said(mids::OPEN_FILE, &[1, 0, 3, 1, 0]), (8, Fault::Length(3)));
    assert_eq!(said(mids::OPEN_FILE, &[1, 0, 200, 1, 0]).1, Fault::Truncated { missing: 192 });
    assert_eq!(said(mids::REPORT_REDIRECT, &[0, 3]), (4, Fault::Redirection(3)));
    // A lone surrogate.
    assert_eq!(said(mids::OPEN_FILE, &[1, 0, 0, 0, 0xd800]), (16, Fault::Text));
    assert_eq!(said(mids::CONNECT_FUNNEL, &[0; 6]), (20, Fault::Funnel));
    let counted = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, u32::MAX, 0, 0, 0];
    assert_eq!(said(mids::REPORT_CONNECTED_EX, &counted).1, Fault::Truncated { missing: 8_589_934_590 });
    for name in [r"\10.0.0.1\UDP\1", r"\\10.0.0.1\SCTP\1", r"\\10.0.0.1\UDP\65536", r"\\UDP\1"] {
        let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let body = [&[0; 20], &units[..]].concat();
        assert_eq!(fault(&packet(mids::CONNECT_FUNNEL, &body)), (FIRST_FIELD + 20, Fault::Funnel), "{name}");
    }
}

#[test]
fn datagrams_are_as_long_as_they_say() {
    let data = |bytes: &[u8]| DataPacket::parse(bytes).map(|_| ()).expect_err("a problem");
    let truncated = |at, missing| Problem { at, fault: Fault::Truncated { missing } };
    assert_eq!(data(b"\0\0\0"), truncated(0, 5));
    assert_eq!(data(b"\0\0\0\0\x01\0\x09\0"), truncated(8, 1));
    assert_eq!(data(b"\0\0\0\0\x01\0\x08\0x"), Problem { at: 6, fault: Fault::Length(8) });
    assert_eq!(data(b"\0\0\0\0\x01\0\0\0"), Problem { at: 6, fault: Fault::Length(0) });
    let filler = Chunk::with_filler(*b"\0\0\0\0", 8);
    assert_eq!(DataPacket::parse(&filler), Err(Problem { at: 4, fault: Fault::Filler }));
    let resend = |bytes: &[u8]| ResendRequest::parse(bytes).expect_err("a problem");
    assert_eq!(resend(b"\0\0\0\0"), Problem { at: 0, fault: Fault::NotResend });
    for count in [0, 33] {
        let request = [&b"\x0d\xf0\xef\xbe\x09\0\0\0\x03\0"[..], &[count, 0]].concat();
        assert_eq!(resend(&request), Problem { at: 10, fault: Fault::Resends(count.into()) });
    }
    assert_eq!(resend(b"\x0d\xf0\xef\xbe\x09\0\0\0\x03\0\x02\0\x01\0\0\0"), truncated(12, 4));
    let long = ResendRequest { sequences: vec![0; 40], ..ResendRequest::default() };
    assert_eq!(ResendRequest::parse(&long.write()).unwrap().sequences.len(), 32);
}

#[test]
fn a_connection_ends_with_what_is_wrong() {
    let ping = write(TcpHeader::default(), &[MmsMessage::Ping]);
    let one = Ok(MmsItem::Message(MmsMessage::Ping));
    let problem = |at, fault| Err(Problem { at, fault });
    let http = b"GET / HTTP/1.1\r\n";
    assert_eq!(all(Reader::of_requests(), http), [problem(0, Fault::NotMms)]);
    let after = [&ping[..], http, &ping].concat();
    assert_eq!(all(Reader::of_requests(), &after), [one.clone(), problem(0, Fault::NotMms)]);
    let empty = b"\0\0\0\0\x01\0\x07\0";
    assert_eq!(all(Reader::of_responses(), empty), [problem(6, Fault::Length(7))]);
    let mut huge = ping.clone();
    huge[8..12].copy_from_slice(&0x7fff_fff0u32.to_le_bytes());
    assert_eq!(all(Reader::of_requests(), &huge), [problem(8, Fault::TooLong(0x7fff_fff0))]);
    // Later data are not kept.
    let mut reader = Reader::of_requests();
    reader.push(Chunk::filler(u32::MAX));
    assert_eq!(reader.next(), Some(problem(0, Fault::NotMms)));
    reader.push(Chunk::bytes(ping));
    assert_eq!(reader.next(), None);
    assert!(reader.is_between_packets());
}

proptest! {
    /// Any bytes are messages or a problem; a parsed message is written and read again as the same.
    #[test]
    fn takes_anything(
        mid in prop_oneof![0x3_0001u32..0x3_0034, 0x4_0001u32..0x4_0023],
        body in prop_oneof![vec(any::<u8>(), 0..200), vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..1600)],
    ) {
        if let Ok((header, messages)) = parse(&packet(mid, &body)) {
            prop_assert_eq!(parse(&write(header, &messages)), Ok((header, messages)));
        }
    }
}
