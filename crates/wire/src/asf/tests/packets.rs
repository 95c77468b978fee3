use super::*;
use crate::mms::ThinningLevel;

prop_compose! {
    /// A payload's numbers and bytes; its form decides which of them are written.
    fn any_payload()(
        stream in 1..128u8,
        is_key: bool,
        object: u32,
        offset in 0..MOST_OBJECT_BYTES / 2,
        more in 0..1000u32,
        presentation_ms: u32,
        has_fields in prop::bool::weighted(0.9),
        data in prop::collection::vec(any::<u8>(), 0..200),
    ) -> (DataPayload<'static>, Vec<u8>) {
        let bytes = offset + data.len() as u32 + more;
        let of = has_fields.then_some(ObjectFields { bytes, presentation_ms });
        (DataPayload { stream, is_key, object, offset, of, data: &[] }, data)
    }
}

/// Returns the packet of this form with these payloads, and the expected reading of it.
fn made<'a>(
    form: &Form,
    send_ms: u32,
    duration_ms: u16,
    payloads: &'a [(DataPayload<'a>, Vec<u8>)],
) -> (Vec<u8>, DataPacket<'a>) {
    let count = if form.payload_length.is_some() { payloads.len() } else { 1 };
    let of = |(payload, data): &'a (DataPayload<'a>, Vec<u8>)| {
        let object = kept(form.object, payload.object);
        DataPayload { object, offset: kept(form.offset, payload.offset), data, ..*payload }
    };
    let payloads: Vec<DataPayload<'a>> = payloads[..count].iter().map(of).collect();
    let bytes: Vec<_> = payloads.iter().map(|payload| form.payload(payload)).collect();
    let packet = form.packet(send_ms, duration_ms, &bytes);
    (packet, DataPacket { send_ms, duration_ms, padding_bytes: form.padded(), payloads })
}

proptest! {
    #[test]
    fn packets_of_every_form_are_read(
        form in any_form(), send_ms: u32, duration_ms: u16,
        payloads in prop::collection::vec(any_payload(), 1..12), behind in 0..40u32,
    ) {
        // Lengths of a packet and of its payloads need room for their values.
        let form = Form {
            packet_length: if form.packet_length == 1 { 2 } else { form.packet_length },
            ..form
        };
        let (mut packet, mut expected) = made(&form, send_ms, duration_ms, &payloads);
        prop_assert_eq!(&DataPacket::read(&packet).unwrap(), &expected);

        // The same without its padding.
        let stripped = without_padding(&packet).unwrap();
        let read = DataPacket::read(&stripped).unwrap();
        prop_assert_eq!(&read, &DataPacket { padding_bytes: 0, ..expected.clone() });
        prop_assert_eq!(&without_padding(&stripped).unwrap(), &stripped);

        // Bytes behind a length that the packet declares are padding too.
        if form.packet_length > 0 {
            packet.resize(packet.len() + behind as usize, 0xaa);
            expected.padding_bytes += behind;
            prop_assert_eq!(DataPacket::read(&packet).unwrap(), expected);
        }
    }

    #[test]
    fn what_is_written_is_read(
        send_ms: u32, duration_ms: u16, payloads in prop::collection::vec(any_payload(), 1..64), more in 0..2000u32,
    ) {
        let mut payloads = payloads;
        payloads.iter_mut().for_each(|(payload, _)| {
            payload.object &= 0xff;
            payload.of.get_or_insert(ObjectFields { bytes: MOST_OBJECT_BYTES, presentation_ms: 7 });
        });
        let (_, expected) = made(&Form::OWN, send_ms, duration_ms, &payloads);
        let stripped = write_packet(&expected, PacketSize::Stripped).unwrap();
        prop_assert_eq!(&DataPacket::read(&stripped).unwrap(), &expected);
        let fixed = stripped.len() as u32 + more;
        let packet = write_packet(&expected, PacketSize::Fixed(fixed)).unwrap();
        prop_assert_eq!(packet.len(), fixed as usize);
        prop_assert_eq!(DataPacket::read(&packet).unwrap(), DataPacket { padding_bytes: more, ..expected.clone() });
        prop_assert_eq!(without_padding(&packet).unwrap(), stripped);
        prop_assert!(write_packet(&expected, PacketSize::Fixed(fixed - more - 1)).is_err());
    }

    /// A compressed payload has several media objects at equal intervals.
    #[test]
    fn compressed_payloads_are_taken_apart(
        form in any_form(), is_key: bool, object: u32, presentation_ms: u32, delta_ms: u8,
        parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..256), 1..8),
    ) {
        let packet_length = if form.packet_length == 1 { 2 } else { form.packet_length };
        // 8 parts of 256 B have no place in a length of 8 bits.
        let payload_length = form.payload_length.map(|length_type| length_type.max(2));
        let form = Form { packet_length, payload_length, ..form };
        let first = DataPayload { stream: 9, is_key, object, offset: presentation_ms, of: None, data: &[] };
        let data: Vec<u8> = parts.iter().flat_map(|part| [&[part.len() as u8][..], part].concat()).collect();
        let bytes = [form.front(&first), sized(form.replicated, 1), vec![delta_ms], form.data(&data)].concat();
        let packet = form.packet(1, 2, &[bytes]);
        let read = DataPacket::read(&packet).unwrap();
        let expected: Vec<_> = (0..).zip(&parts).map(|(place, part): (u32, _)| {
            let presentation_ms = kept(form.offset, presentation_ms).wrapping_add(place * u32::from(delta_ms));
            let of = ObjectFields { bytes: part.len() as u32, presentation_ms };
            let object = kept(form.object, object).wrapping_add(place);
            DataPayload { stream: 9, is_key, object, offset: 0, of: Some(of), data: part }
        }).collect();
        prop_assert_eq!(read.payloads, expected);
        prop_assert_eq!(read.padding_bytes, form.padded());
        // Each is complete.
        let mut assembler = ObjectAssembler::default();
        let read = DataPacket::read(&packet).unwrap();
        let objects = read.payloads.iter().filter_map(|payload| assembler.push(payload)).count();
        prop_assert_eq!((objects, assembler.given_up()), (parts.len(), 0));
    }
}

