use super::*;
use crate::mms::ThinningLevel;

/// Returns the media objects of one stream with their times from the beginning on, which must stay the same.
/// All of sound, which the second stream of an input is, become key frames.
fn of_stream(objects: &[Written], stream: u8, preroll_ms: u32) -> Vec<(u32, bool, &[u8])> {
    let of = objects.iter().filter(|object| object.stream == stream);
    of.map(|object| (object.presentation_ms - preroll_ms, object.is_key, &object.data[..])).collect()
}

proptest! {
    #[test]
    fn every_media_object_comes_through(
        low in any_objects(25, 500), high in any_objects(25, 1500), packet_bytes in 128..2000u32,
        preroll_ms in 1000..9000u32,
    ) {
        let inputs = [&low, &high].map(|objects| file(&[video(1), audio(2)], 3000, 800, &packets_of(objects, 150)));
        // Both of both, but those that nothing is in.
        let has = |objects: &[Written], stream| objects.iter().any(|object| object.stream == stream);
        let streams: Vec<(usize, u8)> = [(0, 1), (0, 2), (1, 1), (1, 2)].into_iter()
            .filter(|&(input, stream)| has([&low, &high][input], stream)).collect();
        let taken = |input: usize| {
            let of = streams.iter().filter(|&&(place, _)| place == input);
            MultiplexInput { file: &inputs[input], streams: Some(of.map(|&(_, stream)| stream).collect()) }
        };
        let id = Guid(*b"a name of a file");
        let settings = MultiplexSettings { id, created_100ns: 5, packet_bytes, preroll_ms };
        let made = multiplex(&[taken(0), taken(1)], &settings).unwrap();
        let read = Asf::read(&made).unwrap();
        prop_assert_eq!(read.cut, None);
        let found = read.objects(&made).unwrap();
        prop_assert_eq!(found.incomplete, 0);
        let found = written(&found);
        for (number, &(input, stream)) in (1..).zip(&streams) {
            let mut expected = of_stream([&low, &high][input], stream, 3000);
            expected.iter_mut().for_each(|object| object.1 |= stream == 2);
            prop_assert_eq!(of_stream(&found, number, preroll_ms), expected);
        }

        // The header's content.
        let header = &read.header;
        prop_assert_eq!((header.file.id, header.file.file_bytes), (id, made.len() as u64));
        prop_assert_eq!((header.file.preroll_ms, header.file.packets), (preroll_ms.into(), read.packet_count));
        prop_assert_eq!(read.packet_bytes, packet_bytes);
        let numbers: Vec<u8> = (1..=streams.len() as u8).collect();
        prop_assert_eq!(header.streams.iter().map(|stream| stream.number).collect::<Vec<_>>(), numbers.clone());
        prop_assert_eq!(header.extended.iter().map(|stream| stream.number).collect::<Vec<_>>(), numbers.clone());
        let sum: u32 = numbers.iter().map(|&number| header.bit_rate_bps(number).unwrap()).sum();
        prop_assert_eq!(header.file.max_bit_rate_bps, sum);
        // The first is the plain object, which occurs once.
        let advanced: Vec<_> = header.exclusions.iter().map(|exclusion| exclusion.is_advanced).collect();
        prop_assert_eq!(&advanced, &[false, true][..advanced.len()]);
        for exclusion in &header.exclusions {
            prop_assert_eq!(exclusion.kind, Guid::EXCLUSIVE_BY_BIT_RATE);
            let kind = header.stream(exclusion.streams[0]).unwrap().kind;
            let all = header.streams.iter().filter(|stream| stream.kind == kind).map(|stream| stream.number);
            prop_assert_eq!(&exclusion.streams, &all.collect::<Vec<_>>());
        }

        // Packets of one stream in the order in which they are sent, before they are needed.
        let packets: Vec<_> = read.packets(&made).map(|packet| DataPacket::read(packet).unwrap()).collect();
        prop_assert!(packets.is_sorted_by_key(|packet| packet.send_ms));
        for packet in &packets {
            prop_assert!(packet.stream().is_some());
            for payload in &packet.payloads {
                prop_assert!(packet.send_ms < payload.of.unwrap().presentation_ms);
                prop_assert_eq!(payload.is_key, packet.is_key());
            }
        }
        let ends = u64::from(packets.last().unwrap().send_ms) * 10_000;
        prop_assert!(header.file.send_100ns >= ends);
    }

    /// With any streams left out, the selected ones are whole.
    #[test]
    fn streams_can_be_left_out_and_thinned(
        objects in any_objects(40, 900), levels in prop::array::uniform2(0..3u8),
    ) {
        let has = |stream| objects.iter().any(|object| object.stream == stream);
        prop_assume!(has(1) && has(2));
        let input = file(&[video(1), audio(2)], 3000, 800, &packets_of(&objects, 150));
        let settings = MultiplexSettings { preroll_ms: 3000, packet_bytes: 300, ..Default::default() };
        let made = multiplex(&[MultiplexInput { file: &input, streams: None }], &settings).unwrap();
        let mut selection = StreamSelection::default();
        for (stream, level) in (1..).zip(levels) {
            selection.set(stream, ThinningLevel::new(level.into()).unwrap());
        }
        let (mut assembler, mut found) = (ObjectAssembler::default(), Vec::new());
        for packet in Asf::read(&made).unwrap().packets(&made) {
            // As it is sent.
            let packet = without_padding(packet).unwrap();
            let packet = DataPacket::read(&packet).unwrap();
            if selection.takes(&packet) {
                let objects = packet.payloads.iter().filter_map(|payload| assembler.push(payload));
                found.extend(objects.map(|object| (object.stream, object.presentation_ms, object.data.into_owned())));
            }
        }
        prop_assert_eq!((assembler.given_up(), assembler.open()), (0, 0));
        for (stream, level) in (1..).zip(levels) {
            let goes = |object: &&Written| object.stream == stream && (level == 0 || level == 1 && (object.is_key || stream == 2));
            let of = objects.iter().filter(goes);
            let expected: Vec<_> = of.map(|object| (stream, object.presentation_ms, object.data.clone())).collect();
            let of_stream: Vec<_> = found.iter().filter(|object| object.0 == stream).cloned().collect();
            prop_assert_eq!(of_stream, expected);
        }
    }
}

