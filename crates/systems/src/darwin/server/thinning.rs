//! Which frames of a track are sent at which level.

use crate::media::UnitKind;

/// The level that sends the least. There are seven, from 0, which sends all.
pub const WORST: u8 = 6;

/// The level of a track and the part of the current group of frames that remains, from one key frame to the next.
///
/// 0: all. 1: none that nothing depends on. 2, 3, 4: of the others the first 75, 50 and 25 percent of the
/// group. 5: key frames. 6: key frames, and of the others the first.
#[derive(Default)]
pub struct Thinning {
    level: u8,
    /// Frames of the group that others may depend on, the key frame left out.
    predicted: u32,
    /// The number of these seen so far.
    seen: u32,
}

impl Thinning {
    /// Sets the level, from the next frame on.
    pub fn set(&mut self, level: u8) {
        self.level = level.min(WORST);
    }

    /// Returns whether the next frame, of `kind`, is sent. `predicted` counts the predicted frames until the next key
    /// frame; it is asked for at key frames only.
    pub fn sends(&mut self, kind: UnitKind, predicted: impl FnOnce() -> u32) -> bool {
        match kind {
            UnitKind::Key => {
                (self.predicted, self.seen) = (if self.level > 1 { predicted() } else { u32::MAX }, 0);
                true
            }
            UnitKind::Disposable => self.level == 0,
            UnitKind::Predicted => {
                self.seen += 1;
                let most = |percent| u64::from(self.predicted) * percent / 100;
                u64::from(self.seen)
                    <= match self.level {
                        0 | 1 => u64::MAX,
                        2 => most(75),
                        3 => most(50),
                        4 => most(25),
                        5 => 0,
                        _ => 1,
                    }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(level: u8) -> String {
        let mut thinning = Thinning::default();
        thinning.set(level);
        let group = "IPBPBPBPBPBPBPBPB";
        group
            .chars()
            .filter(|frame| {
                let kind = match frame {
                    'I' => UnitKind::Key,
                    'P' => UnitKind::Predicted,
                    _ => UnitKind::Disposable,
                };
                thinning.sends(kind, || 8)
            })
            .collect()
    }

    #[test]
    fn each_level_keeps_the_leading_part_of_a_group() {
        let left = ["IPBPBPBPBPBPBPBPB", "IPPPPPPPP", "IPPPPPP", "IPPPP", "IPP", "I", "IP"];
        for (level, left) in (0..).zip(left) {
            assert_eq!(sent(level), left, "level {level}");
        }
        assert_eq!(sent(200), "IP");
    }
}
