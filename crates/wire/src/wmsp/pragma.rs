//! Pragma headers.

use std::fmt::{Display, Write as _};
use std::str::FromStr;

use crate::http::HttpHeaders;
use crate::mms::{StreamSwitch, ThinningLevel};
use crate::rtsp::parts::split;
use crate::words::words;

const PRAGMA: &str = "Pragma";
const SWITCH_COUNT: &str = "stream-switch-count";
const SWITCH_ENTRY: &str = "stream-switch-entry";
const LOG_LINE: &str = "log-line";

words! {
    /// Allowed operations on content, or on a playlist's entry ([MS-WMSP] section 2.2.1.4.8).
    ContentFeature {
        /// It is broadcast.
        Broadcast = "broadcast",
        /// The playlist's last.
        Last = "last",
        /// It is live.
        Live = "live",
        /// A playlist's.
        Playlist = "playlist",
        /// It plays from anywhere.
        Seekable = "seekable",
        /// There is a way back to the entry before.
        SkipBackward = "skipbackward",
        /// There is a way to the next.
        SkipForward = "skipforward",
        /// It plays fast and backwards.
        Stridable = "stridable",
    }
}

/// A token of a Pragma header with a faulty value; a server answers 400.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("Pragma: {token}={value:?} has no such value")]
pub struct PragmaFault {
    /// Which.
    pub token: &'static str,
    /// The faulty value.
    pub value: String,
}

/// The content of a message's Pragma headers: of a request, or of its response, as [MS-WMSP] section 2.2.1.4
/// has it for each. Tokens that are not here are left out. `None`, `false` and no switches are not written.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Pragmas {
    /// `no-cache`.
    pub no_cache: bool,
    /// `xPlayStrm`: start (2.2.1.4.36).
    pub play: Option<bool>,
    /// `xPlayNextEntry`: the playlist's next entry (2.2.1.4.35).
    pub play_next_entry: bool,
    /// `xStopStrm`: stop (2.2.1.4.38).
    pub stop: bool,
    /// `xKeepAliveInPause`: do not forget the session (2.2.1.4.34).
    pub keep_alive: bool,
    /// `xResetStrm`: in a response, the session is a new one (2.2.1.4.37).
    pub reset: bool,
    /// `client-id`: the session (2.2.1.4.5).
    pub client_id: Option<u32>,
    /// `xClientGUID`: the player, in braces (2.2.1.4.33).
    pub client_guid: Option<String>,
    /// `request-context`: which request it is (2.2.1.4.23).
    pub request_context: Option<u32>,
    /// `rate`: 1 to 5, or negative; written with three decimals (2.2.1.4.22).
    pub rate: Option<f64>,
    /// `stream-time`: play from there, in ms (2.2.1.4.28).
    pub stream_time_ms: Option<u32>,
    /// `stream-offset`: or from this byte of the ASF file; all ones for none (2.2.1.4.25).
    pub stream_offset: Option<u64>,
    /// `packet-num`: or from this ASF data packet; all ones for none (2.2.1.4.13).
    pub packet_num: Option<u32>,
    /// `max-duration`: the duration, in ms; with the highest bit, the end (2.2.1.4.11).
    pub max_duration: Option<u32>,
    /// `LinkBW`: the rate of the player's connection (2.2.1.4.9).
    pub link_bps: Option<u32>,
    /// `AccelBW`: send at this rate at first; in a response, the actual rate (2.2.1.4.1).
    pub accel_bps: Option<u32>,
    /// `AccelDuration`: the duration of media, in ms (2.2.1.4.2).
    pub accel_duration_ms: Option<u32>,
    /// `Speed`: how much faster than in real time, 1 or more; written with three decimals (2.2.1.4.24).
    pub speed: Option<f64>,
    /// `packet-pair-experiment`: send a packet pair; in a response, it is sent (2.2.1.4.14).
    pub packet_pair: Option<bool>,
    /// `pipeline-experiment`: several requests may be under way (2.2.1.4.15).
    pub pipeline: Option<bool>,
    /// `pipeline-request`: one of two that find that out (2.2.1.4.16).
    pub pipeline_request: bool,
    /// `pipeline-result`: the result (2.2.1.4.17).
    pub pipeline_result: Option<bool>,
    /// `version11-enabled`: several requests are under way (2.2.1.4.30).
    pub version11: Option<bool>,
    /// `features` of the content, in a response (2.2.1.4.8).
    pub features: Option<Vec<ContentFeature>>,
    /// `timeout`: how long the server remembers an idle session, in ms (2.2.1.4.29).
    pub timeout_ms: Option<u32>,
    /// `playlist-gen-id`: the playlist's entry that is meant (2.2.1.4.18).
    pub playlist_gen_id: Option<u32>,
    /// `playlist-seek-id`: the entry to go to (2.2.1.4.19).
    pub playlist_seek_id: Option<u32>,
    /// `client-lag`: how far the player is behind, in ms (2.2.1.4.6).
    pub client_lag_ms: Option<u32>,
    /// `expect-new-header`: another header follows the first (2.2.1.4.7).
    pub expect_new_header: Option<bool>,
    /// `stream-switch-count` and `stream-switch-entry`: the selected streams, and the ones they replace
    /// (2.2.1.4.26 and 27).
    pub stream_switches: Vec<StreamSwitch>,
    /// `log-line`: how it was ([MS-WMLOG]; 2.2.1.4.10).
    pub log_line: Option<String>,
}

