use proptest::prelude::*;
use streamgauge_base::Chunk;

use super::*;

fn frame(picture: u8, media: Chunk) -> VideoFrame {
    VideoFrame { picture, timestamp_ms: None, media }
}

fn pieces(payload: &[u8]) -> Vec<Result<VideoPiece, Problem>> {
    Pieces::of(Chunk::bytes(payload)).collect()
}

/// Every form that the table of the module gives.
#[test]
fn each_kind_of_piece_is_read() {
    let piece = |kind, part, frame_bytes, offset, media: &[u8]| VideoPiece {
        kind,
        part,
        picture: 9,
        timestamp_ms: None,
        frame_bytes,
        offset,
        media: Chunk::bytes(media),
    };
    let found = pieces(b"\x01\x82\x40\x0a\x40\x03\x09abcd");
    assert_eq!(found, [Ok(piece(PieceKind::Part, 2, 10, 3, b"abcd"))]);
    let whole = piece(PieceKind::Whole, 1, 3, 0, b"abc");
    assert_eq!(pieces(b"\x40\x81abc"), [Ok(VideoPiece { picture: 0, ..whole })]);
    // The last part, its number with the bit that ffmpeg sets for key frames, and two frames behind it: of the longer
    // numbers, each by itself, and of the shorter.
    let several = |timestamp_ms, media| VideoPiece {
        timestamp_ms: Some(timestamp_ms),
        ..piece(PieceKind::OneOfSeveral, 0, 2, 0, media)
    };
    let found =
        pieces(b"\x81\x83\x40\x0a\x40\x03\x09hij\xc0\0\0\0\x02\0\x01\0\0\x09kl\xc0\x40\x02\x40\x50\x09mn");
    let last = piece(PieceKind::LastPart, 3, 10, 7, b"hij");
    assert_eq!(found, [Ok(last), Ok(several(65_536, b"kl")), Ok(several(80, b"mn"))]);
}

#[test]
fn pieces_that_contradict_themselves_are_told() {
    let fault = |payload: &[u8]| pieces(payload).pop().unwrap().unwrap_err();
    let cut = |what, missing, at| Problem { at, fault: Fault::Truncated { what, missing } };
    assert_eq!(fault(b"\x80"), cut("a header", 1, 1));
    assert_eq!(fault(b"\x80\x01\0\0\0"), cut("a header", 1, 4));
    assert_eq!(fault(b"\x80\x01\x40\x02\x40\x02\x09a"), cut("a frame", 1, 7));
    assert_eq!(fault(b"\xc0\x40\x02\x40\x02\x09a"), cut("a frame", 1, 6));
    let outside = |offset, end, frame_bytes| Fault::OutsideFrame { offset, end, frame_bytes };
    assert_eq!(fault(b"\0\x01\x40\x05\x40\x04\x09ab").fault, outside(4, 6, 5));
    assert_eq!(fault(b"\x80\x01\x40\x01\x40\x02\x09ab").fault, outside(0, 2, 1));
    let long = Fault::FrameTooLong { bytes: 0x3fff_ffff, limit: MOST_FRAME_BYTES };
    assert_eq!(fault(b"\0\x01\x3f\xff\xff\xff\x40\0\x09a").fault, long);
}

#[test]
fn a_frame_takes_127_packets_at_most() {
    // Headers of 7 B.
    let fit = frame(0, Chunk::filler(127 * 93));
    assert_eq!(fragment(&fit, 100).unwrap().len(), MOST_PARTS);
    let error = fragment(&frame(0, Chunk::filler(127 * 93 + 1)), 100).unwrap_err();
    assert_eq!(error.to_string(), "a frame of 11812 B does not fit 127 packets of 100 B");
    assert!(fragment(&frame(0, Chunk::filler(MOST_FRAME_BYTES)), 1 << 20).is_ok());
    assert!(fragment(&frame(0, Chunk::filler(MOST_FRAME_BYTES + 1)), 1 << 20).is_err());
    assert!(fragment(&frame(0, Chunk::default()), 6).is_err());
    assert_eq!(fragment(&frame(0, Chunk::default()), 7).unwrap().len(), 1);
}

#[test]
fn frames_that_lack_a_part_are_given_up_and_counted_once() {
    let mut assembler = Assembler::default();
    let packets = |picture: u8| fragment(&frame(picture, Chunk::filler(400)), 107).unwrap();
    for missing in 0..4 {
        let picture = missing as u8;
        for (number, packet) in packets(picture).into_iter().enumerate() {
            if number != missing {
                assert_eq!(assembler.push(packet).unwrap(), []);
            }
        }
        // The last part of a frame is missed when another begins.
        assert_eq!(assembler.given_up(), [1, 2, 3, 3][missing]);
    }
    let all: Vec<VideoFrame> =
        packets(9).into_iter().flat_map(|packet| assembler.push(packet).unwrap()).collect();
    assert_eq!(all, [frame(9, Chunk::filler(400))]);
    assert_eq!((assembler.given_up(), assembler.bytes()), (4, 0));
    // A begun frame leaves nothing behind a broken packet.
    assembler.push(packets(1).remove(0)).unwrap();
    assert_eq!(assembler.bytes(), 100);
    assembler.push(Chunk::bytes(*b"\x80")).unwrap_err();
    assert_eq!((assembler.given_up(), assembler.bytes()), (5, 0));
}

