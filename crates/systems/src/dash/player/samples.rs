//! How many pictures a segment has, by its movie fragments (ISO/IEC 14496-12 section 8.8).

use crate::media::mp4::contents;

/// The samples that the `trun` boxes of all `moof` boxes in `head` count, which is a segment's first bytes; 0 if it has
/// none, as of another format than MP4.
pub fn in_segment(head: &[u8]) -> u32 {
    contents(head)
        .filter(|(kind, _)| kind == b"moof")
        .map(|(_, moof)| of_fragment(moof))
        .fold(0, u32::saturating_add)
}

fn of_fragment(moof: &[u8]) -> u32 {
    let tracks = contents(moof).filter(|(kind, _)| kind == b"traf");
    let runs = tracks.flat_map(|(_, traf)| contents(traf)).filter(|(kind, _)| kind == b"trun");
    // Version and flags, then the number of samples.
    let counts = runs.filter_map(|(_, trun)| trun.get(4..8)?.try_into().ok().map(u32::from_be_bytes));
    counts.filter(|count| *count <= MOST_SAMPLES).fold(0, u32::saturating_add)
}

/// No segment has more pictures.
const MOST_SAMPLES: u32 = 1 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let mut bytes = (content.len() as u32 + 8).to_be_bytes().to_vec();
        bytes.extend(kind);
        bytes.extend(content);
        bytes
    }

    #[test]
    fn samples_of_all_runs_are_counted() {
        let run = |count: u32| boxed(b"trun", &[&[0; 4], &count.to_be_bytes()[..]].concat());
        let fragment = |runs: &[u32]| {
            let traf: Vec<u8> = runs.iter().flat_map(|count| run(*count)).collect();
            boxed(b"moof", &[boxed(b"mfhd", &[0; 8]), boxed(b"traf", &traf)].concat())
        };
        let segment =
            [boxed(b"styp", b"msdh"), fragment(&[50]), boxed(b"mdat", &[0; 9]), fragment(&[20, 5])].concat();
        assert_eq!(in_segment(&segment), 75);
        // The media's bytes are not all kept.
        assert_eq!(in_segment(&[boxed(b"styp", b"msdh"), fragment(&[50])].concat()), 50);
        assert_eq!(in_segment(b"G@\x11\x10 a transport stream"), 0);
        assert_eq!(in_segment(&[]), 0);
    }

    proptest! {
        #[test]
        fn anything_is_counted(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            in_segment(&bytes);
        }
    }
}