impl Pragmas {
    /// Reads the headers.
    pub fn read(headers: &HttpHeaders) -> Result<Self, PragmaFault> {
        let mut pragmas = Pragmas::default();
        let mut count = None;
        for line in headers.all(PRAGMA) {
            // The one token that may have commas is alone.
            let alone =
                line.trim_start().split_once('=').filter(|(name, _)| name.eq_ignore_ascii_case(LOG_LINE));
            if let Some((_, log)) = alone {
                pragmas.log_line = Some(log.into());
                continue;
            }
            for token in split(line, ',').map(str::trim) {
                let (name, value) = token.split_once('=').unwrap_or((token, ""));
                pragmas.take(name.trim(), value.trim(), &mut count)?;
            }
        }
        match count {
            Some(count) if usize::try_from(count) != Ok(pragmas.stream_switches.len()) => {
                Err(PragmaFault { token: SWITCH_COUNT, value: count.to_string() })
            }
            _ => Ok(pragmas),
        }
    }

    fn take(&mut self, name: &str, value: &str, count: &mut Option<u32>) -> Result<(), PragmaFault> {
        macro_rules! tokens {
            ($($token:literal => $field:expr, $read:expr;)+) => {
                match name.to_ascii_lowercase().as_str() {
                    $($token => match $read(value) {
                        Some(read) => $field = read,
                        None => return Err(PragmaFault { token: $token, value: value.into() }),
                    },)+
                    _ => {}
                }
            };
        }
        fn of<T: FromStr>(value: &str) -> Option<Option<T>> {
            value.parse().ok().map(Some)
        }
        let bit = |value: &str| ["0", "1"].iter().position(|one| *one == value).map(|one| one == 1);
        let maybe = |value: &str| bit(value).map(Some);
        let real = |value: &str| value.parse::<f64>().ok().filter(|value| value.is_finite());
        let rate = |value: &str| real(value).filter(|rate| (1.0..=5.0).contains(&rate.abs())).map(Some);
        let speed = |value: &str| real(value).filter(|s| (1.0..=f64::from(u32::MAX)).contains(s)).map(Some);
        let features = |value: &str| Some(Some(ContentFeature::listed(value.trim_matches('"'))));
        tokens! {
            "no-cache" => self.no_cache, |_: &str| Some(true);
            "xplaystrm" => self.play, maybe;
            "xplaynextentry" => self.play_next_entry, bit;
            "xstopstrm" => self.stop, bit;
            "xkeepaliveinpause" => self.keep_alive, bit;
            "xresetstrm" => self.reset, bit;
            "client-id" => self.client_id, of;
            "xclientguid" => self.client_guid, guid;
            "request-context" => self.request_context, of;
            "rate" => self.rate, rate;
            "stream-time" => self.stream_time_ms, digits;
            "stream-offset" => self.stream_offset, offset;
            "packet-num" => self.packet_num, of;
            "max-duration" => self.max_duration, of;
            "linkbw" => self.link_bps, of;
            "accelbw" => self.accel_bps, of;
            "accelduration" => self.accel_duration_ms, of;
            "speed" => self.speed, speed;
            "packet-pair-experiment" => self.packet_pair, maybe;
            "pipeline-experiment" => self.pipeline, maybe;
            "pipeline-request" => self.pipeline_request, bit;
            "pipeline-result" => self.pipeline_result, maybe;
            "version11-enabled" => self.version11, maybe;
            "features" => self.features, features;
            "timeout" => self.timeout_ms, of;
            "playlist-gen-id" => self.playlist_gen_id, of;
            "playlist-seek-id" => self.playlist_seek_id, of;
            "client-lag" => self.client_lag_ms, of;
            "expect-new-header" => self.expect_new_header, maybe;
            "stream-switch-count" => *count, of;
            "stream-switch-entry" => self.stream_switches, switches;
        }
        Ok(())
    }