prop_compose! {
    fn any_frame()(
        picture in any::<u8>(),
        head in proptest::collection::vec(any::<u8>(), 0..300),
        filler in prop_oneof![Just(0), 0..2000u32, 16_000..17_000u32, 60_000..70_000u32],
    ) -> VideoFrame {
        frame(picture, Chunk::with_filler(head, filler))
    }
}

proptest! {
    /// Frames through packets and back are the same; every packet but the last is full, or a byte less.
    #[test]
    fn fragments_are_put_together_again(
        frames in proptest::collection::vec(any_frame(), 1..5),
        most_bytes in prop_oneof![8..64usize, 64..1500usize, 8000..70_000usize],
    ) {
        let mut assembler = Assembler::default();
        let mut whole = 0;
        for frame in &frames {
            let Ok(packets) = fragment(frame, most_bytes) else {
                // 7 to 11 B of a packet are header, and one that has room for them takes one byte at least.
                prop_assert!(most_bytes < 12 || frame.media.len() > MOST_PARTS * (most_bytes - 11));
                continue;
            };
            let mut found = Vec::new();
            for (number, packet) in packets.iter().enumerate() {
                let is_last = number + 1 == packets.len();
                prop_assert!(packet.len() <= most_bytes);
                prop_assert!(is_last || packet.len() + 2 >= most_bytes);
                let piece = pieces_of(packet);
                prop_assert_eq!(usize::from(piece.part), number + 1);
                let parts = packet.head()[0] & 0x3f;
                let parts = usize::from(parts << 1 | packet.head()[1] >> 7);
                prop_assert_eq!(parts, packets.len());
                found.extend(assembler.push(packet.clone()).unwrap());
            }
            prop_assert_eq!(&found, std::slice::from_ref(frame));
            whole += 1;
        }
        prop_assert!(whole <= frames.len());
        prop_assert_eq!((assembler.given_up(), assembler.bytes()), (0, 0));
    }

    /// Any payloads, in any order, give frames no longer than they are, or problems within them.
    #[test]
    fn nothing_panics(
        payloads in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..40), 0..50u32), 0..20),
        frame in any_frame(),
        keep in proptest::collection::vec(any::<bool>(), 127),
    ) {
        let mut assembler = Assembler::default();
        let packets = fragment(&frame, 1000).unwrap();
        let some = packets.into_iter().zip(keep).filter(|(_, kept)| *kept).map(|(packet, _)| packet);
        let noise = payloads.into_iter().map(|(head, filler)| Chunk::with_filler(head, filler));
        let mut bytes = 0;
        for payload in noise.chain(some) {
            let length = payload.len();
            bytes += length;
            match assembler.push(payload) {
                Ok(frames) => {
                    let frames: usize = frames.iter().map(|frame| frame.media.len()).sum();
                    prop_assert!(frames + assembler.bytes() <= bytes);
                }
                Err(problem) => prop_assert!(problem.at <= length as u64),
            }
        }
    }
}

fn pieces_of(packet: &Chunk) -> VideoPiece {
    let mut pieces: Vec<_> = Pieces::of(packet.clone()).collect();
    assert_eq!(pieces.len(), 1);
    pieces.remove(0).unwrap()
}

proptest! {
    #[test]
    fn whole_frames_come_out_as_they_went_in(
        sizes in prop::collection::vec((0u32..1 << 30, 1usize..20_000, any::<u8>()), 1..12), is_filler in any::<bool>(),
    ) {
        let media = |bytes: usize| if is_filler { Chunk::filler(bytes as u32) } else { Chunk::bytes(vec![7; bytes]) };
        let frames: Vec<VideoFrame> = sizes
            .into_iter()
            .map(|(at, bytes, picture)| VideoFrame { picture, timestamp_ms: Some(at), media: media(bytes) })
            .collect();
        let shared = several(&frames);
        prop_assert_eq!(shared.len(), frames.iter().map(among_several).sum::<usize>());
        let found: Vec<_> = Pieces::of(shared).map(Result::unwrap).collect();
        prop_assert_eq!(found.len(), frames.len());
        for (piece, frame) in found.iter().zip(&frames) {
            prop_assert_eq!((piece.kind, piece.picture, piece.timestamp_ms), (PieceKind::OneOfSeveral, frame.picture, frame.timestamp_ms));
            prop_assert_eq!((piece.media.len(), piece.frame_bytes as usize), (frame.media.len(), frame.media.len()));
        }
        let alone: Vec<_> = Pieces::of(whole(&frames[0])).map(Result::unwrap).collect();
        prop_assert_eq!(alone.len(), 1);
        prop_assert_eq!((alone[0].kind, &alone[0].media), (PieceKind::Whole, &frames[0].media));
    }
}
