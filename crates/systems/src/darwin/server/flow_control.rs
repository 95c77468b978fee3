//! Thinning of plain UDP by the player's reports. Without such reports nothing is ever thinned.

use super::settings::ServerSettings;
use super::thinning::WORST;

/// The level of a plain UDP track.
pub struct FlowControl {
    bad_percent: u32,
    bad_reports: u32,
    good_percent: u32,
    good_reports: u32,
    worse_reports: u32,
    level: u8,
    bad: u32,
    good: u32,
    worse: u32,
}

/// A player's report of its reception.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReportedReception {
    /// In percent.
    pub loss: Option<u32>,
    /// `Some(true)` getting better, `Some(false)` getting worse (or, as the public server has it, no change).
    pub better: Option<bool>,
}

impl FlowControl {
    pub fn new(settings: &ServerSettings) -> Self {
        FlowControl {
            bad_percent: settings.plain_thin_loss_percent,
            bad_reports: settings.plain_thin_reports,
            good_percent: settings.plain_thick_loss_percent,
            good_reports: settings.plain_thick_reports,
            worse_reports: settings.plain_worse_reports,
            level: 0,
            bad: 0,
            good: 0,
            worse: 0,
        }
    }

    /// Returns the level: 0 sends all, [`WORST`] the least.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Applies a report. True if the level has changed.
    pub fn reported(&mut self, reception: ReportedReception) -> bool {
        let before = self.level;
        if let Some(loss) = reception.loss {
            self.bad = if loss > self.bad_percent { self.bad + 1 } else { 0 };
            self.good = if loss < self.good_percent { self.good + 1 } else { 0 };
        }
        match reception.better {
            Some(true) => {
                self.worse = 0;
                self.thicken();
            }
            Some(false) => self.worse += 1,
            None => {}
        }
        if self.bad >= self.bad_reports || self.worse >= self.worse_reports {
            (self.bad, self.worse) = (0, 0);
            // The first step leaves out the frames that nothing depends on; the second is the last.
            self.level = if self.level == 0 { 1 } else { WORST };
        } else if self.good >= self.good_reports {
            self.thicken();
        }
        self.level != before
    }

    fn thicken(&mut self) {
        self.good = 0;
        // Never by more than one, and from the worst in one step to the first.
        self.level = self.level.saturating_sub(1).min(1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Preset;
    use super::*;

    fn loss(percent: u32) -> ReportedReception {
        ReportedReception { loss: Some(percent), better: None }
    }

    #[test]
    fn three_bad_reports_thin_and_six_good_ones_undo_it() {
        let mut control = FlowControl::new(&ServerSettings::of(Preset::Source));
        assert!(!control.reported(loss(31)) && !control.reported(loss(31)));
        assert!(!control.reported(loss(30)), "not above 30 %: the row is broken");
        let bad = |control: &mut FlowControl| (0..3).map(|_| control.reported(loss(40))).collect::<Vec<_>>();
        assert_eq!(bad(&mut control), [false, false, true]);
        assert_eq!(control.level(), 1);
        assert_eq!(bad(&mut control), [false, false, true]);
        assert_eq!(control.level(), WORST);
        let good: Vec<_> = (0..12).map(|_| (control.reported(loss(4)), control.level())).collect();
        assert_eq!((good[5], good[11]), ((true, 1), (true, 0)));
    }

    #[test]
    fn players_may_also_say_that_it_gets_worse_or_better() {
        let mut control = FlowControl::new(&ServerSettings::of(Preset::Source));
        let feels = |better| ReportedReception { loss: None, better: Some(better) };
        assert!(!control.reported(feels(false)));
        assert!(control.reported(feels(false)));
        assert!(control.reported(feels(true)));
        assert_eq!(control.level(), 0);
        assert!(!control.reported(ReportedReception::default()));
    }
}
