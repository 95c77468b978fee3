//! Any file is an asset or an error: nothing panics, no unit lies outside the file, and each goes through packets and
//! back without growing.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use streamgauge_systems::media::{assemble, mp4, sdp};

fuzz_target!(|file: &[u8]| {
    let Ok(asset) = mp4::read("fuzz", Arc::new(file.to_vec())) else { return };
    let text = sdp::describe(&asset, "127.0.0.1".parse().expect("an address"), 1);
    assert_eq!(sdp::read(&text).expect("our own description").tracks.len(), asset.tracks.len());
    for track in &asset.tracks {
        assert!(track.media_bytes() <= file.len() as u64);
        for unit in 0..track.units.len() {
            assert_eq!(track.unit_bytes(unit).len(), track.units[unit].bytes as usize);
            let payloads: Vec<_> = track.packets(unit, 200).collect();
            assert!(payloads.iter().all(|payload| payload.chunk.len() <= 200));
            assemble(&track.codec, payloads.iter().map(|payload| payload.chunk.head()));
        }
    }
});
