//! A plan's settings of progressive download, and every constant of server and player, by name and with its
//! source.
//!
//! "Ours" marks a constant without a published value for players in general, with the reason for our choice.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{Kind, TcpSpec, check_bounds, settings};

use crate::media::ClipSpec;

settings! {
    /// A clip as a file by HTTP/1.1, played while it is received.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct HttpSpec {
        /// Its frames.
        pub clip: ClipSpec,
        /// The player.
        pub player: HttpPlayerSettings,
        /// The server.
        pub server: HttpServerSettings,
        /// Each connection's transport.
        pub tcp: TcpSpec,
    }
}

settings! {
    /// The player's constants. Times in nanoseconds.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct HttpPlayerSettings {
        /// Bytes that each request asks for by Range; without it, the whole file.
        /// Source: RFC 9110 section 14.2.
        #[serde(default)]
        pub request: Option<u64> => |p| p.kind(Kind::Size).least(HttpPlayerSettings::LEAST_REQUEST),
        /// Requests follow each other on one connection; else each has a connection of its own.
        /// Source: RFC 9112 section 9.3.
        pub persistent: bool,
        /// How much media is gathered before any is shown.
        /// Source: ours; QuickTime's and VLC's are 1 s to 3 s.
        pub prebuffer: Duration,
        /// Media gathered after a stall before play resumes.
        /// Source: ours; as much as at the start.
        pub rebuffer: Duration,
        /// The player stops reading and requesting with this much media: the connection's window closes.
        /// Without it everything is read as it arrives.
        /// Source: ours.
        #[serde(default)]
        pub read_ahead: Option<Duration> => |p| p.not_below(&["prebuffer", "rebuffer"]),
        /// Reading resumes with this much media or less; without it, at five sixths of read_ahead.
        /// Source: ours.
        #[serde(default)]
        pub read_again: Option<Duration> => |p| p.not_above(&["read_ahead"]),
        /// Successive failed connections, without a byte of the file, before the player gives up.
        /// Source: ours.
        pub tries: u32 => |p| p.least(1).most(HttpPlayerSettings::MOST_TRIES),
        /// First wait before the player connects again. It doubles with each failure, to 60 s at most.
        /// Source: ours; the initial value of RFC 6298 section 2.
        pub backoff: Duration => |p| p.least(HttpPlayerSettings::LEAST_BACKOFF.as_nanos() as f64),
        /// A silence of this length, while data are awaited, is the failure of a connection.
        /// Source: ours.
        pub give_up_after: Duration => |p| p.least(HttpPlayerSettings::LEAST_PATIENCE.as_nanos() as f64),
    }
}

impl HttpPlayerSettings {
    /// Below this a request is about as long as its answer.
    pub const LEAST_REQUEST: u32 = 512;
    /// With 60 s between them half a day passes.
    pub const MOST_TRIES: u32 = 1_000;
    /// More frequent requests are a flood.
    pub const LEAST_BACKOFF: Duration = Duration::from_millis(10);
    /// Less than a round trip of a slow path is no patience.
    pub const LEAST_PATIENCE: Duration = Duration::from_secs(1);

    /// Returns the held media at which reading stops, and at which it resumes; None where it never stops.
    pub fn read_between(&self) -> Option<(Duration, Duration)> {
        let most = self.read_ahead?;
        Some((most, self.read_again.unwrap_or(most.div(6) * 5)))
    }

    /// Refuses settings that cannot be played with: the constant, the fault and the remedy.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        check_bounds(&Self::fields(), self)
    }
}

impl Default for HttpPlayerSettings {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        HttpPlayerSettings {
            request: None,
            persistent: true,
            prebuffer: second * 2,
            rebuffer: second * 2,
            read_ahead: Some(second * 30),
            read_again: None,
            tries: 5,
            backoff: second,
            give_up_after: second * 30,
        }
    }
}

settings! {
    /// The server's constants. Times in nanoseconds.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct HttpServerSettings {
        /// Connections that may wait to be accepted.
        /// Source: nginx's on Linux.
        pub backlog: u32 => |p| p.least(1).most(65_535),
        /// A connection without requests or traffic for this time is closed.
        /// Source: nginx's.
        pub keep_alive: Duration => |p| p.least(HttpServerSettings::LEAST_KEEP_ALIVE.as_nanos() as f64),
        /// How long a cache may use the file without asking: Cache-Control's max-age, in seconds.
        /// Source: ours; the field is RFC 9111 section 5.2.2.1's.
        pub max_age: Duration,
    }
}

impl HttpServerSettings {
    /// Less would end connections between a request and the next.
    pub const LEAST_KEEP_ALIVE: Duration = Duration::from_secs(1);

    /// Refuses settings that cannot be served with: the constant, the fault and the remedy.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        check_bounds(&Self::fields(), self)
    }
}

impl Default for HttpServerSettings {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        HttpServerSettings { backlog: 511, keep_alive: second * 75, max_age: second * 3600 }
    }
}
