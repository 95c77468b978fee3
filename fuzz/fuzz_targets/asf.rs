//! Any file is an ASF file that holds together or a problem within it; what its header says is written and read again; each
//! packet is the same without its padding; and what is made of it has all of its media objects.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_wire::asf::{
    Asf, DataPacket, Guid, Header, MultiplexInput, MultiplexSettings, multiplex, without_padding, write_head,
};

fuzz_target!(|file: &[u8]| {
    // The same bytes as one packet.
    packet(file);
    if let Ok((header, end)) = Header::read(file) {
        assert!(end <= file.len());
        let head = write_head(&header).expect("what was read has a place");
        let (again, _) = Header::read(&head).expect("our own");
        assert_eq!(write_head(&again).ok(), Some(head));
    }
    let read = match Asf::read(file) {
        Ok(read) => read,
        Err(problem) => return assert!(problem.at <= file.len() as u64),
    };
    assert_eq!(read.packets(file).len() as u64, read.packet_count);
    read.packets(file).for_each(packet);
    let found = match read.objects(file) {
        Ok(found) => found,
        Err(problem) => return assert!(problem.at <= file.len() as u64),
    };
    let bytes: usize = found.objects.iter().map(|object| object.data.len()).sum();
    assert!(bytes <= file.len());

    let settings = MultiplexSettings { packet_bytes: 300, ..MultiplexSettings::default() };
    let Ok(made) = multiplex(&[MultiplexInput { file, streams: None }], &settings) else { return };
    let again = Asf::read(&made).expect("our own");
    assert_eq!(again.cut, None);
    let again = again.objects(&made).expect("our own");
    assert_eq!(again.incomplete, 0);
    for (number, stream) in (1..).zip(read.header.all_streams()) {
        let before = found.objects.iter().filter(|object| object.stream == stream.number);
        // Of sound each becomes a key frame.
        let is_sound = stream.kind == Guid::AUDIO;
        let before = before.filter(|object| !object.data.is_empty());
        let before = before.map(|object| (object.is_key || is_sound, &object.data));
        let after = again.objects.iter().filter(|object| object.stream == number);
        assert!(before.eq(after.map(|object| (object.is_key, &object.data))));
    }
});

fn packet(bytes: &[u8]) {
    match DataPacket::read(bytes) {
        Err(problem) => assert!(problem.at <= bytes.len() as u64),
        Ok(packet) => {
            let Ok(stripped) = without_padding(bytes) else { return };
            let again = DataPacket::read(&stripped).expect("our own");
            assert_eq!((again.send_ms, again.payloads), (packet.send_ms, packet.payloads));
        }
    }
}
