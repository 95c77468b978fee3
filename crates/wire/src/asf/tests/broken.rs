use super::*;

fn fault(packet: &[u8]) -> Fault {
    DataPacket::read(packet).unwrap_err().fault
}

fn small() -> Vec<u8> {
    let objects = [Written { stream: 1, presentation_ms: 3000, is_key: true, data: vec![7; 90] }];
    file(&[video(1)], 3000, 500, &packets_of(&objects, 100))
}

/// The small file with one of its header's fields changed.
fn header(change: impl FnOnce(&mut Header)) -> Vec<u8> {
    let mut header = Header::read(&small()).unwrap().0;
    change(&mut header);
    write_head(&header).unwrap()
}

#[test]
fn what_is_something_else_is_told() {
    for other in [&b""[..], b".RMF", &Guid::DATA.0] {
        assert_eq!(Asf::read(other).unwrap_err(), Problem { at: 0, fault: Fault::NotAsf });
    }
    let said = Asf::read(b"\0\0\0\x18ftypisom").unwrap_err().to_string();
    assert!(said.contains("Advanced Systems Format") && said.contains(".wmv"), "{said}");
}

#[test]
fn headers_that_contradict_themselves_are_told_by_name_and_place() {
    let fault = |file: &[u8]| Asf::read(file).unwrap_err().fault;
    let file = |change: fn(&mut Header)| header(change);
    let size = |min, max| Fault::PacketSizes { min, max, least: LEAST_PACKET_BYTES, most: MOST_PACKET_BYTES };
    assert_eq!(fault(&file(|header| header.file.min_packet_bytes = 400)), size(400, 500));
    let none = file(|header| (header.file.min_packet_bytes, header.file.max_packet_bytes) = (0, 0));
    assert_eq!(fault(&none), size(0, 0));
    let long = file(|header| (header.file.min_packet_bytes, header.file.max_packet_bytes) = (65_536, 65_536));
    assert_eq!(fault(&long), size(65_536, 65_536));
    assert_eq!(fault(&file(|header| header.streams.clear())), Fault::Missing(Guid::STREAM_PROPERTIES));
    assert_eq!(fault(&file(|header| header.streams.push(audio(1)))), Fault::SameStream(1));
    let twice = file(|header| {
        let extended = ExtendedStreamProperties { number: 3, ..ExtendedStreamProperties::default() };
        header.extended = vec![extended.clone(), extended];
    });
    assert_eq!(fault(&twice), Fault::Repeated(Guid::EXTENDED_STREAM));
    let hidden = file(|header| {
        let properties = Some(audio(1));
        header.extended = vec![ExtendedStreamProperties { number: 1, properties, ..Default::default() }];
    });
    assert_eq!(fault(&hidden), Fault::SameStream(1));

    let whole = small();
    // An object that is shorter than its header, and a field that extends beyond its object.
    let mut short = whole.clone();
    short[46..54].copy_from_slice(&23u64.to_le_bytes());
    let problem = Asf::read(&short).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "at byte 30: the File Properties Object declares 23 B, fewer than its header"
    );
    let mut short = whole.clone();
    short[46..54].copy_from_slice(&103u64.to_le_bytes());
    let problem = Asf::read(&short).unwrap_err();
    let said = "at byte 130: the File Properties Object ends 1 B before its maximum bit rate does";
    assert_eq!(problem.to_string(), said);
    let mut long = whole.clone();
    long[46..54].fill(0xff);
    assert!(matches!(fault(&long), Fault::Truncated { what: "an object", .. }));
    // The header alone, and one with another object in place of its File Properties.
    let head = Header::read(&whole).unwrap().1;
    assert_eq!(fault(&whole[..head]), Fault::Missing(Guid::DATA));
    let mut other = whole.clone();
    other[30] ^= 1;
    assert_eq!(fault(&other), Fault::Missing(Guid::FILE_PROPERTIES));
    // A Data Object that is too short, and that counts more packets than it has.
    let mut short = whole.clone();
    short[head + 16..head + 24].copy_from_slice(&49u64.to_le_bytes());
    assert_eq!(fault(&short), Fault::ObjectLength { object: Guid::DATA, bytes: 49 });
    let mut more = whole;
    more[head + 40] = 3;
    assert_eq!(Asf::read(&more).unwrap().cut.unwrap().fault, Fault::FewerPackets { count: 3, taken: 1 });
}

