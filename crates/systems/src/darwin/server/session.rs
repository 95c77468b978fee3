//! A session: tracks that are sent together, by one clock and through one congestion window.

use std::sync::Arc;

use streamgauge_base::{Duration, Instant, RandomStream};
use streamgauge_wire::reliable_udp::{ClientReport, Quality};
use streamgauge_wire::rtcp::{self, Packet};

use super::bandwidth::Tracker;
use super::flow_control::ReportedReception;
use super::lateness::{Checks, Say};
use super::line::Line;
use super::overbuffer::Overbuffer;
use super::resender::{Sign, Verdict};
use super::settings::ServerSettings;
use super::stream::{RtpStream, Way};
use super::{instant, millis, millis_of};
use crate::media::{Asset, UnitKind};

/// Never, in milliseconds.
const NEVER: i64 = i64::MAX;

/// A client that asks for media slower than at this speed gets it at this: transmit times grow with its inverse, and
/// stay far from the end of numbers.
const LEAST_SPEED: f64 = 0.01;

/// A host that looks this much later than its wake-up time was busy.
const HOST_LATE: Duration = Duration::from_millis(1);

/// Time between two events of the window, in milliseconds, unless it is cut.
const WINDOW_SAID_EACH: i64 = 50;

/// Time between two events of the lead, in milliseconds.
const LEAD_SAID_EACH: i64 = 500;

/// The goodbye follows this long after the last packet, in milliseconds, and not before the media's time is over:
/// players that find it beside media that they have not read yet leave that unread, and some, informed of the end while
/// they still hold media, never reach it.
const GOODBYE_AFTER: i64 = 500;

/// Tracks of one asset on their way to one player. Times in milliseconds where they are numbers.
///
/// Events: `rudp_cwnd` (B), `rudp_rto` (s), `rudp_cut` (B), `rudp_retransmit`, `rudp_expired`,
/// `rudp_given_up` (the RTP sequence number), `stale_drop` (s), `thinning` (the level), `overbuffer` (s).
pub struct Session {
    pub id: String,
    /// The asset's path as the player asked for it.
    pub path: String,
    pub asset: Arc<Asset>,
    pub streams: Vec<RtpStream>,
    settings: Arc<ServerSettings>,
    pub tracker: Tracker,
    pub overbuffer: Overbuffer,
    /// The state of lateness that tracks share, if they do.
    checks: Checks,
    play: Option<Play>,
    /// Time when the next new packet is tried.
    attempt: i64,
    /// Time when there is anything to do.
    wake: Option<Instant>,
    /// Whether the RTSP connection accepts no more.
    blocked: bool,
    verdicts: Vec<Verdict>,
    /// Bits sent since the time for gathering acknowledgements was last computed, and the time of that.
    interval: (u64, i64),
    said: SentWindow,
    lead_said: i64,
}

/// The window and the timeout last announced, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct SentWindow {
    window: u32,
    timeout: i64,
    at: i64,
}

/// The media being played.
#[derive(Clone, Copy, Debug)]
pub struct Play {
    /// Where in the asset it began, and where it ends.
    pub from: Duration,
    pub to: Duration,
    /// By how much the media sent begins before `from`.
    pub back: Duration,
    pub speed: f64,
    /// Time when it began.
    base: i64,
    /// Whether all new packets have been sent.
    sent: bool,
    /// Time when all was sent and nothing was outstanding any more.
    done_at: Option<i64>,
    said_bye: bool,
}

/// The arguments of PLAY.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask {
    pub from: Option<Duration>,
    pub to: Option<Duration>,
    pub speed: Option<f64>,
    /// How far back to a key frame it may begin.
    pub max_back: Option<Duration>,
}

impl Session {
    pub fn new(id: String, path: String, asset: Arc<Asset>, settings: Arc<ServerSettings>) -> Self {
        Session {
            id,
            path,
            asset,
            streams: Vec::new(),
            tracker: Tracker::new(&settings),
            overbuffer: Overbuffer::new(&settings),
            checks: Checks::default(),
            settings,
            play: None,
            attempt: NEVER,
            wake: None,
            blocked: false,
            verdicts: Vec::new(),
            interval: (0, 0),
            said: SentWindow::default(),
            lead_said: 0,
        }
    }

