//! A flow's settings of its player, and the sets of them that real players have.

use serde::{Deserialize, Serialize};
use streamgauge_base::{BitRate, Duration};
use streamgauge_plan::{Kind, check_bounds, settings};

use crate::abr::{self, RULES, Tuning};

/// Manifests that a player can fetch first.
pub const FORMATS: [&str; 5] = ["mpd", "mpd-timeline", "mpd-ranges", "hls", "hls-ranges"];

settings! {
    /// The player's constants. Times in nanoseconds.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct DashPlayerSettings {
        /// The rule that chooses levels, or in sim your own function, FILE.py:NAME; docs/abr.md describes each.
        pub rule: String => |p| p.kind(Kind::WordsOrFunction(rule_names())),
        /// The manifest that it asks for: an MPD with segments by number, by timeline, or as byte ranges of one file a level;
        /// HLS playlists of segments, or of byte ranges.
        /// Source: ISO/IEC 23009-1 section 5.3.9; RFC 8216 section 4.
        pub format: String => |p| p.kind(Kind::Words(FORMATS.to_vec())),
        /// How much of the throughput the rule may use, in place of its own share.
        #[serde(default)]
        pub safety_factor: Option<f64> => |p| p.above(0.0).most(2.0),
        /// A segment may be given up for another level during its transfer, where the rule does that.
        pub abandonment: bool,
        /// The throughput to begin with, in place of the rule's own.
        #[serde(default)]
        pub initial_bps: Option<u64> => |p| p.called("initial_rate").least(1),
        /// The level of the rule `fixed`, from 0 for the lowest rate; the highest if there are fewer.
        pub level: u32 => |p| p.most(1_000),
        /// No segment is asked for while so much media is held.
        pub buffer: Duration => |p| p.kind(Kind::Time).least(DashPlayerSettings::LEAST_BUFFER.as_nanos() as f64),
        /// A segment of pictures is asked for where all of it fits in the buffer, not wherever any of it does.
        /// Source: dash.js 5.2.1, streaming/controllers/ScheduleController.js.
        pub fits_whole: bool,
        /// How often a full buffer is looked at for room; with 0 s a segment is asked for as soon as there is room.
        /// Source: dash.js 5.2.1, scheduling.defaultTimeout; Shaka 5.2, half of streaming.updateIntervalSeconds; hls.js 1.7,
        /// controller/stream-controller.ts, TICK_INTERVAL.
        #[serde(default)]
        pub look_each: Duration,
        /// A level above that of the segment that is shown takes its place, and that of all held after it.
        /// Source: dash.js 5.2.1, streaming/StreamProcessor.js, fast switching.
        pub fast_switch: bool,
        /// A complete segment is not requested again at the same level: the browser's cache has it.
        /// Source: RFC 9111 section 4.2.2, heuristic freshness.
        #[serde(default)]
        pub cache: bool,
        /// The position in the media where play begins, on demand.
        #[serde(default)]
        pub begin_at: Duration,
        /// The first segment is the one with the media so long before `begin_at`.
        /// Source: Shaka 5.2, streaming.inaccurateManifestTolerance.
        #[serde(default)]
        pub begin_early: Duration,
        /// An initialization segment of pictures is asked for on a second connection, at the same time as the media segment
        /// that needs it.
        /// Source: Shaka 5.2, streaming.segmentPrefetchLimit, media/segment_prefetch.js; hls.js 1.7, as real trials have it,
        /// docs/fidelity-abr.md.
        #[serde(default)]
        pub init_beside: bool,
        /// The time from the manifest to the player's first request for media. If there are several, one is drawn: they
        /// are quantiles at evenly spaced probabilities.
        /// Source: measured with players in Chromium, docs/fidelity-abr.md.
        #[serde(default)]
        pub set_up: Vec<Duration>,
        /// The delay with which it reads a segment's bytes.
        /// Source: measured with players in Chromium, docs/fidelity-abr.md.
        #[serde(default)]
        pub read: Vec<Duration>,
        /// The same of the first segment.
        /// Source: measured of players in Chromium, docs/fidelity-abr.md.
        #[serde(default)]
        pub first_read: Vec<Duration>,
        /// How long it takes from a segment's last byte until it asks for the next one.
        /// Source: measured of players in Chromium, docs/fidelity-abr.md.
        #[serde(default)]
        pub append: Vec<Duration>,
        /// The same for an initialization segment or a playlist after the first segment.
        /// Source: measured with players in Chromium, docs/fidelity-abr.md.
        #[serde(default)]
        pub init_append: Vec<Duration>,
        /// The same of the first segment.
        /// Source: measured of players in Chromium, docs/fidelity-abr.md.
        #[serde(default)]
        pub first_append: Vec<Duration>,
        /// How long it takes from the last byte of the segment where play begins until its first picture is shown.
        /// Source: measured of players in Chromium, docs/fidelity-abr.md.
        #[serde(default)]
        pub first_picture: Vec<Duration>,
        /// How much media is gathered before any is shown; with 0 s a segment is enough.
        pub prebuffer: Duration => |p| p.not_above(&["buffer"]),
        /// The media that is gathered after a stall before play resumes.
        pub rebuffer: Duration => |p| p.not_above(&["buffer"]),
        /// Requests follow each other on one connection; else each has a connection of its own.
        /// Source: RFC 9112 section 9.3.
        pub persistent: bool,
        /// Sound is asked for on a connection of its own, at the same time as pictures.
        pub parallel: bool,
        /// Segments that are asked for at once on a connection, one behind the other.
        /// Source: RFC 9112 section 9.3.2.
        pub pipeline: u32 => |p| p.least(1).most(2),
        /// With a pipeline: the next segment is chosen when so much of the one before has come.
        pub choose_at_percent: u32 => |p| p.least(1).most(100),
        /// While the buffer is full nothing is read, though it was asked for: the connection's window closes.
        pub stops_reading: bool,
        /// Times that a segment is asked for before it is skipped.
        pub tries: u32 => |p| p.least(1).most(100),
        /// How long the player waits before it asks again, twice as long each time, 8 s at most.
        pub backoff: Duration,
        /// Segments in a row that may be skipped before the player gives up.
        pub skips: u32 => |p| p.most(10_000),
        /// The time without any received data after which a request has failed.
        pub give_up_after: Duration => |p| p.least(1e9),
        /// An answer that is not whole after so long is a failure.
        pub longest_request: Duration => |p| p.least(1e9),
        /// The distance from the live edge at which play begins. Default: the manifest's, or three segments.
        /// Source: ISO/IEC 23009-1 section 5.3.1.2, suggestedPresentationDelay; RFC 8216 section 6.3.3.
        #[serde(default)]
        pub live_delay: Option<Duration>,
        /// Each request contains the player's buffer and needs, as Common Media Client Data.
        /// Source: CTA-5004.
        pub cmcd: bool,
    }
}

