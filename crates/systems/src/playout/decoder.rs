//! The pictures that a decoder outputs, among those received whole.

use serde::{Deserialize, Serialize};
use streamgauge_plan::{Kind, setting};

use crate::media::ClipSpec;

/// The decoder of the pictures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decoder {
    /// Outputs each that was received whole.
    #[default]
    Ideal,
    /// FFmpeg's decoder of H.264 without reordered pictures, as in GStreamer's `avdec_h264`: outputs none
    /// that is before one already shown by its order count, which is too low where a frame number's wrap was
    /// lost.
    Libavcodec,
}

setting!(Decoder => Kind::Words(vec!["ideal", "libavcodec"]));

/// Frame numbers begin again after this many pictures: the least that H.264 allows (log2_max_frame_num_minus4
/// 0), which x264 writes for one reference picture.
const MAX_FRAME_NUM: u64 = 16;

/// The order count of pictures without any out of order (ITU-T H.264 section 8.2.1.3, pic_order_cnt_type 2), in
/// pictures since the key frame, as libavcodec keeps it where some are missing.
///
/// The count's multiple of 16 grows when a frame number is below the one before. For missing pictures
/// libavcodec fills in the frame numbers, and not that growth: if the picture with the number 0 again is
/// missing, all counts from there on are 16 too low, and the next 15 pictures are discarded as out of order.
/// A key frame begins anew. Found in the packets and pictures of FFmpeg 5.1 in GStreamer 1.22.
#[derive(Clone, Debug)]
pub(super) struct PictureOrder {
    /// Key frames among the clip's `frames`, ascending.
    keys: Vec<u64>,
    frames: u64,
    /// Counted wraps of the frame number, in pictures.
    counted: u64,
    /// That of the last picture given out.
    last: u64,
}

impl PictureOrder {
    pub fn new(clip: &ClipSpec) -> Self {
        let mut keys: Vec<u64> = clip.key_frames.iter().map(|&key| u64::from(key)).collect();
        if keys.is_empty() {
            keys.push(0);
        }
        PictureOrder { keys, frames: (clip.frame_bytes.len() as u64).max(1), counted: 0, last: 0 }
    }

    /// Returns whether picture `number`, which was received whole, is output; the clip begins again after its
    /// last. They come in order.
    pub fn gives_out(&mut self, number: u64) -> bool {
        let place = number % self.frames;
        let before = self.keys.partition_point(|&key| key <= place);
        // Pictures before the clip's first key frame depend on the last one of the round before.
        let since = match before.checked_sub(1) {
            Some(index) => place - self.keys[index],
            None => place + self.frames - self.keys[self.keys.len() - 1],
        };
        if since == 0 {
            (self.counted, self.last) = (0, 0);
            return true;
        }
        let frame_num = since % MAX_FRAME_NUM;
        if frame_num == 0 {
            self.counted += MAX_FRAME_NUM;
        }
        let count = self.counted + frame_num;
        let in_order = count >= self.last;
        if in_order {
            self.last = count;
        }
        in_order
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use streamgauge_base::Duration;

    use super::*;

    fn clip(frames: usize, keys: &[u32]) -> ClipSpec {
        ClipSpec {
            name: "test".into(),
            duration: Duration::from_secs(60),
            frame_interval: Duration::from_millis(40),
            frame_bytes: vec![1000; frames].into(),
            key_frames: keys.to_vec().into(),
            ..ClipSpec::default()
        }
    }

    /// Returns the numbers of the output pictures, from `until` pictures without those `missing`.
    fn given(clip: &ClipSpec, until: u64, missing: &[u64]) -> Vec<u64> {
        let mut order = PictureOrder::new(clip);
        (0..until).filter(|number| !missing.contains(number) && order.gives_out(*number)).collect()
    }

    /// Pictures 0 to 150 of a GStreamer session at 550 kbit/s on a lossy link, key frames 50 apart: those that lost a
    /// packet, and those that it showed.
    #[test]
    fn gstreamer_shows_the_same() {
        let missing = [
            8, 9, 12, 16, 17, 35, 44, 45, 47, 48, 54, 55, 61, 70, 72, 77, 82, 90, 93, 97, 98, 100, 101, 107,
            108, 111, 115, 116, 123, 125, 128, 143, 144, 145,
        ];
        let shown = given(&clip(200, &[0, 50, 100, 150]), 150, &missing);
        let expected: Vec<u64> = (0..150)
            .filter(|n| !missing.contains(n) && !(18..31).contains(n) && *n != 49 && !(83..131).contains(n))
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_lost_wrap_costs_fifteen_pictures_more() {
        let clip = clip(100, &[0]);
        assert_eq!(given(&clip, 100, &[15]).len(), 99, "any other costs itself");
        let shown = given(&clip, 100, &[16]);
        assert_eq!(shown, (0..100).filter(|n| !(16..31).contains(n)).collect::<Vec<_>>());
        assert_eq!(
            given(&clip, 201, &[96]).iter().filter(|n| **n > 96).count(),
            101,
            "a key frame begins anew"
        );
    }

    proptest! {
        #[test]
        fn without_losses_all_are_given_out(frames in 1usize..200, key in 0u32..200, until in 0u64..600) {
            let clip = clip(frames, &[key % frames as u32]);
            prop_assert_eq!(given(&clip, until, &[]).len() as u64, until);
        }

        #[test]
        fn key_frames_alone_are_always_given_out(keys in 1u64..40, missing in prop::collection::vec(0u64..400, 0..60)) {
            let places: Vec<u32> = (0..400u32).step_by(keys as usize).collect();
            let shown = given(&clip(400, &places), 400, &missing);
            for place in places.iter().map(|&place| u64::from(place)).filter(|place| !missing.contains(place)) {
                prop_assert!(shown.contains(&place));
            }
        }
    }
}