    /// Returns whether it is playing, or has reached the end.
    pub fn is_playing(&self) -> bool {
        self.play.is_some()
    }

    /// Begins to play, or to play elsewhere. `None` if the asset has nothing there.
    pub fn begin(&mut self, now: Instant, ask: Ask) -> Option<Play> {
        if let (Some(play), None, None) = (self.play, ask.from, ask.to) {
            return Some(play);
        }
        let duration = self.asset.duration;
        let from = ask.from.unwrap_or_else(|| self.position());
        let to = ask.to.map_or(duration, |to| to.min(duration));
        if from > duration || (from >= to && ask.from.is_some() && duration > Duration::ZERO) {
            return None;
        }
        let mut back = Duration::ZERO;
        if ask.from.is_some() {
            let start = ask.max_back.map_or(from, |most| self.key_frame(from, most));
            back = from.saturating_sub(start);
            for stream in &mut self.streams {
                stream.seek(&self.asset.tracks[stream.track], start);
            }
        }
        let bit_rate_bps = if self.settings.media_rate_known { self.asset.bit_rate_bps() } else { 0 };
        // As the public server does, where the level of thinning outlives a PLAY.
        self.checks.begin_anew();
        for stream in &mut self.streams {
            stream.resender.clear(&mut self.tracker);
            stream.checks.begin_anew();
            stream.lateness.begin_anew();
        }
        self.tracker.open(bit_rate_bps, &self.settings);
        self.overbuffer.restart();
        let plain = self.streams.iter().any(|stream| stream.way == Way::Plain);
        let speed = ask.speed.filter(|speed| *speed > 0.0 && !plain).unwrap_or(1.0);
        let speed = speed.max(LEAST_SPEED).min(self.settings.max_speed);
        let base = millis_of(now);
        let play = Play { from, to, back, speed, base, sent: false, done_at: None, said_bye: false };
        self.play = Some(play);
        self.interval = (0, base);
        (self.attempt, self.wake, self.blocked) = (base, Some(now), false);
        Some(play)
    }

    /// Returns where paused media continues.
    fn position(&self) -> Duration {
        let next = |stream: &RtpStream| stream.position(&self.asset.tracks[stream.track]);
        self.streams.iter().filter_map(next).min().unwrap_or(self.asset.duration)
    }

    /// Returns the time of the last key frame of the session's video before `time`, if it is not further back than
    /// `most`.
    fn key_frame(&self, time: Duration, most: Duration) -> Duration {
        let tracks = self.streams.iter().map(|stream| &self.asset.tracks[stream.track]);
        let keys = tracks.filter(|track| track.is_video()).filter_map(|track| {
            let until = track.units.partition_point(|unit| unit.at <= time);
            let key = track.units[..until].iter().rev().find(|unit| unit.kind == UnitKind::Key)?;
            Some(key.at).filter(|at| time.saturating_sub(*at) <= most)
        });
        keys.min().unwrap_or(time)
    }

    /// Stops sending; PLAY continues from here.
    pub fn pause(&mut self) {
        self.play = None;
        (self.attempt, self.wake, self.blocked) = (NEVER, None, false);
    }

    /// Sends each stream's goodbye.
    pub fn end(&mut self, now: Instant, line: &mut Line) {
        let said = self.play.is_some_and(|play| play.said_bye);
        for index in 0..self.streams.len() {
            if !said && self.streams[index].has_sent() {
                self.report(now, index, true, line);
            }
        }
    }

    /// Returns when it is next due.
    pub fn wake(&self) -> Option<Instant> {
        self.wake
    }

    /// Continues, as the RTSP connection has room.
    pub fn unblock(&mut self, now: Instant) {
        if std::mem::take(&mut self.blocked) {
            (self.attempt, self.wake) = (millis_of(now), Some(now));
        }
    }

