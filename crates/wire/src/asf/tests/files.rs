use super::*;

proptest! {
    #[test]
    fn a_file_that_is_written_is_read(
        objects in any_objects(30, 400), trailer in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let packets = packets_of(&objects, 120);
        let whole = file(&[video(1), audio(2)], 3000, 500, &packets);
        // An index and bytes that are no object.
        let file = [&whole[..], &Guid::SIMPLE_INDEX.0, &24u64.to_le_bytes(), &trailer].concat();
        let read = Asf::read(&file).unwrap();
        prop_assert_eq!((read.packet_count, read.packet_bytes, read.cut), (packets.len() as u64, 500, None));
        prop_assert_eq!(read.head(&file).len() + 500 * packets.len(), whole.len());
        let found: Vec<_> =
            read.packets(&file).map(|packet| DataPacket::read(packet).unwrap().payloads).collect();
        prop_assert_eq!(found, packets.iter().map(|packet| packet.payloads.clone()).collect::<Vec<_>>());
        let found = read.objects(&file).unwrap();
        prop_assert_eq!((written(&found), found.incomplete), (objects, 0));
    }

    /// Wherever a file ends: before the media it is refused, within them its whole packets are kept and `cut`
    /// is set.
    #[test]
    fn a_file_that_is_cut_short_says_so(objects in any_objects(10, 300)) {
        let packets = packets_of(&objects, 120);
        let file = file(&[video(1), audio(2)], 3000, 500, &packets);
        let media = file.len() - 500 * packets.len();
        for end in (0..file.len()).filter(|end| end.abs_diff(media) < 60 || end % 41 == 0) {
            match Asf::read(&file[..end]) {
                Err(problem) => {
                    prop_assert!(end < media, "{} of {}: {}", end, media, problem);
                    prop_assert!(problem.at <= end as u64);
                }
                Ok(read) => {
                    prop_assert!(end >= media);
                    prop_assert_eq!(read.packet_count as usize, (end - media) / 500);
                    let missing = (file.len() - end) as u64;
                    let cut = Problem { at: end as u64, fault: Fault::Truncated { what: "the media", missing } };
                    prop_assert_eq!(read.cut, Some(cut));
                }
            }
        }
    }

    /// Any bytes, and any damage to a good file, give a file that holds together or a problem within it.
    #[test]
    fn nothing_panics(
        objects in any_objects(10, 300),
        hits in prop::collection::vec((any::<Index>(), any::<u8>()), 0..8),
        noise in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut file = file(&[video(1), audio(2)], 3000, 500, &packets_of(&objects, 120));
        for (index, byte) in hits {
            let at = index.index(file.len());
            file[at] = byte;
        }
        for file in [file, noise.clone(), [&Guid::HEADER.0[..], &noise].concat()] {
            holds_together(&file);
        }
    }
}

fn holds_together(file: &[u8]) {
    let read = match Asf::read(file) {
        Err(problem) => return assert!(problem.at <= file.len() as u64, "{problem}"),
        Ok(read) => read,
    };
    assert_eq!(read.packets(file).len() as u64, read.packet_count);
    match read.objects(file) {
        Err(problem) => assert!(problem.at <= file.len() as u64, "{problem}"),
        Ok(found) => {
            let bytes: usize = found.objects.iter().map(|object| object.data.len()).sum();
            assert!(bytes <= file.len());
        }
    }
    for packet in read.packets(file) {
        let _ = without_padding(packet);
    }
}

#[test]
fn a_broadcast_goes_on_to_the_end() {
    let objects = [Written { stream: 1, presentation_ms: 3000, is_key: true, data: vec![7; 900] }];
    let packets = packets_of(&objects, 300);
    let mut file = file(&[video(1)], 3000, 1000, &packets);
    let data = file.len() - 1000 * packets.len() - 50;
    file[data + 16..data + 24].fill(0);
    file[data + 40..data + 48].fill(0);
    let read = Asf::read(&file).unwrap();
    assert_eq!((read.packet_count, read.cut), (packets.len() as u64, None));
    let read = Asf::read(&file[..file.len() - 1]).unwrap();
    assert_eq!(read.packet_count, packets.len() as u64 - 1);
    assert_eq!(read.cut.unwrap().fault, Fault::Truncated { what: "a data packet", missing: 1 });

    // Its head alone, as of a broadcast that is written while it is received.
    let streams = vec![video(1)];
    let (flags, bytes) = (FLAG_BROADCAST, 1000);
    let properties =
        FileProperties { flags, min_packet_bytes: bytes, max_packet_bytes: bytes, ..Default::default() };
    let head = write_head(&Header { file: properties, streams, ..Header::default() }).unwrap();
    let live = [head, write_packet(&packets[0], PacketSize::Fixed(1000)).unwrap()].concat();
    assert_eq!(written(&Asf::read(&live).unwrap().objects(&live).unwrap()), objects);
}

#[test]
fn media_objects_of_which_parts_are_missing_are_counted() {
    let objects = [Written { stream: 1, presentation_ms: 3000, is_key: true, data: vec![7; 900] }];
    let mut packets = packets_of(&objects, 100);
    packets.remove(1);
    let file = file(&[video(1)], 3000, 1000, &packets);
    let found = Asf::read(&file).unwrap().objects(&file).unwrap();
    assert_eq!((found.objects.len(), found.incomplete), (0, 1));
}

/// A fuzz target that starts from refusals alone would try little else.
#[test]
fn the_seeds_of_the_fuzz_target_are_files() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/asf");
    let mut files = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let seed = std::fs::read(&path).unwrap();
        let read = Asf::read(&seed).unwrap_or_else(|problem| panic!("{}: {problem}", path.display()));
        assert!(!read.objects(&seed).unwrap().objects.is_empty(), "{}", path.display());
        files += 1;
    }
    assert!(files >= 4);
}
