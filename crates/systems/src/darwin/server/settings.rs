//! Every constant of the server, by name, with its unit and its source.
//!
//! "Paper" is De Cicco, Mascolo and Palmisano, "An Experimental Investigation of the End-to-End QoS of the
//! Apple Darwin Streaming Server", section III. "Source" is the behaviour of Apple's public server, version
//! 6.0.3. Where no origin is named, it is the source, in both presets.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{Kind, check_bounds, setting, settings};

/// A millisecond in nanoseconds.
const MS: f64 = 1e6;

/// A set of the server's constants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// The paper's values; a value that it does not state follows the rules of `Source`.
    Paper,
    /// The public server's behaviour: its rules, and the effects of how it runs (see [`ServerSettings::of`]).
    Source,
    /// The rules of `Source`, with the changes that the paper's tables require: a timeout of 1 s at most, and thinning
    /// that reaches the file. No source states these.
    Fitted,
}

impl Preset {
    /// By their names in scenarios.
    pub const NAMED: [(&'static str, Preset); 3] =
        [("paper", Preset::Paper), ("source", Preset::Source), ("fitted", Preset::Fitted)];
}

/// How the congestion window grows when a packet is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Growth {
    /// Paper: slow start adds a segment for each packet, avoidance a segment for each window's worth of bytes
    /// acknowledged, which is one a round trip.
    Segments,
    /// Source: slow start adds the packet's own bytes `n`, avoidance `n * n / cwnd` rounded down, so that
    /// small packets add nothing.
    Bytes,
}

setting!(Growth => Kind::Words(vec!["segments", "bytes"]));

settings! {
    /// The server's constants. Sizes in bytes of an RTP packet, header included, unless noted otherwise.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ServerSettings {
        /// Reliable UDP is granted on request.
        /// Source: Darwin Streaming Server 6.0.3, preference reliable_udp.
        pub reliable_udp: bool,
        /// The congestion window holds packets back. Without it the window is kept but never binds.
        pub congestion_control: bool,
        /// New packets of Reliable UDP leave at the rate at which acknowledgements return, the window per mean round
        /// trip, and not as a burst of all that the window admits. Before the first acknowledgement `initial_timeout`
        /// replaces the round trip. The public server sends bursts.
        /// Source: ours; De Cicco et al. print a loss of about 5 % at each capacity, which bursts into 10 kB exceed.
        pub paced: bool,
        /// Packets held for lost are sent again. Without it they are given up, and the window is cut all the
        /// same.
        pub retransmission: bool,
        /// Media is sent ahead of its time. Without it every packet waits for its transmit time.
        pub overbuffering: bool,

        /// Largest RTP payload of a packet, without the RTP header. Ours: the size that fits an Ethernet frame, as
        /// hinting programs choose.
        /// Source: ours.
        pub max_payload: u32 => |p| p.least(64).most(65_000),

        /// A segment: the least window.
        pub segment_bytes: u32 => |p| p.least(64).most(65_000),
        /// The window's cap for media slower than `medium_window_above_bps`.
        /// Source: Darwin Streaming Server 6.0.3, preference small_window_size.
        pub small_window_bytes: u32 => |p| p.most(ServerSettings::MOST_WINDOW).not_below(&["segment_bytes"]),
        /// The window's cap from there to `large_window_above_bps`.
        /// Source: Darwin Streaming Server 6.0.3, preference medium_window_size.
        pub medium_window_bytes: u32 => |p| p.most(ServerSettings::MOST_WINDOW).not_below(&["segment_bytes"]),
        /// The window's cap for faster media, and for media of unknown rate.
        /// Source: Darwin Streaming Server 6.0.3, preference large_window_size.
        pub large_window_bytes: u32 => |p| p.most(ServerSettings::MOST_WINDOW).not_below(&["segment_bytes"]),
        /// The media's rate is known. The public server reads it from totals that Apple's hinting programs write
        /// (`hinf`); for a file hinted by others it has none.
        pub media_rate_known: bool,
        /// Bit/s of all tracks of the asset together.
        /// Source: Darwin Streaming Server 6.0.3, preference window_size_threshold.
        pub medium_window_above_bps: u64,
        /// Bit/s of all tracks of the asset together.
        /// Source: Darwin Streaming Server 6.0.3, preference window_size_max_threshold.
        pub large_window_above_bps: u64,
        /// A session begins in slow start. Without it, both the window and the slow-start threshold begin
        /// at the cap.
        /// Source: Darwin Streaming Server 6.0.3, preference slow_start_enabled.
        pub slow_start: bool,
        /// With slow start, the window begins at this share of its cap.
        pub initial_window_share: f64 => |p| p.above(0).most(1),
        /// With slow start, the slow-start threshold begins at this share of the window's cap.
        pub initial_threshold_share: f64 => |p| p.above(0).most(1),
        /// How the window grows.
        /// Source: De Cicco et al., section III; Darwin Streaming Server 6.0.3.
        pub growth: Growth,
        /// An acknowledgement of a packet that is not outstanding (a duplicate, or one given up before) grows the
        /// window like any other, by a segment at most.
        pub duplicates_grow_window: bool,
        /// A packet given up because its time is over grows the window as if it had been acknowledged.
        pub expiry_grows_window: bool,
        /// At a cut the slow-start threshold becomes this share of the window. Paper and source: 3/4.
        /// Source: De Cicco et al., section III; Darwin Streaming Server 6.0.3.
        pub threshold_decrease: f64 => |p| p.above(0).most(1),
        /// At a cut the window becomes this share of itself. Paper and source: 1/2.
        /// Source: De Cicco et al., section III; Darwin Streaming Server 6.0.3.
        pub window_decrease: f64 => |p| p.above(0).most(1),
        /// Paper and source: after a cut the window, then below the threshold, grows as in slow start.
        /// Without it the threshold is set no higher than the window, as TCP does after three duplicate
        /// acknowledgements.
        /// Source: De Cicco et al., section III; Darwin Streaming Server 6.0.3.
        pub slow_start_after_loss: bool,
        /// The window is cut again only when more than this has passed since the last cut.
        pub cut_spacing: Duration,

        /// Paper: a packet is held for lost when it has waited this long for its acknowledgement. `None`
        /// (source): the timeout follows the measured round trip (Jacobson and Karels: mean plus four mean
        /// deviations).
        /// Source: De Cicco et al., section III; Darwin Streaming Server 6.0.3.
        pub fixed_timeout: Option<Duration> => |p| p.least(MS),
        /// The measured timeout's start.
        pub initial_timeout: Duration,
        /// Its least.
        pub min_timeout: Duration => |p| p.not_above(&["max_timeout"]),
        /// Its most.
        pub max_timeout: Duration,
        /// Paper: a packet is held for lost after this many "duplicate acknowledgements". As
        /// acknowledgements of Reliable UDP name single packets, that is here: this many packets that were
        /// sent after its last transmission have been acknowledged while it has not. `None` (source): only
        /// a timeout shows a loss.
        /// Source: De Cicco et al., section III; Darwin Streaming Server 6.0.3.
        pub duplicate_acks: Option<u32> => |p| p.least(1),
        /// Packets are sent again also after the last new one. The public server looks for packets to send again
        /// before a new packet and when its task wakes before one is due; after the last it does neither.
        pub repeats_after_last: bool,
        /// Share of the datagrams with acknowledgements that are dropped while there is something new to send, drawn
        /// for each, with the reports in them. The public server drops RTCP that arrives while the session's task holds
        /// its lock, and so sends 4 to 10 packets of a run again that had arrived. Fitted: with 0.005 it is 8 in 35 s,
        /// in the mean.
        /// Source: ours, fitted to Darwin Streaming Server 6.0.3.
        pub busy_ack_loss: f64 => |p| p.least(0).most(1),
        /// Each sleep of the session's task lasts longer than it asked for, by a time drawn evenly from 0
        /// to this. The public server's next sleep begins when it is awake and has sent, so that this adds
        /// up, and it counts whole milliseconds: of sleeps of 50 ms some are 51, and only those are "more
        /// than `send_interval`" by themselves. Fitted: with 0.97 ms the lead grows by 1.37 s a second, as
        /// the public server's does (1.36 to 1.38); with 0 by 1.5.
        /// Source: ours, fitted to Darwin Streaming Server 6.0.3.
        pub wake_delay: Duration => |p| p.most(1_000.0 * MS),
        /// Sleeps that are longer by more than `send_interval` are cut to this, to look for packets to send
        /// again.
        /// Source: Darwin Streaming Server 6.0.3, preference max_retransmit_delay.
        pub max_retransmit_delay: Duration => |p| p.least(MS),
        /// With a full window, the time to the next attempt.
        /// Source: Darwin Streaming Server 6.0.3, preference flow_control_probe_interval.
        pub flow_control_probe_interval: Duration => |p| p.least(MS),

        /// Packets due within this are sent with those that are due; the step of overbuffering. 0 means 200
        /// ms and no overbuffering.
        /// Source: Darwin Streaming Server 6.0.3, preference send_interval.
        pub send_interval: Duration,
        /// With overbuffering, packets due within this are sent at once.
        pub free_send_ahead: Duration,
        /// Media per time while the lead grows; below 1 is 1.
        /// Source: Darwin Streaming Server 6.0.3, preference overbuffer_rate.
        pub overbuffer_rate: f64,
        /// The longest lead.
        /// Source: Darwin Streaming Server 6.0.3, preference max_send_ahead_time.
        pub max_send_ahead: Duration,

        /// How late a packet may be if the player gives no limit; all delays below shift with it.
        pub late_tolerance: Duration,
        /// A video packet that is later is dropped, at a tolerance of 1.5 s.
        /// Source: Darwin Streaming Server 6.0.3, preference drop_all_video_delay.
        pub drop_video_delay: Duration,
        /// Another packet that is later is dropped, at a tolerance of 1.5 s.
        /// Source: Darwin Streaming Server 6.0.3, preference drop_all_packets_delay.
        pub drop_other_delay: Duration,
        /// Packets that are later bring the worst level.
        /// Source: Darwin Streaming Server 6.0.3, preference thin_all_the_way_delay.
        pub thin_all_delay: Duration,
        /// Packets that are later raise the level at every check.
        /// Source: Darwin Streaming Server 6.0.3, preference always_thin_delay.
        pub always_thin_delay: Duration,
        /// Packets that are later raise the level at every second check if lateness grows.
        /// Source: Darwin Streaming Server 6.0.3, preference start_thinning_delay.
        pub start_thinning_delay: Duration,
        /// Packets that are less late lower the level if lateness shrinks.
        /// Source: Darwin Streaming Server 6.0.3, preference start_thicking_delay.
        pub start_thicking_delay: Duration,
        /// Packets that are ahead by more lift all thinning; does not shift.
        /// Source: Darwin Streaming Server 6.0.3, preference thick_all_the_way_delay, negated.
        pub thick_all_ahead: Duration,
        /// Time between checks.
        /// Source: Darwin Streaming Server 6.0.3, preference quality_check_interval.
        pub quality_check_interval: Duration,
        /// Tracks share the time of the last check, whether thinning has begun, and the level. Without it each has
        /// its own.
        pub lateness_per_session: bool,
        /// The level of a Reliable UDP or TCP session thins the video that is sent. In the public server it
        /// never does: it is kept in the session, and the file is read by another level, of the track, that
        /// only plain UDP sets.
        pub thinning_reaches_file: bool,
        /// Plain UDP: loss above this in a player's report is bad, in percent.
        pub plain_thin_loss_percent: u32,
        /// Plain UDP: as many bad reports in a row raise the level.
        pub plain_thin_reports: u32,
        /// Plain UDP: loss below this is good, in percent.
        pub plain_thick_loss_percent: u32,
        /// Plain UDP: as many good reports in a row lower the level.
        pub plain_thick_reports: u32,
        /// Plain UDP: as many reports of "getting worse" in a row raise the level.
        pub plain_worse_reports: u32,

        /// Time between sender reports.
        pub sender_report_interval: Duration,
        /// The time for which a player may gather acknowledgements is computed again when more than this has passed.
        pub ack_timeout_interval: Duration,
        /// Its start and its least.
        pub min_ack_timeout: Duration => |p| p.not_above(&["max_ack_timeout"]),
        /// Its most.
        pub max_ack_timeout: Duration,
        /// A player that asks for overbuffering is sent an RTSP request with this body before the answer to
        /// its first SETUP, which waits for the player's answer: a measurement of the round trip. 0 sends
        /// none.
        pub probe_bytes: u32 => |p| p.most(64 * 1024),

        /// A session ends after this long without RTCP and RTSP from the player.
        /// Source: Darwin Streaming Server 6.0.3, preference rtp_timeout.
        pub rtp_timeout: Duration => |p| p.least(1_000.0 * MS),
        /// A connection without session ends after a silence of this length.
        /// Source: Darwin Streaming Server 6.0.3, preference real_rtsp_timeout.
        pub rtsp_timeout: Duration => |p| p.least(1_000.0 * MS),
        /// The highest Speed of a PLAY request.
        /// Source: Darwin Streaming Server 6.0.3, preference max_allowed_speed.
        pub max_speed: f64 => |p| p.above(0),
    }
}