    /// Sends all packets that are due.
    pub fn work(&mut self, now: Instant, line: &mut Line, draws: &mut RandomStream) {
        let Some(play) = self.play else { return };
        let Some(woken) = self.wake.filter(|wake| *wake <= now) else { return };
        let at = millis_of(now);
        if at >= self.attempt {
            self.attempt = self.send_due(now, at, &play, line);
        } else {
            self.resend_overdue(at, line);
        }
        let nap = millis(self.settings.max_retransmit_delay);
        let step = millis(self.settings.send_interval);
        let mut until = if self.attempt - at > nap + step { at + nap } else { self.attempt };
        let nothing_waits = !self.repeats() || self.streams.iter().all(|s| s.resender.is_empty());
        if self.play.is_some_and(|play| play.sent) && nothing_waits {
            let done_at = play.done_at.unwrap_or(at);
            let goodbye_at = Self::transmit_time(&play, play.to).max(done_at + GOODBYE_AFTER);
            let said_bye = at >= goodbye_at;
            if said_bye {
                self.end(now, line);
            }
            until = if said_bye { NEVER } else { goodbye_at };
            self.play = Some(Play { sent: true, done_at: Some(done_at), said_bye, ..play });
        }
        self.wake = self.sleep(woken, now, until, draws);
    }

    /// Returns when a task that was woken at `woken`, and looked at the time at `now`, wakes if it sleeps until the
    /// millisecond `until`.
    fn sleep(&self, woken: Instant, now: Instant, until: i64, draws: &mut RandomStream) -> Option<Instant> {
        let most = self.settings.wake_delay.as_nanos();
        if until == NEVER || most == 0 {
            return (until != NEVER).then(|| instant(until));
        }
        let sleep = Duration::from_millis((until - millis_of(now)).max(0).cast_unsigned());
        // A host that looks a little late adds nothing of its own to the delay.
        let from = if now.saturating_since(woken) < HOST_LATE { woken } else { now };
        Some(instant(until).max(from + sleep + Duration::from_nanos(draws.below(most))))
    }

    /// Returns whether packets are still sent again.
    fn repeats(&self) -> bool {
        self.settings.repeats_after_last || self.play.is_none_or(|play| !play.sent)
    }

    /// Returns whether RTCP may find it busy: it has new data for the asset's track over Reliable UDP.
    pub fn is_busy(&self, track: usize) -> bool {
        let reliable = |stream: &RtpStream| stream.track == track && stream.way == Way::Reliable;
        self.play.is_some_and(|play| !play.sent) && self.streams.iter().any(reliable)
    }

    /// Returns when media at `at` is to be sent.
    fn transmit_time(play: &Play, at: Duration) -> i64 {
        let into = at.saturating_sub(play.from);
        let scaled = if play.speed == 1.0 { millis(into) } else { (millis(into) as f64 / play.speed) as i64 };
        play.base + scaled
    }

    /// Sends new packets until one has to wait, and returns when that is to be tried again.
    fn send_due(&mut self, now: Instant, at: i64, play: &Play, line: &mut Line) -> i64 {
        let max_payload = self.settings.max_payload;
        loop {
            let mut first = None;
            let shared = Some(self.checks.level()).filter(|_| self.settings.lateness_per_session);
            for (index, stream) in self.streams.iter_mut().enumerate() {
                stream.follow_level(self.settings.thinning_reaches_file, shared);
                let next = stream.next(&self.asset.tracks[stream.track], max_payload);
                if let Some(next) = next.filter(|next| next.at < play.to) {
                    let due = Self::transmit_time(play, next.at);
                    if first.is_none_or(|(_, earliest, _)| due < earliest) {
                        first = Some((index, due, next.bytes));
                    }
                }
            }
            let Some((index, due, bytes)) = first else {
                self.play = Some(Play { sent: true, ..*play });
                return NEVER;
            };
            if let Some(again) = self.overbuffer.wait(due, at, bytes) {
                return again;
            }
            let way = self.streams[index].way;
            if way != Way::Plain && !self.in_time(index, due, at, play, line) {
                continue;
            }
            match way {
                Way::Reliable => {
                    self.resend_overdue(at, line);
                    if self.tracker.is_full() {
                        return at + millis(self.settings.flow_control_probe_interval);
                    }
                    if let Some(again) = self.tracker.paced_until(at) {
                        return again;
                    }
                }
                Way::Interleaved(..) if !line.backlog.is_clear() => {
                    self.blocked = true;
                    return NEVER;
                }
                Way::Plain | Way::Interleaved(..) => {}
            }
            self.send_new(now, at, (index, due, bytes), line);
        }
    }