#[test]
fn inputs_that_make_no_file_are_told() {
    let objects = [Written { stream: 1, presentation_ms: 3000, is_key: true, data: vec![7; 900] }];
    let packets = packets_of(&objects, 300);
    let whole = file(&[video(1), audio(2)], 3000, 1000, &packets);
    let of = |file, streams: Option<&[u8]>| MultiplexInput { file, streams: streams.map(<[u8]>::to_vec) };
    let error = |inputs: &[MultiplexInput<'_>], settings| multiplex(inputs, &settings).unwrap_err();
    let settings = MultiplexSettings::default();
    assert_eq!(error(&[], settings), MultiplexError::Streams(0));
    assert!(multiplex(&[of(&whole, Some(&[1]))], &settings).is_ok());
    // Nothing is in the second, and there is no third.
    let none = |stream| MultiplexError::NoStream { input: 0, stream };
    assert_eq!(error(&[of(&whole, None)], settings), none(2));
    assert_eq!(error(&[of(&whole, Some(&[1, 3]))], settings), none(3));
    let many = vec![of(&whole, Some(&[1])); 128];
    assert_eq!(error(&many, settings), MultiplexError::Streams(128));
    assert_eq!(Asf::read(&multiplex(&many[1..], &settings).unwrap()).unwrap().header.streams.len(), 127);
    for packet_bytes in [127, 65_536] {
        let settings = MultiplexSettings { packet_bytes, ..settings };
        assert_eq!(error(&[of(&whole, Some(&[1]))], settings), MultiplexError::PacketBytes(packet_bytes));
    }
    let cut =
        Problem { at: whole.len() as u64 - 1, fault: Fault::Truncated { what: "the media", missing: 1 } };
    let first = of(&whole, Some(&[1]));
    let second = of(&whole[..whole.len() - 1], Some(&[1]));
    assert_eq!(error(&[first, second], settings), MultiplexError::Input { input: 1, problem: cut });
    let part = file(&[video(1)], 3000, 1000, &packets_of(&objects, 100)[1..]);
    assert_eq!(error(&[of(&part, None)], settings), MultiplexError::Incomplete { input: 0, objects: 1 });
    let settings = MultiplexSettings { preroll_ms: 0, ..settings };
    let late = MultiplexError::Preroll { input: 0, stream: 1, preroll_ms: 0 };
    assert_eq!(error(&[of(&whole, Some(&[1]))], settings), late);
    assert_eq!(late.to_string(), "input 0, stream 1: with 0 ms of preroll it comes too late at any rate");
}
