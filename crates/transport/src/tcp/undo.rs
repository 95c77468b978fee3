//! Detecting that a reduction was for nothing (RFC 4015): by the timestamp that an acknowledgement echoes, which
//! distinguishes the first copy from the second (RFC 3522), or by duplicates that the receiver reports for every
//! segment sent again (RFC 3708).

use super::scoreboard::before;
use super::seq::Maybe;

/// Knowledge of one reduction and the segments sent again since.
#[derive(Clone, Copy, Debug)]
pub struct Undo {
    /// The first byte outstanding when the window was reduced; none if there is nothing to undo.
    marker: Maybe,
    /// Segments sent again that the receiver has not reported as duplicates; `None` while none has been sent again.
    unreported: Option<u32>,
    /// The timestamp clock when the first of them was sent.
    stamp: Option<u32>,
    /// Whether congestion had more evidence than the losses: the window stays reduced even if those were none.
    justified: bool,
}

impl Default for Undo {
    fn default() -> Self {
        Undo { marker: Maybe::NONE, unreported: None, stamp: None, justified: false }
    }
}

impl Undo {
    /// Begins a reduction with the first byte `una` outstanding and `resent` copies in flight. `justified`: it had
    /// begun before, or marks call for it too (RFC 3168).
    pub fn begin(&mut self, una: u64, resent: u32, justified: bool) {
        (self.marker, self.justified) = (Maybe::some(una), justified);
        self.unreported = (resent > 0).then_some(resent);
    }
    /// Ends the reduction: nothing can be undone any more.
    pub fn end(&mut self) {
        self.marker = Maybe::NONE;
    }
    /// Marks call for the reduction too.
    pub fn justify(&mut self) {
        self.justified = true;
    }
    /// Keeps the window reduced, even if the losses were none.
    pub fn is_justified(&self) -> bool {
        self.justified
    }
    /// Returns where the reduction began.
    pub fn marker(&self) -> Option<u64> {
        self.marker.get()
    }
    /// Notes that a segment is sent again when the timestamp clock shows `stamp`.
    pub fn resent(&mut self, stamp: u32) {
        self.unreported = Some(self.unreported.unwrap_or(0) + 1);
        self.stamp.get_or_insert(stamp);
    }
    /// Notes that no copy is outstanding: the next one sent again is the first.
    pub fn forget_copies(&mut self) {
        self.stamp = None;
    }
    /// Notes that the receiver has reported `segments` duplicates.
    pub fn reported(&mut self, segments: u32) {
        if self.marker.get().is_some()
            && let Some(unreported) = &mut self.unreported
        {
            *unreported = unreported.saturating_sub(segments);
        }
    }
    /// Returns whether every segment sent again was a duplicate.
    pub fn all_reported(&self) -> bool {
        self.marker.get().is_some() && self.unreported == Some(0)
    }
    /// Returns whether an acknowledgement that echoes `echo` was caused before anything was sent again, or nothing was.
    pub fn first_copy(&self, echo: u32) -> bool {
        self.marker.get().is_some() && self.stamp.is_none_or(|stamp| before(echo, stamp))
    }
    /// Returns whether the reduction may be undone at the end of a recovery.
    pub fn may_undo(&self, echo: u32) -> bool {
        self.all_reported() || self.first_copy(echo)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_every_copy_undo_and_one_missing_does_not() {
        let mut undo = Undo::default();
        assert!(!undo.may_undo(0));
        undo.begin(1, 1, false);
        undo.resent(50);
        undo.reported(1);
        assert!(!undo.may_undo(50));
        undo.reported(1);
        assert!(undo.may_undo(50));
        undo.end();
        assert!(!undo.may_undo(0));
    }

    #[test]
    fn an_echo_from_before_the_first_copy_undoes_even_when_the_clock_wraps() {
        let mut undo = Undo::default();
        undo.begin(1, 0, false);
        undo.resent(3);
        undo.resent(9);
        assert!(!undo.may_undo(3) && undo.may_undo(2) && undo.may_undo(u32::MAX));
        undo.forget_copies();
        assert!(undo.may_undo(7), "nothing was sent again");
    }
}