    /// Has the packet judged by its lateness, and drops it if it is too late.
    fn in_time(&mut self, index: usize, due: i64, at: i64, play: &Play, line: &mut Line) -> bool {
        let stream = &mut self.streams[index];
        let checks = if self.settings.lateness_per_session { &mut self.checks } else { &mut stream.checks };
        let say = stream.lateness.note(checks, due, at, play.base);
        let late_s = (at - due) as f64 / 1e3;
        let now = instant(at);
        match say {
            Say::Send => true,
            Say::Changed => {
                let level = f64::from(checks.level());
                line.events.say(now, "thinning", level, "1", format!("{late_s:.3} s late"));
                true
            }
            Say::Drop => {
                // It uses up its sequence number: to the player it is lost.
                let sequence = stream.take().map_or(0, |(sequence, ..)| sequence);
                let limit_s = stream.lateness.drop_after() as f64 / 1e3;
                let reason = format!("packet {sequence} may be {limit_s:.3} s late");
                line.events.say(now, "stale_drop", late_s, "s", reason);
                false
            }
        }
    }

    fn send_new(&mut self, now: Instant, at: i64, (index, due, bytes): (usize, i64, u32), line: &mut Line) {
        let stream = &mut self.streams[index];
        let Some((sequence, piece, payload)) = stream.take() else { return };
        stream.send(&self.asset.tracks[stream.track], sequence, piece, &payload, line);
        if stream.way == Way::Reliable {
            let lifetime = stream.lateness.drop_after() - (at - due);
            stream.resender.sent(at, (sequence, piece, bytes), lifetime, &mut self.tracker);
            self.count_for_acks(at, bytes);
            self.tracker.pace(at, bytes);
            if self.said == SentWindow::default() {
                self.say_window(at, true, line);
            }
        }
        self.overbuffer.sent(bytes);
        if self.overbuffer.is_enabled() && at - self.lead_said >= LEAD_SAID_EACH {
            self.lead_said = at;
            line.events.say(now, "overbuffer", (due - at) as f64 / 1e3, "s", "");
        }
        if self.streams[index].owes_report(now, self.settings.sender_report_interval) {
            self.report(now, index, false, line);
        }
    }

    fn count_for_acks(&mut self, at: i64, bytes: u32) {
        let (bits, since) = &mut self.interval;
        *bits += u64::from(bytes) * 8;
        if at - *since > millis(self.settings.ack_timeout_interval) {
            self.tracker.update_ack_timeout(*bits, at - *since);
            self.interval = (0, at);
        }
    }

    /// Sends a stream's report.
    fn report(&mut self, now: Instant, index: usize, bye: bool, line: &mut Line) {
        let stream = &mut self.streams[index];
        let track = &self.asset.tracks[stream.track];
        let media = self.play.map_or(Duration::ZERO, |play| {
            let played = now.saturating_since(instant(play.base)).as_nanos() as f64 * play.speed;
            play.from + Duration::from_nanos(played as u64)
        });
        let timestamp = stream.timestamp(track, media);
        let ack_timeout_ms = u32::try_from(self.tracker.ack_timeout()).unwrap_or(u32::MAX);
        stream.report(now, timestamp, ack_timeout_ms, bye, line);
    }

    /// Looks on all tracks for packets that have waited too long.
    fn resend_overdue(&mut self, at: i64, line: &mut Line) {
        if !self.repeats() {
            return;
        }
        for index in 0..self.streams.len() {
            let stream = &mut self.streams[index];
            stream.resender.overdue(at, &mut self.tracker, &mut self.verdicts);
            self.carry_out(at, index, line);
        }
    }

