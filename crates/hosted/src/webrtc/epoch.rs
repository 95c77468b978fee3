//! The base of str0m's clock: a time at which its dates read the same in every process, but for their highest bits.
//!
//! str0m pairs an instant with a date once in a process, and rounds dates to parts of a second. Two processes pair
//! at different fractions of a second, hence the same call has another course in each. The pair itself is hidden,
//! but sender reports show the date of an instant to the nanosecond. A short call in memory finds the offset,
//! and the base is the next instant with a date that is a multiple of [`SPAN`].

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime};

use str0m::media::MediaTime;
use str0m::net::{Protocol, Receive};
use str0m::rtp::RawPacket;
use str0m::rtp::rtcp::Rtcp;
use str0m::{Event, Input, Output, Rtc};
use streamgauge_base::{BitRate, Duration as OurDuration};

use super::{Call, CallEnd, addresses, made, media, video};
use crate::chance::Chance;

/// The span after which the compact form of NTP's time repeats (RFC 3550 section 4), and with it all of str0m's
/// shorter forms.
pub(super) const SPAN: Duration = Duration::from_secs(1 << 16);
/// From NTP's epoch to Unix's (RFC 868).
const NTP_TO_UNIX: Duration = Duration::from_secs(2_208_988_800);
/// The call in memory takes no longer.
const LONGEST: Duration = Duration::from_secs(10);
const STEP: Duration = Duration::from_millis(10);

/// Returns the base. It may be some hours ahead of the system's clock, which str0m never reads again.
///
/// # Panics
///
/// If str0m sends no sender report, which another version of it may do.
pub(super) fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(|| {
        let (at, date) = dated().expect("str0m 0.25 sends a sender report within 10 s of a call");
        let ntp = date.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default() + NTP_TO_UNIX;
        let span = SPAN.as_nanos();
        let since = ntp.as_nanos() % span;
        at + Duration::from_nanos((span - since) as u64)
    })
}

/// Returns an instant and str0m's date of it, by two sender reports.
fn dated() -> Option<(Instant, SystemTime)> {
    let rate = BitRate::from_bps(300_000);
    let call = Call { seed: 1, phase: OurDuration::ZERO, start: rate, desired: rate, datagram_bytes: 1150 };
    let start = Instant::now();
    let mut ends = [CallEnd::Sender, CallEnd::Receiver].map(|end| {
        let mut chance = Chance::new(end as u64);
        made(end, &call, start, &mut chance, true).map(|rtc| Line {
            rtc,
            chance,
            end,
            on_its_way: VecDeque::new(),
        })
    });
    let [Ok(sender), Ok(receiver)] = &mut ends else { return None };
    let (mut now, mut before) = (start, None);
    while now < start + LONGEST {
        // The first report may have waited for the connection. Two that agree have not.
        if let Some(date) = sender.advance(now, receiver).map(|date| date - (now - start))
            && before.replace(date) == Some(date)
        {
            return Some((start, date));
        }
        receiver.advance(now, sender);
        now += STEP;
    }
    None
}

/// One end, and the datagrams for it.
struct Line {
    rtc: Rtc,
    chance: Chance,
    end: CallEnd,
    on_its_way: VecDeque<Vec<u8>>,
}

impl Line {
    /// Acts at `now`; returns the date in a sender report that leaves now.
    fn advance(&mut self, now: Instant, other: &mut Line) -> Option<SystemTime> {
        let mut found = None;
        while let Some(bytes) = self.on_its_way.pop_front() {
            let (here, there) = addresses(self.end);
            let received = Receive::new(Protocol::Udp, there, here, &bytes).ok()?;
            self.step(other, &mut found, |rtc| drop(rtc.handle_input(Input::Receive(now, received))));
        }
        self.step(other, &mut found, |rtc| drop(rtc.handle_input(Input::Timeout(now))));
        if self.end == CallEnd::Sender && self.rtc.is_connected() {
            self.step(other, &mut found, |rtc| {
                let payload_type = video(rtc);
                if let (Some(kind), Some(writer)) = (payload_type, rtc.writer(media())) {
                    let _ = writer.write(kind, now, MediaTime::ZERO, vec![0; 100]);
                }
            });
            self.step(other, &mut found, |rtc| drop(rtc.handle_input(Input::Timeout(now))));
        }
        found
    }

    fn step(&mut self, other: &mut Line, found: &mut Option<SystemTime>, change: impl FnOnce(&mut Rtc)) {
        let Line { rtc, chance, .. } = self;
        // Not watched: this is where str0m pairs its clock with a date.
        chance.unwatched(|| {
            change(rtc);
            while let Ok(output) = rtc.poll_output() {
                match output {
                    Output::Timeout(_) => break,
                    Output::Transmit(sent) => other.on_its_way.push_back(sent.contents.to_vec()),
                    Output::Event(Event::RawPacket(packet)) => {
                        if let RawPacket::RtcpTx(Rtcp::SenderReport(report)) = *packet {
                            *found = Some(report.sender_info.ntp_time);
                        }
                    }
                    Output::Event(_) => {}
                }
            }
        });
    }
}
