//! A file that ffmpeg made, and the same in packets of 600 and of 250 B, which ffmpeg reads in
//! `tests/media/test_realvideo_fragments.py`.
//!
//! ```text
//! ffmpeg -f lavfi -i testsrc2=size=96x64:rate=20 -f lavfi -i sine=frequency=440:sample_rate=44100 -t 1
//!     -pix_fmt yuv420p -c:v rv20 -g 10 -qscale:v 16 -c:a ac3 -b:a 32k -ac 1 -fflags +bitexact -flags +bitexact whole.rm
//! ```
//!
//! Where the fragments differ from those in the files, the current ones are written to `target/tmp`.

use std::path::Path;

use streamgauge_base::Chunk;

use super::*;

const WHOLE: &[u8] = include_bytes!("whole.rm");
const OF_600: &[u8] = include_bytes!("fragments-600.rm");
const OF_250: &[u8] = include_bytes!("fragments-250.rm");

fn payloads(file: &[u8], stream: u16) -> Vec<(Packet, Chunk)> {
    let read = RealMedia::read(file).unwrap();
    let of = read.packets.into_iter().filter(|packet| packet.stream == stream);
    of.map(|packet| (packet, Chunk::bytes(packet.payload(file)))).collect()
}

/// The frames of the first stream, with the packet that each is complete with.
fn frames(file: &[u8]) -> Vec<(u32, VideoFrame)> {
    let mut assembler = Assembler::default();
    let of = payloads(file, 0).into_iter().flat_map(|(packet, payload)| {
        let frames = assembler.push(payload).unwrap();
        frames.into_iter().map(move |frame| (packet.timestamp_ms, frame))
    });
    let frames = of.collect();
    assert_eq!((assembler.given_up(), assembler.bytes()), (0, 0));
    frames
}

/// The file with its pictures in packets of at most `most_bytes` of payload.
fn fragmented(most_bytes: usize) -> Vec<u8> {
    let read = RealMedia::read(WHOLE).unwrap();
    let mut assembler = Assembler::default();
    let mut packets = Vec::new();
    for packet in &read.packets {
        let payload = packet.payload(WHOLE);
        let with = |payload: &[u8]| Sent {
            stream: packet.stream,
            timestamp_ms: packet.timestamp_ms,
            rule: packet.rule,
            group: packet.group,
            flags: packet.flags,
            payload: payload.to_vec(),
        };
        if packet.stream != 0 {
            packets.push(with(payload));
            continue;
        }
        for frame in assembler.push(Chunk::bytes(payload)).unwrap() {
            packets.extend(fragment(&frame, most_bytes).unwrap().iter().map(|chunk| with(chunk.head())));
        }
    }
    let streams: Vec<u8> = read.streams.iter().flat_map(stream).collect();
    let head = [
        // PROP, CONT and DATA as well.
        beginning(read.streams.len() as u32 + 3),
        properties(&read.properties),
        description(&read.description),
        streams,
    ];
    [head.concat(), data(&packets)].concat()
}

#[test]
fn a_file_of_ffmpegs_is_read() {
    let read = RealMedia::read(WHOLE).unwrap();
    assert_eq!(read.cut, None);
    let streams: Vec<(u16, &str)> =
        read.streams.iter().map(|stream| (stream.number, stream.mime_type.as_str())).collect();
    assert_eq!(streams, [(0, "video/x-pn-realvideo"), (1, "audio/x-pn-realaudio")]);
    let format = VideoFormat { codec: *b"RV20", width: 96, height: 64, frame_rate_65536: 20 << 16 };
    assert_eq!(read.streams[0].video_format(), Some(format));
    assert!(read.streams[1].type_specific.starts_with(b".ra\xfd"));
    assert_eq!(read.packets.len(), read.properties.packets as usize);
    let pictures: Vec<(u32, bool)> =
        payloads(WHOLE, 0).iter().map(|(packet, _)| (packet.timestamp_ms, packet.is_key())).collect();
    let expected: Vec<(u32, bool)> = (0..20).map(|number| (50 * number, number % 10 == 0)).collect();
    assert_eq!(pictures, expected);
    // Each packet has one frame, which is all that is behind its header of 7 B.
    for ((number, (packet, _)), (_, frame)) in (0..).zip(payloads(WHOLE, 0)).zip(frames(WHOLE)) {
        assert_eq!((frame.picture, frame.media.len() + 7), (number, packet.bytes.into()));
    }
}

#[test]
fn frames_in_fragments_are_those_of_the_file() {
    for (most_bytes, file) in [(600, OF_600), (250, OF_250)] {
        let made = fragmented(most_bytes);
        if made != file {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tmp");
            std::fs::create_dir_all(&folder).unwrap();
            let path = folder.join(format!("fragments-{most_bytes}.rm"));
            std::fs::write(&path, &made).unwrap();
            panic!("fragments of {most_bytes} B are others: {}", path.display());
        }
        assert_eq!(frames(file), frames(WHOLE));
        assert!(payloads(file, 0).iter().all(|(_, payload)| payload.len() <= most_bytes));
        assert!(payloads(file, 0).len() > payloads(WHOLE, 0).len());
        let sound = |file| payloads(file, 1).into_iter().map(|(_, payload)| payload).collect::<Vec<_>>();
        assert_eq!(sound(file), sound(WHOLE));
    }
}