#[test]
fn packets_that_contradict_themselves_are_told_by_place() {
    let of = ObjectFields { bytes: 90, presentation_ms: 1 };
    let good = DataPayload { stream: 1, is_key: true, object: 0, offset: 0, of: Some(of), data: b"good" };
    let form = Form { correction_bytes: None, payload_length: None, ..Form::OWN };
    let packet = |payload: DataPayload<'_>| form.packet(0, 0, &[form.payload(&payload)]);
    assert!(DataPacket::read(&packet(good)).is_ok());
    let outside = Fault::OutsideObject { offset: 87, end: 91, object_bytes: 90 };
    assert_eq!(fault(&packet(DataPayload { offset: 87, ..good })), outside);
    let long = ObjectFields { bytes: MOST_OBJECT_BYTES + 1, ..of };
    let told = Fault::ObjectTooLong { bytes: MOST_OBJECT_BYTES + 1, limit: MOST_OBJECT_BYTES };
    assert_eq!(fault(&packet(DataPayload { of: Some(long), ..good })), told);
    // Packet length, replicated data's length, error correction: at bytes 2, 16, 0.
    let changed = |at: usize, byte: u8| {
        let mut packet = packet(good);
        packet[at] = byte;
        fault(&packet)
    };
    assert_eq!(changed(2, 200), Fault::PacketLength { said: 200, found: 29 });
    assert_eq!(changed(2, 9), Fault::PacketLength { said: 9, found: 29 });
    assert_eq!(changed(16, 7), Fault::ReplicatedData(7));
    assert_eq!(changed(0, 0xa2), Fault::ErrorCorrection(0xa2));
    assert_eq!(changed(16, 30), Fault::Truncated { what: "replicated data", missing: 18 });

    let padded = Form { padding: 1, padding_bytes: 5, ..form }.packet(0, 0, &[form.payload(&good)]);
    let mut long = padded;
    long[4] = 25;
    assert_eq!(fault(&long), Fault::Padding { padding: 25, found: 24 });

    let several = Form { payload_length: Some(1), ..form };
    let flags = |packet: &[u8], flags: u8| {
        let mut packet = packet.to_vec();
        packet[10] = flags;
        fault(&packet)
    };
    let two = several.packet(0, 0, &[several.payload(&good), several.payload(&good)]);
    assert_eq!(DataPacket::read(&two).unwrap().payloads, [good, good]);
    assert_eq!(flags(&two, 0x40), Fault::PayloadFlags(0x40));
    assert_eq!(flags(&two, 0x02), Fault::PayloadFlags(0x02));
    assert!(matches!(flags(&two, 0x43), Fault::Truncated { .. }));
}

proptest! {
    #[test]
    fn a_packet_that_is_cut_short_is_refused(
        form in any_form(), data in prop::collection::vec(any::<u8>(), 1..90), end in any::<Index>(),
    ) {
        // Its length is declared: missing bytes are not taken for the end.
        let form = Form { packet_length: 2, ..form };
        let of = Some(ObjectFields { bytes: MOST_OBJECT_BYTES, presentation_ms: 0 });
        let payload = DataPayload { stream: 1, is_key: false, object: 0, offset: 0, of, data: &data };
        let packet = form.packet(0, 0, &[form.payload(&payload)]);
        let end = end.index(packet.len());
        let problem = DataPacket::read(&packet[..end]).unwrap_err();
        prop_assert!(problem.at <= end as u64);
        prop_assert!(without_padding(&packet[..end]).is_err());
    }

    #[test]
    fn any_bytes_are_a_packet_or_a_problem(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        match DataPacket::read(&bytes) {
            Err(problem) => prop_assert!(problem.at <= bytes.len() as u64),
            Ok(packet) => {
                // Without its padding it has the same content.
                let stripped = without_padding(&bytes).unwrap();
                prop_assert_eq!(DataPacket::read(&stripped).unwrap().payloads, packet.payloads);
            }
        }
    }
}

#[test]
fn what_has_no_place_is_not_written() {
    let of = Some(ObjectFields { bytes: 70_000, presentation_ms: 0 });
    let data = vec![0; 70_000];
    let payload = DataPayload { stream: 1, is_key: true, object: 0, offset: 0, of, data: &data };
    let fault = |payloads: Vec<DataPayload<'_>>, size| {
        write_packet(&DataPacket { payloads, ..DataPacket::default() }, size).unwrap_err().fault
    };
    let small = DataPayload { data: b"small", ..payload };
    assert_eq!(fault(vec![], PacketSize::Stripped), Fault::PayloadFlags(0));
    let told = Fault::TooLong { object: Guid::DATA, field: "list of payloads", length: 64, limit: 63 };
    assert_eq!(fault(vec![small; 64], PacketSize::Stripped), told);
    let told = Fault::PacketLength { said: 70_028, found: MOST_PACKET_BYTES };
    assert_eq!(fault(vec![payload], PacketSize::Stripped), told);
    assert!(matches!(fault(vec![small], PacketSize::Fixed(70_000)), Fault::PacketLength { .. }));
    assert_eq!(
        fault(vec![DataPayload { of: None, ..small }], PacketSize::Stripped),
        Fault::ReplicatedData(0)
    );
    assert_eq!(fault(vec![DataPayload { stream: 0, ..small }], PacketSize::Stripped), Fault::StreamNumber(0));

    let head = |change: fn(&mut Header)| {
        let mut header = Header::read(&self::small()).unwrap().0;
        change(&mut header);
        write_head(&header).unwrap_err().fault
    };
    assert_eq!(head(|header| header.streams[0].number = 128), Fault::StreamNumber(128));
    let told = head(|header| {
        let names = vec![StreamName { language: 0, name: "x".repeat(40_000) }];
        header.extended = vec![ExtendedStreamProperties { number: 1, names, ..Default::default() }];
    });
    let (object, field) = (Guid::EXTENDED_STREAM, "stream name");
    assert_eq!(told, Fault::TooLong { object, field, length: 80_000, limit: 65_535 });
}
