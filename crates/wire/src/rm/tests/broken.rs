use super::*;

fn fault(file: &[u8]) -> Fault {
    RealMedia::read(file).unwrap_err().fault
}

fn head() -> Vec<u8> {
    [beginning(3), properties(&FileProperties::default())].concat()
}

#[test]
fn what_is_something_else_is_told() {
    assert_eq!(fault(b""), Fault::NotRealMedia);
    assert_eq!(fault(b"\0\0\0\x18ftypisom"), Fault::NotRealMedia);
    assert_eq!(fault(b".ra\xfd\0\x04"), Fault::RealAudio);
}

#[test]
fn chunks_that_contradict_themselves_are_told_by_name_and_place() {
    let problem = |bytes: &[u8]| RealMedia::read(&[beginning(3), bytes.to_vec()].concat()).unwrap_err();
    let said = problem(b"PROP\0\0\0\x09\0\0").to_string();
    assert_eq!(said, "at byte 18: chunk 'PROP' declares 9 B, fewer than its header");
    let said = problem(b"PROP\0\0\0\x0c\0\0\0\0").to_string();
    assert_eq!(said, "at byte 28: chunk 'PROP' ends 2 B before its maximum bit rate does");
    let said = problem(b"PR\xff\"\xff\xff\xff\xff\0\0\0\0").to_string();
    assert!(said.starts_with("at byte 18: 4294967283 B of a chunk are missing"), "{said}");
    let said = problem(b"PROP\0\0").to_string();
    assert!(said.starts_with("at byte 18: 4 B of a chunk's header are missing"), "{said}");
    let said = problem(b"PROP\0\0\0\x0c\0\x01\0\0").to_string();
    assert_eq!(said, "at byte 18: chunk 'PROP' has version 1 instead of 0");

    // Type-specific data, a name, and texts that go on beyond their chunk.
    let mut long = stream(&video(0));
    let last = long.len() - video(0).type_specific.len();
    long[last - 4..last].fill(0xff);
    let missing = u64::from(u32::MAX) - video(0).type_specific.len() as u64;
    let field = "type-specific data";
    assert_eq!(problem(&long).fault, Fault::Field { chunk: ChunkName(*b"MDPR"), field, missing });
    let mut long = description(&ContentDescription::default());
    long[10..12].fill(0xff);
    let (chunk, field) = (ChunkName(*b"CONT"), "title");
    assert_eq!(problem(&long).fault, Fault::Field { chunk, field, missing: 0xffff - 6 });
}

#[test]
fn streams_are_there_few_and_told_apart() {
    let with = |streams: &[Vec<u8>]| [head(), streams.concat(), data(&[])].concat();
    let name = |name: &[u8; 4]| ChunkName(*name);
    assert_eq!(fault(&with(&[])), Fault::Missing(name(b"MDPR")));
    assert_eq!(fault(&[beginning(3), stream(&video(0)), data(&[])].concat()), Fault::Missing(name(b"PROP")));
    assert_eq!(fault(&[head(), stream(&video(0))].concat()), Fault::Missing(name(b"DATA")));
    assert_eq!(fault(&[head(), head()].concat()), Fault::Repeated(name(b".RMF")));
    let twice = [head(), properties(&FileProperties::default())].concat();
    assert_eq!(fault(&twice), Fault::Repeated(name(b"PROP")));
    assert_eq!(fault(&with(&[stream(&video(7)), stream(&video(7))])), Fault::SameStream(7));
    let many = |count: u16| with(&(0..count).map(|number| stream(&video(number))).collect::<Vec<_>>());
    assert_eq!(RealMedia::read(&many(MOST_STREAMS as u16)).unwrap().streams.len(), MOST_STREAMS);
    assert_eq!(fault(&many(1000)), Fault::TooManyStreams { limit: MOST_STREAMS });
}

#[test]
fn packets_that_contradict_themselves_are_told_by_place() {
    let good = sent(0, 0, b"good");
    let of = |bad: &[u8]| {
        let mut content = [words(&[2, 0]), packet(&good), bad.to_vec()].concat();
        content.resize(content.len() + 20, 0);
        let whole = [head(), stream(&video(0)), chunk(b"DATA", &content)].concat();
        let at = whole.len() - 20 - bad.len();
        let problem = RealMedia::read(&whole).unwrap_err();
        assert_eq!(problem.at, at as u64);
        problem.fault
    };
    assert_eq!(of(&[0, 0, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0]), Fault::PacketLength(11));
    assert_eq!(of(&[0, 0, 0, 0]), Fault::PacketLength(0));
    assert_eq!(of(&[0, 1, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0]), Fault::PacketLength(12));
    assert_eq!(of(&[0, 2, 0, 13, 0, 0, 0, 0, 0, 0, 0, 0]), Fault::PacketVersion(2));
    assert_eq!(of(&[0, 0, 0, 12, 0, 9, 0, 0, 0, 0, 0, 0]), Fault::UnknownStream(9));
}

#[test]
fn a_media_chunk_may_have_fewer_packets_than_it_says() {
    let mut content = [words(&[3, 0]), packet(&sent(0, 0, b"one"))].concat();
    let file = [head(), stream(&video(0)), chunk(b"DATA", &content), chunk(b"INDX", &[0; 10])].concat();
    let read = RealMedia::read(&file).unwrap();
    assert_eq!(read.packets.len(), 1);
    assert_eq!(read.cut.unwrap().fault, Fault::FewerPackets { count: 3, taken: 1 });
    content.truncate(6);
    let file = [head(), stream(&video(0)), chunk(b"DATA", &content)].concat();
    let (chunk, field) = (ChunkName(*b"DATA"), "number of packets and next chunk");
    assert_eq!(fault(&file), Fault::Field { chunk, field, missing: 2 });
}
