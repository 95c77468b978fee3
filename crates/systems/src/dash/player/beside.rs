//! Initialization segments on a connection of their own, asked for together with the segment that needs them.
//!
//! A browser sends the first of the two requests on the connection that it has and opens another one for the second.

use super::DashPlayer;
use super::exchange::What;

impl DashPlayer {
    /// Whether the track's initialization segments have a line of their own: those of the pictures.
    pub(super) fn is_beside(&self, track: usize) -> bool {
        self.beside.is_some() && track == 0
    }

    /// Whether the request is for the track with segments on `line`.
    pub(super) fn is_line_of(&self, line: usize, what: What) -> bool {
        what.track().is_some_and(|track| self.line_of(track) == line)
    }

    /// Whether the segment at a line's front cannot be read yet, as its initialization is still on its way.
    pub(super) fn waits_for_init(&self, line: usize) -> bool {
        let Some(beside) = self.beside.filter(|beside| *beside != line) else { return false };
        let front = self.lines[line].exchanges.front().map(|exchange| exchange.what);
        matches!(front, Some(What::Segment(..)))
            && self.lines[beside].exchanges.front().is_some_and(|init| self.is_line_of(line, init.what))
    }

    /// The open, idle connection serves the first request: an initialization if one is needed, else the segment itself.
    pub(super) fn share_lines(&mut self, track: usize, needs_init: bool) {
        let Some(beside) = self.beside.filter(|_| track == 0) else { return };
        let main = self.line_of(track);
        let (first, second) = if needs_init { (beside, main) } else { (main, beside) };
        let is_free = |line: usize| self.lines[line].exchanges.is_empty();
        if is_free(main) && is_free(beside) {
            let is_open = |line: usize| self.lines[line].requester.is_open();
            if !is_open(first) && is_open(second) {
                self.lines.swap(main, beside);
            }
        }
    }
}
