use super::*;

/// The parts of a file, chunk by chunk.
#[derive(Clone, Debug)]
struct Written {
    properties: FileProperties,
    description: ContentDescription,
    streams: Vec<StreamProperties>,
    packets: Vec<Sent>,
}

prop_compose! {
    fn any_file()(
        properties in any_properties(),
        texts in [any_text(40), any_text(300), any_text(40), any_text(40)],
        mut streams in proptest::collection::vec(any_stream(), 1..6),
        mut packets in proptest::collection::vec(any_sent(), 0..30),
    ) -> Written {
        streams.sort_by_key(|stream| stream.number);
        streams.dedup_by_key(|stream| stream.number);
        for packet in &mut packets {
            packet.stream = streams[usize::from(packet.stream) % streams.len()].number;
        }
        let [title, author, copyright, comment] = texts;
        let description = ContentDescription { title, author, copyright, comment };
        Written { properties, description, streams, packets }
    }
}

impl Written {
    fn bytes(&self) -> Vec<u8> {
        let streams: Vec<u8> = self.streams.iter().flat_map(stream).collect();
        let head = [beginning(3), properties(&self.properties), description(&self.description), streams];
        [head.concat(), data(&self.packets)].concat()
    }
}

fn packets_of(read: &RealMedia, file: &[u8]) -> Vec<Sent> {
    let packet = |packet: &Packet| Sent {
        stream: packet.stream,
        timestamp_ms: packet.timestamp_ms,
        rule: packet.rule,
        group: packet.group,
        flags: packet.flags,
        payload: packet.payload(file).to_vec(),
    };
    read.packets.iter().map(packet).collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read(written in any_file(), trailer in proptest::collection::vec(any::<u8>(), 0..9)) {
        // An index, an unknown chunk, and bytes that are no chunk.
        let behind = [chunk(b"INDX", &[0; 10]), chunk(b"NOVO", b"what it is"), trailer].concat();
        let file = [written.bytes(), behind].concat();
        let read = RealMedia::read(&file).unwrap();
        prop_assert_eq!(packets_of(&read, &file), written.packets);
        prop_assert_eq!(read.properties, written.properties);
        prop_assert_eq!(read.description, written.description);
        prop_assert_eq!(read.streams, written.streams);
        prop_assert_eq!(read.cut, None);
    }

    /// Wherever a file ends: before the media it is refused, within them its whole packets are kept and `cut`
    /// has the place.
    #[test]
    fn a_file_that_is_cut_short_says_so(written in any_file()) {
        let file = written.bytes();
        let whole = RealMedia::read(&file).unwrap();
        let media = file.len() - data(&written.packets).len();
        // All of the media's beginning, and some of the rest.
        let ends = (0..file.len()).filter(|end| end.abs_diff(media) < 60 || end % 13 == 0);
        for end in ends {
            match RealMedia::read(&file[..end]) {
                Err(problem) => {
                    prop_assert!(end < media + 10, "{} of {}: {}", end, media, problem);
                    prop_assert!(problem.at <= end as u64);
                }
                Ok(read) => {
                    prop_assert!(end >= media + 10);
                    let cut = read.cut.unwrap();
                    prop_assert!(matches!(cut.fault, Fault::Truncated { .. }), "{}", cut);
                    prop_assert!(cut.at <= end as u64);
                    let ends = |packet: &&Packet| packet.offset + u64::from(packet.bytes) <= end as u64;
                    let expected: Vec<Packet> = whole.packets.iter().take_while(ends).copied().collect();
                    prop_assert_eq!(read.packets, expected);
                }
            }
        }
    }

    /// Any bytes, and any damage to a good file, give a file that holds together or a problem within it.
    #[test]
    fn nothing_panics(
        written in any_file(),
        hits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        noise in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut file = written.bytes();
        for (index, byte) in hits {
            let at = index.index(file.len());
            file[at] = byte;
        }
        for file in [file, noise.clone(), [b".RMF".to_vec(), noise].concat()] {
            holds_together(&file);
        }
    }
}

fn holds_together(file: &[u8]) {
    match RealMedia::read(file) {
        Err(problem) => assert!(problem.at <= file.len() as u64, "{problem}"),
        Ok(read) => {
            assert!(read.packets.len() <= file.len() / 12);
            assert!((1..=MOST_STREAMS).contains(&read.streams.len()));
            for packet in &read.packets {
                assert_eq!(packet.payload(file).len(), usize::from(packet.bytes));
                assert!(read.stream(packet.stream).is_some());
            }
            assert!(read.packets.is_sorted_by_key(|packet| packet.offset));
        }
    }
}

#[test]
fn what_streams_are_is_told() {
    let of_video = video(3);
    assert_eq!(
        of_video.video_format(),
        Some(VideoFormat { codec: *b"RV20", width: 176, height: 144, frame_rate_65536: 25 << 16 })
    );
    assert!(!of_video.is_logical());
    let sound = StreamProperties { type_specific: b".ra\xfd\0\x04".to_vec(), ..video(0) };
    assert_eq!(sound.video_format(), None);
    let group = StreamProperties { mime_type: "logical-audio/x-pn-multirate-realaudio".into(), ..video(0) };
    assert!(group.is_logical());
}

#[test]
fn a_recording_that_nobody_finished_goes_on_to_the_end() {
    let packets = [sent(0, 0, b"one"), sent(0, 40, b"two")];
    let whole = small(&packets);
    let counted = 10 + 8 + packets.iter().map(|sent| packet(sent).len()).sum::<usize>();
    let mut open = whole.clone();
    let at = whole.len() - counted;
    open[at + 4..at + 8].copy_from_slice(&18u32.to_be_bytes());
    open[at + 10..at + 14].fill(0);
    for trailer in [&[][..], &[0; 8]] {
        let file = [&open[..], trailer].concat();
        let read = RealMedia::read(&file).unwrap();
        assert_eq!((packets_of(&read, &file), read.cut), (packets.to_vec(), None));
    }
    let read = RealMedia::read(&open[..open.len() - 1]).unwrap();
    assert_eq!(read.packets.len(), 1);
    assert_eq!(read.cut.unwrap().fault, Fault::Truncated { what: "a media packet", missing: 1 });

    // Packets that are not counted, in a chunk with counted bytes.
    let mut uncounted = whole;
    uncounted[at + 10..at + 14].fill(0);
    let read = RealMedia::read(&uncounted).unwrap();
    assert_eq!((packets_of(&read, &uncounted), read.cut), (packets.to_vec(), None));
}

#[test]
fn media_may_be_in_several_chunks() {
    let (first, second) = (sent(0, 0, b"one"), sent(0, 40, b"two"));
    let file = [small(std::slice::from_ref(&first)), data(std::slice::from_ref(&second))].concat();
    let read = RealMedia::read(&file).unwrap();
    assert_eq!(packets_of(&read, &file), [first, second]);
}

/// A fuzz target that starts from refusals alone would try little else.
#[test]
fn the_seeds_of_the_fuzz_target_are_files() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/rm");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let seed = std::fs::read(&path).unwrap();
        if path.extension().is_some_and(|extension| extension == "rm") {
            let read =
                RealMedia::read(&seed).unwrap_or_else(|problem| panic!("{}: {problem}", path.display()));
            assert!(!read.packets.is_empty(), "{}", path.display());
            files += 1;
        } else {
            OpaqueData::read(&seed).unwrap();
        }
    }
    assert!(files >= 4);
}