    /// Adds them: in one header, and the switches and the log in headers of their own, where they have to be alone. Panics if a
    /// text would break the message, as [`HttpHeaders::add`] does.
    pub fn add_to(&self, headers: &mut HttpHeaders) {
        let mut line = String::new();
        let mut put = |token: &str, value: Option<&dyn Display>| {
            let _ = write!(line, "{}{token}", if line.is_empty() { "" } else { ", " });
            let _ = value.map_or(Ok(()), |value| write!(line, "={value}"));
        };
        let flag = |flag: bool| flag.then_some(true);
        if self.no_cache {
            put("no-cache", None);
        }
        let bits = [
            ("xPlayStrm", self.play),
            ("xPlayNextEntry", flag(self.play_next_entry)),
            ("xStopStrm", flag(self.stop)),
            ("xKeepAliveInPause", flag(self.keep_alive)),
            ("xResetStrm", flag(self.reset)),
            ("packet-pair-experiment", self.packet_pair),
            ("pipeline-experiment", self.pipeline),
            ("pipeline-request", flag(self.pipeline_request)),
            ("pipeline-result", self.pipeline_result),
            ("version11-enabled", self.version11),
            ("expect-new-header", self.expect_new_header),
        ];
        for (token, bit) in bits {
            bit.into_iter().for_each(|bit| put(token, Some(&u8::from(bit))));
        }
        if let Some(rate) = self.rate {
            put("rate", Some(&format_args!("{rate:.3}")));
        }
        if let Some(offset) = self.stream_offset {
            put("stream-offset", Some(&format_args!("{}:{}", offset >> 32, offset as u32)));
        }
        let numbers = [
            ("stream-time", self.stream_time_ms),
            ("packet-num", self.packet_num),
            ("max-duration", self.max_duration),
            ("client-id", self.client_id),
            ("request-context", self.request_context),
            ("LinkBW", self.link_bps),
            ("AccelBW", self.accel_bps),
            ("AccelDuration", self.accel_duration_ms),
            ("timeout", self.timeout_ms),
            ("playlist-gen-id", self.playlist_gen_id),
            ("playlist-seek-id", self.playlist_seek_id),
            ("client-lag", self.client_lag_ms),
        ];
        for (token, number) in numbers {
            number.into_iter().for_each(|number| put(token, Some(&number)));
        }
        if let Some(speed) = self.speed {
            put("Speed", Some(&format_args!("{speed:.3}")));
        }
        if let Some(guid) = &self.client_guid {
            put("xClientGUID", Some(guid));
        }
        if let Some(features) = &self.features {
            put("features", Some(&format_args!("\"{}\"", ContentFeature::list(features, ","))));
        }
        if !line.is_empty() {
            headers.add(PRAGMA, line);
        }
        if !self.stream_switches.is_empty() {
            headers.add(PRAGMA, format_args!("{SWITCH_COUNT}={}", self.stream_switches.len()));
            let entry = |switch: &StreamSwitch| {
                let [from, to] = switch.numbers();
                format!("{from:x}:{to:x}:{}", switch.level.get())
            };
            let entries = self.stream_switches.iter().map(entry).collect::<Vec<_>>().join(" ");
            headers.add(PRAGMA, format_args!("{SWITCH_ENTRY}={entries}"));
        }
        if let Some(log) = &self.log_line {
            headers.add(PRAGMA, format_args!("{LOG_LINE}={log}"));
        }
    }
}

/// Reads `{11223344-1122-1122-1122-AABBCCDDEEFF}`.
fn guid(value: &str) -> Option<Option<String>> {
    let digits = value.strip_prefix('{')?.strip_suffix('}')?;
    let is_guid = digits.len() == 36 && digits.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    is_guid.then(|| Some(value.into()))
}

/// Reads a number, and returns the rest: FFmpeg (5.1) forgets the line's end behind this one, and has its
/// next header there.
fn digits(value: &str) -> Option<Option<u32>> {
    let end = value.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(value.len());
    value[..end].parse().ok().map(Some)
}

/// Reads `high:low`, each of 32 bits.
fn offset(value: &str) -> Option<Option<u64>> {
    let (high, low) = value.split_once(':')?;
    let [high, low] = [high, low].map(|half| half.parse::<u32>().ok().map(u64::from));
    Some(Some(high? << 32 | low?))
}

/// Reads `ffff:1:0 ffff:2:0`.
fn switches(value: &str) -> Option<Vec<StreamSwitch>> {
    let one = |entry: &str| {
        let mut parts = entry.split(':');
        let mut stream = || u16::from_str_radix(parts.next()?, 16).ok().map(StreamSwitch::stream);
        let (from, to) = (stream()?, stream()?);
        let level = ThinningLevel::new(parts.next()?.parse().ok()?)?;
        parts.next().is_none().then_some(StreamSwitch { from, to, level })
    };
    value.split_ascii_whitespace().map(one).collect()
}