impl ServerSettings {
    /// Makes the constants of `preset`. The public server's way of running (its repeats at the end, its missed RTCP,
    /// its wake-up times, the state its tracks share) is no stated rule, and is in `Source` alone.
    pub fn of(preset: Preset) -> Self {
        let rules = rules();
        let ms = Duration::from_millis;
        match preset {
            Preset::Source => ServerSettings {
                repeats_after_last: false,
                busy_ack_loss: 0.005,
                wake_delay: Duration::from_micros(970),
                lateness_per_session: true,
                ..rules
            },
            Preset::Paper => ServerSettings {
                growth: Growth::Segments,
                fixed_timeout: Some(ms(250)),
                duplicate_acks: Some(3),
                ..rules
            },
            Preset::Fitted => ServerSettings { max_timeout: ms(1000), thinning_reaches_file: true, ..rules },
        }
    }

    /// The greatest cap of a window.
    pub const MOST_WINDOW: u32 = 1 << 24;

    /// Refuses unusable settings: returns the constant, the fault and the remedy.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        check_bounds(&Self::fields(), self)
    }
}

fn rules() -> ServerSettings {
    let ms = Duration::from_millis;
    ServerSettings {
        reliable_udp: true,
        congestion_control: true,
        paced: false,
        retransmission: true,
        overbuffering: true,

        max_payload: 1450,

        segment_bytes: 1466,
        small_window_bytes: 24 * 1024,
        medium_window_bytes: 48 * 1024,
        large_window_bytes: 64 * 1024,
        media_rate_known: true,
        medium_window_above_bps: 200 * 1024,
        large_window_above_bps: 1000 * 1024,
        slow_start: true,
        initial_window_share: 0.5,
        initial_threshold_share: 0.75,
        growth: Growth::Bytes,
        duplicates_grow_window: true,
        expiry_grows_window: true,
        threshold_decrease: 0.75,
        window_decrease: 0.5,
        slow_start_after_loss: true,
        cut_spacing: ms(250),

        fixed_timeout: None,
        initial_timeout: ms(600),
        min_timeout: ms(600),
        max_timeout: ms(24_000),
        duplicate_acks: None,
        repeats_after_last: true,
        busy_ack_loss: 0.0,
        wake_delay: Duration::ZERO,
        max_retransmit_delay: ms(500),
        flow_control_probe_interval: ms(10),

        send_interval: ms(50),
        free_send_ahead: ms(1000),
        overbuffer_rate: 2.0,
        max_send_ahead: ms(25_000),

        late_tolerance: ms(1500),
        drop_video_delay: ms(1750),
        drop_other_delay: ms(2500),
        thin_all_delay: ms(1500),
        always_thin_delay: ms(750),
        start_thinning_delay: ms(0),
        start_thicking_delay: ms(250),
        thick_all_ahead: ms(2000),
        quality_check_interval: ms(1000),
        lateness_per_session: false,
        thinning_reaches_file: false,
        plain_thin_loss_percent: 30,
        plain_thin_reports: 3,
        plain_thick_loss_percent: 5,
        plain_thick_reports: 6,
        plain_worse_reports: 2,

        sender_report_interval: ms(7000),
        ack_timeout_interval: ms(3000),
        min_ack_timeout: ms(20),
        max_ack_timeout: ms(100),
        probe_bytes: 1400,

        rtp_timeout: ms(120_000),
        rtsp_timeout: ms(180_000),
        max_speed: 4.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presets_can_be_worked_with_and_differ_in_what_the_paper_states() {
        let [paper, source] = [Preset::Paper, Preset::Source].map(ServerSettings::of);
        assert!(paper.check().is_ok() && source.check().is_ok());
        assert_eq!((paper.fixed_timeout, paper.duplicate_acks), (Some(Duration::from_millis(250)), Some(3)));
        let (growth, fixed_timeout, duplicate_acks) = (source.growth, None, None);
        assert_eq!(ServerSettings { growth, fixed_timeout, duplicate_acks, ..paper }, rules());
        let fitted = ServerSettings::of(Preset::Fitted);
        assert_eq!((fitted.max_timeout, fitted.thinning_reaches_file), (Duration::from_secs(1), true));
        let (max_timeout, thinning_reaches_file) = (source.max_timeout, false);
        assert_eq!(ServerSettings { max_timeout, thinning_reaches_file, ..fitted }, rules());
    }

    #[test]
    fn how_the_public_server_runs_is_in_source_alone() {
        let source = ServerSettings::of(Preset::Source);
        assert!(!source.repeats_after_last && source.lateness_per_session);
        assert!(source.busy_ack_loss > 0.0 && source.wake_delay > Duration::ZERO);
        let (repeats_after_last, busy_ack_loss, wake_delay) = (true, 0.0, Duration::ZERO);
        let lateness_per_session = false;
        let of_rules =
            ServerSettings { repeats_after_last, busy_ack_loss, wake_delay, lateness_per_session, ..source };
        assert_eq!(of_rules, rules());
    }

    #[test]
    fn what_would_divide_by_nothing_or_never_end_is_refused_by_its_name() {
        let source = || ServerSettings::of(Preset::Source);
        let second = Duration::from_secs(1);
        for (settings, name) in [
            (ServerSettings { segment_bytes: 0, ..source() }, "segment_bytes"),
            (ServerSettings { max_payload: 0, ..source() }, "max_payload"),
            (ServerSettings { small_window_bytes: 10, ..source() }, "small_window_bytes"),
            (ServerSettings { large_window_bytes: 10, ..source() }, "large_window_bytes"),
            (ServerSettings { window_decrease: f64::NAN, ..source() }, "window_decrease"),
            (ServerSettings { initial_threshold_share: 0.0, ..source() }, "initial_threshold_share"),
            (ServerSettings { min_timeout: second * 60, ..source() }, "min_timeout"),
            (ServerSettings { min_ack_timeout: second, ..source() }, "min_ack_timeout"),
            (
                ServerSettings { flow_control_probe_interval: Duration::ZERO, ..source() },
                "flow_control_probe_interval",
            ),
            (ServerSettings { max_retransmit_delay: Duration::ZERO, ..source() }, "max_retransmit_delay"),
            (ServerSettings { duplicate_acks: Some(0), ..source() }, "duplicate_acks"),
            (ServerSettings { fixed_timeout: Some(Duration::ZERO), ..source() }, "fixed_timeout"),
            (ServerSettings { busy_ack_loss: 1.5, ..source() }, "busy_ack_loss"),
            (ServerSettings { wake_delay: second * 2, ..source() }, "wake_delay"),
            (ServerSettings { max_speed: 0.0, ..source() }, "max_speed"),
            (ServerSettings { overbuffer_rate: f64::INFINITY, ..source() }, "overbuffer_rate"),
            (ServerSettings { probe_bytes: u32::MAX, ..source() }, "probe_bytes"),
            (ServerSettings { rtsp_timeout: Duration::ZERO, ..source() }, "rtsp_timeout"),
        ] {
            let (found, what) = settings.check().unwrap_err();
            assert_eq!(found, name);
            assert!(!what.is_empty());
        }
    }
}
