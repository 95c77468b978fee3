use super::*;

proptest! {
    /// Interleaved pieces of streams reassemble to their originals at any lengths.
    #[test]
    fn pieces_give_the_media_objects(objects in any_objects(30, 300), most_bytes in 1..300usize) {
        let mut assembler = ObjectAssembler::default();
        let mut found = Vec::new();
        for packet in packets_of(&objects, most_bytes) {
            for payload in &packet.payloads {
                found.extend(assembler.push(payload).map(|object| object.data.into_owned()));
            }
        }
        let expected: Vec<_> = objects.iter().map(|object| object.data.clone()).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!((assembler.bytes(), assembler.open(), assembler.given_up()), (0, 0, 0));
    }

    /// With any loss, the output is whole, and contains nothing that was not sent.
    #[test]
    fn what_is_lost_spoils_its_own_media_object_alone(
        objects in any_objects(30, 300), lost in prop::collection::vec(any::<Index>(), 0..5),
    ) {
        let packets = packets_of(&objects, 90);
        let payloads: Vec<_> = packets.iter().flat_map(|packet| &packet.payloads).collect();
        let lost: Vec<usize> = lost.iter().map(|index| index.index(payloads.len())).collect();
        let mut assembler = ObjectAssembler::default();
        let came = (0..payloads.len()).filter(|place| !lost.contains(place));
        let found: Vec<_> = came.filter_map(|place| assembler.push(payloads[place])).collect();
        let spoilt = |number: usize| lost.iter().any(|&place| payloads[place].object == number as u32);
        let expected: Vec<_> = (0..objects.len()).filter(|&number| !spoilt(number)).collect();
        prop_assert_eq!(found.iter().map(|object| object.number as usize).collect::<Vec<_>>(), expected);
        for object in found {
            prop_assert_eq!(&object.data[..], &objects[object.number as usize].data[..]);
        }
    }
}

#[test]
fn what_is_announced_takes_no_memory() {
    let of = ObjectFields { bytes: MOST_OBJECT_BYTES, presentation_ms: 0 };
    let mut assembler = ObjectAssembler::default();
    for stream in 1..128 {
        let payload = DataPayload { stream, is_key: true, object: 0, offset: 0, of: Some(of), data: b"four" };
        assert_eq!(assembler.push(&payload), None);
        // The same again is not the next part.
        assert_eq!(assembler.push(&payload), None);
    }
    assert_eq!((assembler.bytes(), assembler.open(), assembler.given_up()), (127 * 4, 127, 127));
}

/// Parts that repeat nothing of their media object belong to that of the first.
#[test]
fn later_parts_may_say_nothing() {
    let of = ObjectFields { bytes: 8, presentation_ms: 5 };
    let first = DataPayload { stream: 1, is_key: true, object: 3, offset: 0, of: Some(of), data: b"four" };
    let second = DataPayload { offset: 4, of: None, ..first };
    let mut assembler = ObjectAssembler::default();
    assert_eq!(assembler.push(&first), None);
    assert_eq!(&assembler.push(&second).unwrap().data[..], b"fourfour");
    // Part of another media object, which is not whole either, or more than it has.
    for wrong in [DataPayload { object: 4, ..second }, DataPayload { data: b"fives", ..second }] {
        assert_eq!(assembler.push(&first), None);
        assert_eq!(assembler.push(&wrong), None);
    }
    assert_eq!((assembler.open(), assembler.given_up()), (0, 3));
}