/// Every combination of length types once, in packets with fields that all fit.
#[test]
fn all_combinations_of_length_types_are_read() {
    let of = ObjectFields { bytes: 250, presentation_ms: 70_000 };
    let payload = DataPayload { stream: 5, is_key: true, object: 201, offset: 99, of: Some(of), data: &[] };
    let payloads = [(payload, vec![1; 90]), (DataPayload { is_key: false, ..payload }, vec![2; 30])];
    let mut tried = 0;
    for types in 0..1u32 << 14 {
        let two = |place: u32| (types >> (2 * place)) as u8 & 3;
        let form = Form {
            correction_bytes: Some(2),
            packet_length: two(0),
            sequence: two(1),
            padding: two(2),
            object: two(3),
            offset: two(4),
            replicated: two(5),
            payload_length: Some(two(6)).filter(|&length_type| length_type > 0),
            padding_bytes: 3,
        };
        // Without its length nothing is replicated.
        if form.replicated == 0 {
            continue;
        }
        let (packet, expected) = made(&form, 123_456, 789, &payloads);
        assert_eq!(DataPacket::read(&packet).unwrap(), expected, "{form:?}");
        tried += 1;
    }
    assert_eq!(tried, 3 << 12);
}

#[test]
fn a_packet_says_of_which_stream_and_whether_of_key_frames_it_is() {
    let payload = |stream, is_key| DataPayload { stream, is_key, object: 0, offset: 0, of: None, data: &[] };
    let packet = |payloads: &[DataPayload<'static>]| DataPacket {
        payloads: payloads.to_vec(),
        ..DataPacket::default()
    };
    let of_one = packet(&[payload(3, true), payload(3, false)]);
    assert_eq!((of_one.stream(), of_one.is_key()), (Some(3), false));
    let of_two = packet(&[payload(3, true), payload(4, true)]);
    assert_eq!((of_two.stream(), of_two.is_key()), (None, true));

    let mut selection = StreamSelection::of(&[4]);
    assert!(!selection.takes(&of_one) && selection.takes(&of_two));
    selection.set(3, ThinningLevel::KeyFrames);
    assert!(selection.takes(&of_one) && !selection.takes(&packet(&[payload(3, false)])));
    selection.set(4, ThinningLevel::Nothing);
    assert!(!selection.takes(&packet(&[payload(4, true)])));
    assert_eq!(
        [0, 1, 2, 3].map(|number| ThinningLevel::new(number).map(ThinningLevel::get)),
        [Some(0), Some(1), Some(2), None]
    );
}
