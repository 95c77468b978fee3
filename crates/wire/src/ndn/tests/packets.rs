use super::*;

/// Returns the expected reading of a written Data: a signature that lies in filler is absent.
fn as_read(data: &Data) -> Data {
    let written = data.write();
    let mut read = data.clone();
    if written.filler_bytes() > 0 {
        let bytes = match &data.signature {
            Signature::DigestSha256 => 39,
            Signature::Other { info, value } => (2 + info.len() + 2 + value.len()) as u32,
            Signature::Absent { bytes } => *bytes,
        };
        read.signature = Signature::Absent { bytes };
    }
    read
}

/// With zeros in place of the content's filler.
fn real_of(data: &Data) -> Data {
    let mut content = data.content.head().to_vec();
    content.resize(data.content.len(), 0);
    Data { content: Chunk::bytes(content), ..data.clone() }
}

#[test]
fn a_payload_without_bytes_has_its_length() {
    let data = Data::of(name("/clip/seg=1"), Chunk::filler(4096));
    let (real, filler) = (real_of(&data).write(), data.write());
    assert_eq!(real.len(), filler.len());
    assert_eq!((real.filler_bytes(), filler.filler_bytes()), (0, 4096 + 39));
    // It uses no more memory than the part before the payload.
    assert_eq!(filler.head(), &real.head()[..filler.head().len()]);
    let read = Data::read(&filler).expect("ours");
    assert_eq!((read.content, read.signature), (Chunk::filler(4096), Signature::ZEROS));
    assert_eq!(implicit_digest(&filler), None);
    assert!(implicit_digest(&real).is_some());
}

#[test]
fn a_digest_is_checked() {
    let written = Data::of(name("/a"), Chunk::bytes(*b"content")).write();
    for at in 0..written.len() {
        let mut bytes = written.head().to_vec();
        bytes[at] ^= 1;
        // A byte of SignatureType makes it a signature that is not checked.
        let read = Data::read(&Chunk::bytes(bytes));
        assert!(
            read.is_err() || read.is_ok_and(|read| matches!(read.signature, Signature::Other { .. })),
            "{at}"
        );
    }
    let mut bytes = written.head().to_vec();
    *bytes.last_mut().expect("some") ^= 1;
    let forged = Chunk::bytes(bytes);
    assert_eq!(Data::read(&forged).map_err(|problem| problem.fault), Err(Fault::Digest));
    assert!(Data::read_unchecked(&forged).is_ok());
}

#[test]
fn parameters_come_with_their_digest() {
    let ask = Parameters { value: (*b"ask").into(), signature: [].into() };
    let interest = Interest::of(name("/a")).with_parameters(ask.clone()).expect("there is room");
    assert_eq!(Interest::read(&interest.write()), Ok(interest.clone()));
    let fault = |interest: Interest| Interest::read(&interest.write()).map_err(|problem| problem.fault);
    let renamed = |to: Name| fault(Interest { name: to, ..interest.clone() });
    assert_eq!(renamed(name("/a")), Err(Fault::ParametersDigest));
    assert_eq!(
        renamed(name("/a").child(Component::parameters_digest([0; 32])).expect("two")),
        Err(Fault::Digest)
    );
    let twice = interest.name.child(interest.name.last().expect("the digest")).expect("three");
    assert_eq!(renamed(twice), Err(Fault::ParametersDigest));
    assert_eq!(fault(Interest::of(interest.name.clone())), Err(Fault::ParametersDigest));
    // Others replace them.
    let other = interest.clone().with_parameters(Parameters::default()).expect("there is room");
    assert_eq!((other.name.len(), other.name != interest.name), (2, true));
    assert_eq!(Interest::read(&other.write()), Ok(other));
}

#[test]
fn interests_are_answered() {
    let (asked, longer) = (name("/a/b"), name("/a/b/c"));
    let exact = Interest::of(asked.clone());
    assert!(exact.is_answered_by(&asked, || None) && !exact.is_answered_by(&longer, || None));
    let prefix = Interest { can_be_prefix: true, ..exact };
    assert!(prefix.is_answered_by(&asked, || None) && prefix.is_answered_by(&longer, || None));
    assert!(!prefix.is_answered_by(&name("/a"), || None));
    let full = Interest::of(asked.child(Component::implicit_digest([7; 32])).expect("three"));
    assert!(full.is_answered_by(&asked, || Some([7; 32])));
    assert!(!full.is_answered_by(&asked, || Some([8; 32])) && !full.is_answered_by(&asked, || None));
    assert!(!full.is_answered_by(&longer, || Some([7; 32])));
    assert_eq!(Interest::default().lifetime().as_nanos(), 4_000_000_000);
}

#[test]
fn a_bare_packet_is_one_without_fields() {
    let interest = Interest::of(name("/a")).write();
    let bare = LpPacket::read(interest.clone()).expect("bare");
    assert_eq!(bare, LpPacket::of(interest.clone()));
    assert_eq!(bare.write(), interest);
    let wrapped = [&[100, 2 + interest.len() as u8, 80, interest.len() as u8][..], interest.head()].concat();
    assert_eq!(LpPacket::read(Chunk::bytes(wrapped)), Ok(bare));
    assert_eq!(LpPacket::read(LpPacket::default().write()), Ok(LpPacket::default()));
    // Content that is no packet stays wrapped, also where it begins like one.
    for fragment in [&b""[..], b"\x05", b"\x05\x65eeeee"] {
        let odd = LpPacket::of(Chunk::bytes(fragment));
        assert_eq!(LpPacket::read(odd.write()), Ok(odd));
    }
}

#[test]
fn reasons_have_numbers() {
    for number in 0..200 {
        assert_eq!(NackReason::of(number).number(), number);
    }
    let all = [NackReason::Congestion, NackReason::Duplicate, NackReason::NoRoute];
    assert_eq!(all.map(NackReason::number), [50, 100, 150]);
    let nack = LpPacket::nack(NackReason::Unspecified, Interest::of(name("/a")).write());
    assert_eq!(LpPacket::read(nack.write()), Ok(nack));
}

proptest! {
    #[test]
    fn interests_are_read_as_written(interest in any_interest()) {
        let written = interest.write();
        prop_assert_eq!(Interest::read(&written), Ok(interest.clone()));
        prop_assert_eq!(Packet::read(&written), Ok(Packet::Interest(interest)));
    }

    #[test]
    fn data_is_read_as_written(data in any_data()) {
        let written = data.write();
        let real = real_of(&data);
        if data.signature != Signature::ZEROS {
            let whole = real.write();
            prop_assert_eq!((whole.len(), whole.filler_bytes()), (written.len(), 0));
            prop_assert_eq!(written.head(), &whole.head()[..written.head().len()]);
            prop_assert_eq!(Data::read(&whole), Ok(real));
        }
        let expected = as_read(&data);
        prop_assert_eq!(expected.write(), written.clone());
        prop_assert_eq!(Data::read(&written), Ok(expected.clone()));
        prop_assert_eq!(Data::read_unchecked(&written), Ok(expected.clone()));
        prop_assert_eq!(Packet::read(&written), Ok(Packet::Data(expected)));
    }

    #[test]
    fn link_packets_are_read_as_written(packet in any_lp()) {
        prop_assert_eq!(LpPacket::read(packet.write()), Ok(packet));
    }
}
