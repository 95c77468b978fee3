//! Any bytes are a segment whose pictures are counted or not, the same however they are cut; memory stays bounded.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_base::Chunk;
use streamgauge_systems::media::segment::{Counter, Known, Pictures};

fuzz_target!(|bytes: &[u8]| {
    let counted = |known: &Known, piece: usize| {
        let mut counter = Counter::new(known.clone());
        bytes.chunks(piece.max(1)).for_each(|piece| counter.push(&Chunk::bytes(piece)));
        counter.finish()
    };
    let (whole, known) = counted(&Known::default(), bytes.len());
    let (piecewise, _) = counted(&Known::default(), 1 + bytes.len() % 97);
    assert_eq!(whole, piecewise);
    if let Pictures::Counted { count, times } = &whole.pictures {
        assert!(times.is_empty() || times.len() == *count as usize);
        assert!(times.windows(2).all(|two| two[0] <= two[1]));
    }
    // What a segment told of its tracks does not break the next one.
    counted(&known, 188);
});