/// The names of all rules.
pub fn rule_names() -> Vec<&'static str> {
    RULES.iter().map(|rule| rule.name).collect()
}

impl DashPlayerSettings {
    /// Less holds no segment.
    pub const LEAST_BUFFER: Duration = Duration::from_millis(500);

    /// The settings of the rule.
    pub fn tuning(&self, seed: u64) -> Tuning {
        Tuning {
            safety_factor: self.safety_factor,
            abandons: self.abandonment,
            initial: self.initial_bps.map(BitRate::from_bps),
            level: self.level as usize,
            seed,
        }
    }

    /// Checks the settings. The error has the constant, its fault and the accepted values.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        check_bounds(&Self::fields(), self)?;
        abr::make(&self.rule, &self.tuning(0)).map_err(|what| ("rule", what))?;
        if !FORMATS.contains(&self.format.as_str()) {
            return Err((
                "format",
                format!("nothing is called {:?}; give one of {}", self.format, FORMATS.join(", ")),
            ));
        }
        Ok(())
    }
}

/// The player that a set of constants is from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlayerKind {
    /// Ours.
    Usual,
    /// dash.js 5.2.
    DashJs,
    /// hls.js 1.7.
    HlsJs,
    /// Shaka 5.2.
    Shaka,
    /// ExoPlayer 2.19.
    ExoPlayer,
    /// GStreamer's dashdemux2.
    GStreamer,
    /// VLC as it was in late 2011.
    Vlc2011,
    /// VLC 2.1.
    Vlc2012,
    /// VLC 3.
    Vlc3,
}

