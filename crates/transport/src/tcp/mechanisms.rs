//! Mechanisms that can be switched off one by one, to measure the effect of each.

/// Which mechanisms a connection uses. Default: all of them, as in Linux, or, for older ones, as in Linux then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mechanisms {
    /// Tail loss probes (RFC 8985 section 7).
    pub tlp: bool,
    /// Detects from the first answers to a timeout that it was spurious (RFC 5682).
    pub frto: bool,
    /// Undoing a reduction that was for nothing (RFC 4015), detected by timestamps (RFC 3522) or by duplicates that the
    /// receiver reports (RFC 3708).
    pub undo: bool,
    /// Proportional rate reduction (RFC 6937); without it the window is the threshold from the start of a recovery
    /// (RFC 6675 section 5).
    pub prr: bool,
    /// A reordering window of RACK that adapts to the reordering seen (RFC 8985 section 6.2). Without it the window
    /// stays as it is where none was seen.
    pub rack_reordering: bool,
    /// RACK's round trip is that of the segment that an acknowledgement covers last, as in Linux. Without it, of the
    /// one that was sent last (RFC 8985 section 6.2, step 2).
    pub rack_last: bool,
    /// Waiting for the next acknowledgement where that lets several segments leave as one, as Linux does.
    pub tso_defer: bool,
    /// A super-segment of a sender that does not pace is the data of a millisecond and, where the least round trip is
    /// below 16 ms, 65,536 B halved for each 2^9 us of it, as in Linux since 5.18 (`tcp_tso_rtt_log`). Without it the
    /// former alone.
    pub tso_by_rtt: bool,
    /// A smaller window after a pause of more than one RTO (RFC 5681 section 4.1; Linux's
    /// `tcp_slow_start_after_idle`).
    pub idle_restart: bool,
    /// Sending at the controller's rate, if it has one. Without it segments leave in bursts.
    pub pacing: bool,
    /// Acknowledging at once every segment that raises the window that Linux would offer.
    pub window_growth: bool,
    /// That window rises with the first segments, and with those that arrive ahead of a gap, as in Linux 6.18. Without
    /// it the window rises from the first round trip on that brings more than ten segments, and further then, as in
    /// Linux 6.1, and is the offered window.
    pub early_growth: bool,
    /// A segment that the peer's window would cut short waits until that has room for it (RFC 9293 section 3.8.6.2.1).
    /// Without it the rest of the window leaves with the segments before it, and written data is kept in blocks of half
    /// a window; some of these push; the send buffer's memory bounds them (see `write_queue`; `tcp_mss_split_point`,
    /// `tcp_bound_to_half_wnd`; of Linux 6.1, and of a program without TCP_NODELAY that writes 128 KiB at a time and
    /// asks for as large a send buffer as for a receive buffer).
    pub whole_segments: bool,
    /// A receive buffer that a program asks for counts by the memory of segments, as since Linux 6.6, so that its
    /// window is as large as the program's request. Without it half of the buffer is window, less a segment, regardless
    /// of the segments' memory, as in Linux 6.1 (`tcp_adv_win_scale` of 1).
    pub scaling_ratio: bool,
    /// BIC's increments are those of a round trip, as its paper and Linux of its time have them. Without it about twice
    /// as large, as in Linux 6.1 (see [`Bic`](super::congestion::Bic)).
    pub bic_per_round: bool,
    /// BBR's bandwidth is in whole bytes per second. Without it in segments per microsecond with 24 fractional bits, rounded
    /// down, as in every Linux (`BW_SCALE` of `tcp_bbr.c`): 0.4 % too little at 150 kbit/s.
    pub fine_bandwidth: bool,
    /// Prague grows as over a round trip of 25 ms where its own is shorter (RFC 9331 section 4.3). Without it as fast as its
    /// round trip allows.
    pub rtt_scaling: bool,
}

/// Finds one mechanism's switch.
type Switch = fn(&mut Mechanisms) -> &mut bool;

impl Default for Mechanisms {
    fn default() -> Self {
        Mechanisms {
            tlp: true,
            frto: true,
            undo: true,
            prr: true,
            rack_reordering: true,
            rack_last: true,
            tso_defer: true,
            tso_by_rtt: true,
            idle_restart: true,
            pacing: true,
            window_growth: true,
            early_growth: true,
            whole_segments: true,
            scaling_ratio: true,
            bic_per_round: true,
            fine_bandwidth: true,
            rtt_scaling: true,
        }
    }
}

impl Mechanisms {
    /// Every mechanism by name.
    pub const NAMED: &[(&str, Switch)] = &[
        ("tlp", |m| &mut m.tlp),
        ("frto", |m| &mut m.frto),
        ("undo", |m| &mut m.undo),
        ("prr", |m| &mut m.prr),
        ("rack_reordering", |m| &mut m.rack_reordering),
        ("rack_last", |m| &mut m.rack_last),
        ("tso_defer", |m| &mut m.tso_defer),
        ("tso_by_rtt", |m| &mut m.tso_by_rtt),
        ("idle_restart", |m| &mut m.idle_restart),
        ("pacing", |m| &mut m.pacing),
        ("window_growth", |m| &mut m.window_growth),
        ("early_growth", |m| &mut m.early_growth),
        ("whole_segments", |m| &mut m.whole_segments),
        ("scaling_ratio", |m| &mut m.scaling_ratio),
        ("bic_per_round", |m| &mut m.bic_per_round),
        ("fine_bandwidth", |m| &mut m.fine_bandwidth),
        ("rtt_scaling", |m| &mut m.rtt_scaling),
    ];

    /// Switches the mechanism `name` off; false if there is none of that name.
    #[must_use]
    pub fn switch_off(&mut self, name: &str) -> bool {
        let known = Self::NAMED.iter().find(|(known, _)| *known == name);
        known.map(|(_, switch)| *switch(self) = false).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_switches_off_one_mechanism_of_its_own() {
        let mut all = Mechanisms::default();
        let mut alone = Vec::new();
        for (name, _) in Mechanisms::NAMED {
            let mut one = Mechanisms::default();
            assert!(one.switch_off(name) && all.switch_off(name));
            assert!(one != Mechanisms::default() && !alone.contains(&one), "{name}");
            alone.push(one);
        }
        let off = format!("{all:?}");
        assert!(!off.contains("true"), "a mechanism without a name: {off}");
        assert!(!all.switch_off("hope"));
    }
}
