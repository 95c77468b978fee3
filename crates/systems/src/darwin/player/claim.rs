//! The claims of PLAY's answer about a track's packets (RTP-Info, RFC 2326 section 12.33), until a packet shows whether
//! they hold.
//!
//! Cameras write zeros there, the numbers of another track, or those of an earlier session. The packets of the server
//! decide.

use streamgauge_base::{Duration, Instant};

/// Greatest distance of the first packet from the one announced as first: behind it, because of reordering, and before
/// it, because of losses (RFC 3550 appendix A.1).
const MOST_BEHIND: i16 = 100;
const MOST_AHEAD: i16 = 3_000;

/// How long before the start of its range a server may begin, so that the first picture is a key frame; and how long
/// after it a track may begin.
const KEY_FRAMES_APART: Duration = Duration::from_secs(10);

/// Timestamps this near to each other are the same but for a rounding, or for the frames that decoders need before the
/// start.
const NEAR: Duration = Duration::from_secs(1);

/// RTP-Info of one track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The number of the first packet.
    pub seq: Option<u16>,
    /// The timestamp of the media's time `at`.
    pub rtptime: Option<u32>,
    /// Start of the range.
    pub at: Duration,
    /// The end of the media, if it is known.
    pub end: Option<Duration>,
    /// Play begins with it. Play begins with it.
    pub begins: bool,
    /// Arrival time of the answer.
    pub since: Instant,
}

/// The parts of a claim that hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Judged {
    /// The number of the first packet.
    pub seq: Option<u16>,
    /// The timestamp of the range's start.
    pub rtptime: Option<u32>,
}

impl Claim {
    /// Judges by the track's first packet since then, with a clock of `clock_rate`; `None` if it is one from before a
    /// pause.
    pub fn judge(&self, now: Instant, sequence: u16, timestamp: u32, clock_rate: u32) -> Option<Judged> {
        let ahead = self.seq.map(|seq| sequence.wrapping_sub(seq).cast_signed());
        if !self.begins && ahead.is_some_and(|ahead| (-MOST_AHEAD..0).contains(&ahead)) {
            return None;
        }
        let seq_fits = ahead.is_none_or(|ahead| (-MOST_BEHIND..=MOST_AHEAD).contains(&ahead));
        // A server sends at the media's pace: as much as fits the time that has passed may have been lost before the
        // first packet.
        let room = if seq_fits { KEY_FRAMES_APART } else { NEAR };
        let latest = room + now.saturating_since(self.since);
        let earliest = NEAR + self.at.min(if seq_fits { KEY_FRAMES_APART } else { Duration::ZERO });
        let fits = |rtptime: u32| {
            let ticks = i64::from(timestamp.wrapping_sub(rtptime).cast_signed());
            let apart = of_ticks(ticks.unsigned_abs(), clock_rate);
            match ticks < 0 {
                true => apart <= earliest,
                false => {
                    apart <= latest
                        && self.end.is_none_or(|end| apart <= end.saturating_sub(self.at).max(NEAR))
                }
            }
        };
        Some(Judged {
            seq: self.seq.filter(|_| seq_fits),
            rtptime: self.rtptime.filter(|&rtptime| fits(rtptime)),
        })
    }

    /// Names in words the claims that do not hold, for a first packet with these numbers; `None` if all do.
    pub fn passed_over(&self, judged: Judged, sequence: u16, timestamp: u32) -> Option<String> {
        let wrong = |name: &str, said: Option<String>, holds: bool, came: String| {
            said.filter(|_| !holds).map(|said| format!("{name} {said}, where the first packet has {came}"))
        };
        let seq = wrong("seq", self.seq.map(|n| n.to_string()), judged.seq.is_some(), sequence.to_string());
        let rtptime = self.rtptime.map(|n| n.to_string());
        let rtptime = wrong("rtptime", rtptime, judged.rtptime.is_some(), timestamp.to_string());
        let both: Vec<String> = seq.into_iter().chain(rtptime).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }
}

