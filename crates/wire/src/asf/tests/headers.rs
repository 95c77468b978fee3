use super::*;

fn any_guid() -> impl Strategy<Value = Guid> {
    any::<[u8; 16]>().prop_map(Guid)
}

/// Bytes and numbers of a stream's description.
fn any_bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}

prop_compose! {
    fn any_properties()(
        id in any_guid(), long in any::<[u64; 6]>(), short in any::<[u32; 4]>(),
    ) -> FileProperties {
        let [file_bytes, created_100ns, packets, play_100ns, send_100ns, preroll_ms] = long;
        let [flags, min_packet_bytes, max_packet_bytes, max_bit_rate_bps] = short;
        FileProperties {
            id, file_bytes, created_100ns, packets, play_100ns, send_100ns, preroll_ms, flags, min_packet_bytes,
            max_packet_bytes, max_bit_rate_bps,
        }
    }
}

prop_compose! {
    fn any_stream()(
        kind in any_guid(), error_correction in any_guid(), time_offset_100ns: u64, is_encrypted: bool,
        type_specific in any_bytes(60), correction_data in any_bytes(20),
    ) -> StreamProperties {
        StreamProperties {
            number: 1, kind, error_correction, time_offset_100ns, is_encrypted, type_specific, correction_data,
        }
    }
}

prop_compose! {
    fn any_extended()(
        long in any::<[u64; 3]>(), short in any::<[u32; 8]>(), language: u16,
        names in prop::collection::vec((any::<u16>(), any::<String>()), 0..3),
        extensions in prop::collection::vec((any_guid(), any::<u16>(), any_bytes(9)), 0..3),
    ) -> ExtendedStreamProperties {
        let ([start_ms, end_ms, frame_100ns], [a, b, c, d, e, f, max_object_bytes, flags]) = (long, short);
        let bucket = |rate_bps, buffer_ms, initial_ms| LeakyBucket { rate_bps, buffer_ms, initial_ms };
        let name = |(language, name)| StreamName { language, name };
        let extension = |(system, bytes, description)| PayloadExtension { system, bytes, description };
        ExtendedStreamProperties {
            number: 1, start_ms, end_ms, average: bucket(a, b, c), peak: bucket(d, e, f), max_object_bytes, flags,
            language, frame_100ns, names: names.into_iter().map(name).collect(),
            extensions: extensions.into_iter().map(extension).collect(), properties: None,
        }
    }
}

prop_compose! {
    fn any_header()(
        file in any_properties(),
        mut streams in prop::collection::vec(any_stream(), 1..6),
        mut extended in prop::collection::vec(any_extended(), 0..6),
        mut hidden in prop::collection::vec(any_stream(), 0..6),
        rates in prop::collection::vec((1..128u8, any::<u32>()), 0..6),
        exclusions in prop::collection::vec(
            (any_guid(), any::<bool>(), prop::collection::vec(1..128u8, 0..5)), 0..4),
        others in prop::collection::vec((any_guid(), any::<bool>(), any_bytes(50)), 0..5),
    ) -> Header {
        (1..).zip(&mut streams).for_each(|(number, stream)| stream.number = number);
        for (number, extended) in (100..).zip(&mut extended) {
            extended.number = number;
            extended.properties = hidden.pop().map(|stream| StreamProperties { number, ..stream });
        }
        let rate = |(stream, average_bps)| StreamBitRate { stream, average_bps };
        let exclusion = |(kind, is_advanced, streams)| MutualExclusion { kind, is_advanced, streams };
        let other = |(id, is_extension, content)| OpaqueObject { id, is_extension, content };
        let mut exclusions: Vec<_> = exclusions.into_iter().map(exclusion).collect();
        let mut others: Vec<_> = others.into_iter().map(other).collect();
        // The extension is behind the other objects.
        exclusions.sort_by_key(|one| one.is_advanced);
        others.sort_by_key(|one| one.is_extension);
        Header { file, streams, extended, bit_rates: rates.into_iter().map(rate).collect(), exclusions, others }
    }
}

proptest! {
    #[test]
    fn a_header_that_is_written_is_read(header in any_header(), behind in any_bytes(30)) {
        let head = write_head(&header).unwrap();
        let file = [&head[..], &behind].concat();
        let (read, end) = Header::read(&file).unwrap();
        prop_assert_eq!(&read, &header);
        // The Data Object is behind it, with the file's name and number of packets.
        prop_assert!(head[end..].starts_with(&Guid::DATA.0));
        prop_assert_eq!(head.len() - end, 50);
        prop_assert_eq!(&head[end + 24..end + 40], &header.file.id.0);
        prop_assert_eq!(&head[end + 40..end + 48], &header.file.packets.to_le_bytes());
        for stream in header.all_streams() {
            prop_assert_eq!(read.stream(stream.number), Some(stream));
        }
        for rate in &header.bit_rates {
            prop_assert!(read.bit_rate_bps(rate.stream).is_some());
        }
    }

    /// With any part of it present: it is read or refused, within the bytes present.
    #[test]
    fn a_header_that_is_cut_short_is_refused(header in any_header(), end in any::<Index>()) {
        let head = write_head(&header).unwrap();
        let end = end.index(head.len() - 50);
        let problem = Header::read(&head[..end]).unwrap_err();
        prop_assert!(problem.at <= end as u64);
    }
}

#[test]
fn what_a_stream_is_is_told() {
    let format = video(1).video_format().unwrap();
    assert_eq!((format.width, format.height, format.codec), (176, 144, *b"WMV2"));
    assert_eq!((format.pixel_bits, &format.codec_data[..]), (24, &[1; 4][..]));
    let format = audio(1).audio_format().unwrap();
    assert_eq!((format.codec, format.channels, format.sample_rate_hz), (0x161, 1, 22_050));
    assert_eq!((format.byte_rate, format.block_bytes, format.codec_data.len()), (4000, 186, 10));
    assert_eq!((video(1).audio_format(), audio(1).video_format()), (None, None));
    let short = StreamProperties { type_specific: vec![0; 20], ..video(1) };
    assert_eq!(short.video_format(), None);
}

#[test]
fn names_of_objects_are_as_in_the_specification() {
    assert_eq!(Guid::HEADER.0, *b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c");
    assert_eq!(Guid::HEADER.to_string(), "Header Object");
    assert_eq!(Guid(*b"0123456789abcdef").to_string(), "object 33323130-3534-3736-3839-616263646566");
}
