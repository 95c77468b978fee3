//! Written files are read again as the same.

use super::*;

proptest! {
    #[test]
    fn a_file_that_is_written_packet_by_packet_is_read(
        mut streams in prop::collection::vec(any_stream(), 1..5), title in any_text(300), duration_ms: u32,
        packets in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>(), any::<bool>(),
            prop::collection::vec(any::<u8>(), 0..80)), 0..20),
    ) {
        for (number, stream) in (0..).zip(&mut streams) {
            stream.number = number;
        }
        let mut file = write_head(&title, duration_ms, &streams);
        let mut expected = Vec::new();
        for (stream, at_ms, is_key, payload) in packets {
            let stream = stream.index(streams.len()) as u16;
            file.extend(write_packet(stream, at_ms, is_key, &payload).unwrap());
            expected.push((stream, at_ms, is_key, payload));
        }
        let read = RealMedia::read(&file).unwrap();
        let found: Vec<_> = read.packets.iter().map(|packet| {
            (packet.stream, packet.timestamp_ms, packet.is_key(), packet.payload(&file).to_vec())
        }).collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(&read.streams, &streams);
        prop_assert_eq!(read.description.title, title);
        prop_assert_eq!((read.properties.duration_ms, read.properties.streams), (duration_ms, streams.len() as u16));
        let data_at = read.properties.data_offset as usize;
        prop_assert_eq!(&file[data_at..data_at + 4], b"DATA");
        prop_assert_eq!(read.cut, None);
    }
}

#[test]
fn a_payload_that_no_packet_holds_is_refused() {
    assert!(write_packet(0, 0, true, &[0; MOST_PAYLOAD_BYTES]).is_ok());
    assert!(write_packet(0, 0, true, &[0; MOST_PAYLOAD_BYTES + 1]).is_err());
}