    fn carry_out(&mut self, at: i64, index: usize, line: &mut Line) {
        if self.verdicts.is_empty() {
            return;
        }
        let now = instant(at);
        let mut verdicts = std::mem::take(&mut self.verdicts);
        for verdict in verdicts.drain(..) {
            match verdict {
                Verdict::Again { sequence, piece, cut, sign } => {
                    let stream = &mut self.streams[index];
                    let track = &self.asset.tracks[stream.track];
                    stream.send_again(track, sequence, piece, self.settings.max_payload, line);
                    line.events.say(now, "rudp_retransmit", f64::from(sequence), "1", why(sequence, sign));
                    self.say_cut(at, cut, || why(sequence, sign), line);
                }
                Verdict::GivenUp { sequence, cut, sign } => {
                    line.events.say(now, "rudp_given_up", f64::from(sequence), "1", why(sequence, sign));
                    self.say_cut(at, cut, || why(sequence, sign), line);
                }
                Verdict::Expired { sequence } => {
                    line.events.say(now, "rudp_expired", f64::from(sequence), "1", "");
                    self.say_window(at, false, line);
                }
            }
        }
        self.verdicts = verdicts;
    }

    fn say_cut(&mut self, at: i64, cut: bool, why: impl FnOnce() -> String, line: &mut Line) {
        if cut {
            line.events.say(instant(at), "rudp_cut", f64::from(self.tracker.window()), "B", why());
            self.say_window(at, true, line);
        }
    }

    /// Announces the window and the timeout if they differ from the last announcement, at a limited rate, unless
    /// `must`.
    pub fn say_window(&mut self, at: i64, must: bool, line: &mut Line) {
        if !must && at - self.said.at < WINDOW_SAID_EACH {
            return;
        }
        let (window, timeout) = (self.tracker.window(), self.tracker.timeout.current());
        let before = std::mem::replace(&mut self.said, SentWindow { window, timeout, at });
        let now = instant(at);
        if must || window != before.window {
            line.events.say(now, "rudp_cwnd", f64::from(window), "B", "");
        }
        if timeout != before.timeout {
            line.events.say(now, "rudp_rto", timeout as f64 / 1e3, "s", "");
        }
    }

    /// Handles RTCP that the player of the asset's track sent.
    pub fn rtcp(&mut self, now: Instant, track: usize, datagram: &[u8], line: &mut Line) {
        let at = millis_of(now);
        let Some(index) = self.streams.iter().position(|stream| stream.track == track) else { return };
        // A malformed packet ends the reading of its datagram; the packets before it count.
        for packet in rtcp::parse(datagram).map_while(Result::ok) {
            match packet {
                Packet::Ack(ack) if self.takes_acks(index) => {
                    for sequence in ack.sequences() {
                        self.streams[index].resender.acknowledged(at, sequence, &mut self.tracker);
                    }
                }
                Packet::ClientReport(report) => self.client_report(now, index, &report, line),
                _ => {}
            }
        }
        if self.takes_acks(index) {
            if self.repeats() {
                self.streams[index].resender.overtaken(at, &mut self.tracker, &mut self.verdicts);
                self.carry_out(at, index, line);
            }
            self.say_window(at, false, line);
        }
    }

    /// Returns whether it accepts acknowledgements: before the first PLAY there is no window, and they have no meaning.
    fn takes_acks(&self, index: usize) -> bool {
        self.streams[index].way == Way::Reliable && self.tracker.is_open()
    }

    fn client_report(&mut self, now: Instant, index: usize, report: &ClientReport, line: &mut Line) {
        let stream = &mut self.streams[index];
        if stream.way != Way::Plain {
            self.overbuffer.reported(report.overbuffer_window);
            return;
        }
        let loss = report.loss_percent_256.map(|loss| u32::from(loss) / 256);
        // The public server treats "no change" as "worse".
        let better = report.quality.map(|quality| quality == Quality::Better);
        if stream.flow_control.reported(ReportedReception { loss, better }) {
            let level = f64::from(stream.flow_control.level());
            let loss = loss.map_or("of reports alone".into(), |loss| format!("loss reported {loss} %"));
            line.events.say(now, "thinning", level, "1", loss);
        }
    }
}

fn why(sequence: u16, sign: Sign) -> String {
    match sign {
        Sign::Timeout => format!("timeout of packet {sequence}"),
        Sign::Acknowledgements(count) => format!("{count} duplicate acks of packet {sequence}"),
    }
}