fn of_ticks(ticks: u64, clock_rate: u32) -> Duration {
    let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(clock_rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CLOCK: u32 = 90_000;

    fn claim(seq: Option<u16>, rtptime: Option<u32>) -> Claim {
        let end = Some(Duration::from_secs(4));
        Claim { seq, rtptime, at: Duration::ZERO, end, begins: true, since: Instant::ZERO }
    }

    /// Returns whether seq and rtptime hold for a first packet with number 34211 and timestamp 123456789.
    fn holds(seq: u16, rtptime: u32) -> (bool, bool) {
        let judged =
            claim(Some(seq), Some(rtptime)).judge(Instant::ZERO, 34_211, 123_456_789, CLOCK).unwrap();
        (judged.seq.is_some(), judged.rtptime.is_some())
    }

    #[test]
    fn what_fits_no_packet_does_not_hold() {
        assert_eq!(holds(34_211, 123_456_789), (true, true));
        assert_eq!(holds(34_200, 123_456_789 - 3 * CLOCK), (true, true), "the first packets were lost");
        assert_eq!(holds(34_212, 123_456_789), (true, true), "a packet overtook the first");
        assert_eq!(holds(0, 0), (false, false));
        assert_eq!(holds(0, 123_456_789), (false, true));
        assert_eq!(holds(34_211, 0), (true, false));
        assert_eq!(holds(39_211, 123_456_789 + 10 * CLOCK), (false, false));
        assert_eq!(
            holds(34_211, 123_456_789 + 5 * CLOCK),
            (true, false),
            "nothing is before the media's start"
        );
        assert_eq!(
            holds(34_211, 123_456_789 - 5 * CLOCK),
            (true, false),
            "nothing is behind the media's end"
        );
        assert_eq!(
            holds(7, 123_456_789 - 3 * CLOCK),
            (false, false),
            "of another track, the clock by chance near"
        );
        let fault = claim(Some(0), Some(0));
        let judged = fault.judge(Instant::ZERO, 5_000, 7_000_000, CLOCK).unwrap();
        let words = "seq 0, where the first packet has 5000; rtptime 0, where the first packet has 7000000";
        assert_eq!(fault.passed_over(judged, 5_000, 7_000_000).as_deref(), Some(words));
    }

    #[test]
    fn a_range_within_the_media_may_begin_with_the_key_frame_before_it() {
        let at = Duration::from_secs(30);
        let within = Claim { at, end: None, ..claim(Some(5), Some(90 * CLOCK)) };
        let judged = within.judge(Instant::ZERO, 5, 82 * CLOCK, CLOCK).unwrap();
        assert_eq!(judged, Judged { seq: Some(5), rtptime: Some(90 * CLOCK) });
        assert_eq!(within.judge(Instant::ZERO, 5, 60 * CLOCK, CLOCK).unwrap().rtptime, None);
    }

    #[test]
    fn a_packet_from_before_the_pause_judges_nothing() {
        let on = Claim { begins: false, ..claim(Some(100), Some(9_000)) };
        assert_eq!(on.judge(Instant::ZERO, 99, 0, CLOCK), None);
        assert_eq!(
            on.judge(Instant::ZERO, 100, 9_000, CLOCK),
            Some(Judged { seq: Some(100), rtptime: Some(9_000) })
        );
        assert_eq!(on.judge(Instant::ZERO, 30_000, 9_000, CLOCK).unwrap().seq, None);
    }

    proptest! {
        #[test]
        fn what_is_true_holds_however_late_the_first_packet_comes(
            seq: u16, rtptime: u32, lost in 0u16..3_000, s in 0u64..200, late in 0u64..9,
        ) {
            let said = Claim { end: None, ..claim(Some(seq), Some(rtptime)) };
            let now = Instant::from_nanos(s * 1_000_000_000);
            let timestamp = rtptime.wrapping_add((s + late) as u32 * CLOCK);
            let judged = said.judge(now, seq.wrapping_add(lost), timestamp, CLOCK);
            prop_assert_eq!(judged, Some(Judged { seq: Some(seq), rtptime: Some(rtptime) }));
        }
    }
}