impl PlayerKind {
    /// Each by its name in scenarios.
    pub const NAMED: [(&'static str, PlayerKind); 9] = [
        ("usual", PlayerKind::Usual),
        ("dashjs", PlayerKind::DashJs),
        ("hlsjs", PlayerKind::HlsJs),
        ("shaka", PlayerKind::Shaka),
        ("exoplayer", PlayerKind::ExoPlayer),
        ("gstreamer", PlayerKind::GStreamer),
        ("vlc-2011", PlayerKind::Vlc2011),
        ("vlc-2012", PlayerKind::Vlc2012),
        ("vlc-3", PlayerKind::Vlc3),
    ];
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn quantiles(times_ms: &[u64]) -> Vec<Duration> {
    times_ms.iter().map(|one| ms(*one)).collect()
}

impl DashPlayerSettings {
    /// The constants of a player: those that its source or documents state, else ours.
    pub fn of(kind: PlayerKind) -> Self {
        let usual = DashPlayerSettings {
            rule: "dashjs-dynamic".into(),
            format: "mpd".into(),
            safety_factor: None,
            abandonment: true,
            initial_bps: None,
            level: 0,
            buffer: s(30),
            fits_whole: false,
            look_each: Duration::ZERO,
            fast_switch: false,
            cache: false,
            begin_at: Duration::ZERO,
            begin_early: Duration::ZERO,
            init_beside: false,
            set_up: Vec::new(),
            read: Vec::new(),
            first_read: Vec::new(),
            append: Vec::new(),
            init_append: Vec::new(),
            first_append: Vec::new(),
            first_picture: Vec::new(),
            prebuffer: Duration::ZERO,
            rebuffer: Duration::ZERO,
            persistent: true,
            parallel: true,
            pipeline: 1,
            choose_at_percent: 100,
            stops_reading: false,
            tries: 4,
            backoff: s(1),
            skips: 3,
            give_up_after: s(20),
            longest_request: s(120),
            live_delay: None,
            cmcd: false,
        };
        match kind {
            PlayerKind::Usual => usual,
            // bufferTimeDefault 18 s, retryAttempts 3 of 1 s, fragmentRequestTimeout 20 s, then it ends.
            PlayerKind::DashJs => DashPlayerSettings {
                buffer: s(18),
                fits_whole: true,
                look_each: ms(500),
                fast_switch: true,
                cache: true,
                longest_request: s(20),
                skips: 0,
                set_up: quantiles(&[59, 67, 71, 72, 81, 93, 98, 112, 145, 214, 328]),
                read: quantiles(&[2, 2, 2, 2, 3, 3, 3, 4, 5, 10, 33]),
                first_read: quantiles(&[3, 3, 3, 4, 4, 4, 4, 6, 18, 36, 55]),
                append: quantiles(&[2, 5, 6, 6, 7, 8, 9, 11, 14, 22, 76]),
                init_append: quantiles(&[6, 6, 6, 7, 8, 8, 9, 10, 16, 37, 62]),
                first_append: quantiles(&[11, 12, 13, 14, 15, 17, 19, 28, 54, 129, 178]),
                first_picture: quantiles(&[2, 9, 16, 20, 27, 30, 58, 88, 212, 280, 518]),
                ..usual
            },
            // maxBufferLength 30 s; fragLoadPolicy: 10 s to the first byte, 120 s in all, 6 retries from 1 to 8 s.
            PlayerKind::HlsJs => DashPlayerSettings {
                rule: "hlsjs".into(),
                format: "hls".into(),
                look_each: ms(100),
                init_beside: true,
                tries: 7,
                give_up_after: s(10),
                skips: 0,
                set_up: quantiles(&[24, 27, 27, 28, 28, 32, 32, 66, 96, 96, 136]),
                read: quantiles(&[2, 2, 2, 2, 2, 3, 3, 3, 4, 5, 17]),
                first_read: quantiles(&[10, 10, 10, 10, 11, 12, 12, 20, 54, 54, 74]),
                append: quantiles(&[5, 6, 6, 7, 7, 8, 8, 9, 11, 13, 83]),
                init_append: quantiles(&[4, 5, 5, 5, 5, 6, 7, 8, 13, 23, 24]),
                first_append: quantiles(&[103, 127, 127, 134, 157, 192, 192, 216, 260, 260, 280]),
                first_picture: quantiles(&[107, 141, 141, 152, 172, 217, 217, 228, 257, 257, 287]),
                ..usual
            },
            // bufferingGoal 10 s; streaming.retryParameters: 2 attempts, 1 s, stall 5 s, timeout 30 s.
            PlayerKind::Shaka => DashPlayerSettings {
                rule: "shaka".into(),
                buffer: s(10),
                look_each: ms(500),
                begin_early: s(2),
                init_beside: true,
                tries: 2,
                give_up_after: s(5),
                longest_request: s(30),
                skips: 0,
                set_up: quantiles(&[37, 39, 39, 42, 42, 46, 46, 49, 51, 51, 103]),
                read: quantiles(&[1, 2, 2, 2, 2, 3, 3, 3, 4, 11, 37]),
                first_read: quantiles(&[2, 2, 2, 2, 2, 2, 2, 2, 12, 12, 47]),
                append: quantiles(&[2, 5, 6, 6, 7, 8, 9, 10, 14, 36, 89]),
                first_append: quantiles(&[3, 7, 7, 8, 9, 9, 9, 10, 56, 56, 101]),
                first_picture: quantiles(&[6, 8, 8, 23, 23, 23, 36, 36, 111, 111, 163]),
                ..usual
            },
            // DefaultLoadControl: 50 s, start 2.5 s, after a stall 5 s; 3 retries.
            PlayerKind::ExoPlayer => DashPlayerSettings {
                rule: "exoplayer".into(),
                buffer: s(50),
                prebuffer: Duration::from_millis(2_500),
                rebuffer: s(5),
                ..usual
            },
            // max-buffering-time 30 s; 3 errors.
            PlayerKind::GStreamer => DashPlayerSettings {
                rule: "gstreamer".into(),
                tries: 3,
                skips: 0,
                abandonment: false,
                ..usual
            },
            // stream_filter/dash: 30 s, a connection for each segment; 5 attempts, then the segment is skipped.
            PlayerKind::Vlc2011 => DashPlayerSettings {
                rule: "vlc-2011".into(),
                persistent: false,
                parallel: false,
                stops_reading: true,
                tries: 5,
                skips: 10_000,
                ..usual
            },
            // The same in 2.1: two segments asked for at once on one connection, the second at 80 % of the first.
            PlayerKind::Vlc2012 => DashPlayerSettings {
                rule: "vlc-2012".into(),
                parallel: false,
                pipeline: 2,
                choose_at_percent: 80,
                stops_reading: true,
                tries: 5,
                skips: 10_000,
                ..usual
            },
            // demux/adaptive: 30 s at most, 6 s before it plays.
            PlayerKind::Vlc3 => {
                DashPlayerSettings { rule: "vlc-3".into(), prebuffer: s(6), rebuffer: s(6), ..usual }
            }
        }
    }
}

impl Default for DashPlayerSettings {
    fn default() -> Self {
        DashPlayerSettings::of(PlayerKind::Usual)
    }
}
