//! Reliable Internet Stream Transport (RIST), simple profile: a clip as MPEG-TS in RTP, with lost packets repeated on request
//! within a buffer (VSF TR-06-1).
//!
//! There is no set-up: RTP goes to an even port, RTCP both ways over the next one. The specification leaves to implementations
//! when a packet is asked for and which requests are answered; both are those of librist 0.2.7, each constant a parameter. Its
//! setting `min_retries` is left out, as that version does not read it. Not modelled: bonding, the main profile's tunnel,
//! encryption, the drift of clocks.

mod control;
mod receiver;
mod sender;
mod spec;
#[cfg(test)]
mod tests;

pub use receiver::RistReceiver;
pub use sender::RistSender;
pub use spec::{RepairControl, RequestForm, RistSpec};

use streamgauge_base::{Duration, Ecn, RandomStream};
use streamgauge_plan::{DatagramProtocol, Parameter, Protocols};
use streamgauge_wire::rist::HEADER_BYTES;

use crate::app::ChannelId;
use crate::carrier::Carrier;
use crate::contribution::{check_clip, wanted_bps};
use crate::describe::{Content, EventKind, Refusal, System, events, within};
use crate::machines::{Channel, Machines};
use crate::media::ClipSpec;

/// RTP.
pub const MEDIA: ChannelId = ChannelId(0);
/// RTCP, both ways.
pub const CONTROL: ChannelId = ChannelId(1);

/// RTP's port, and RTCP's is the next (TR-06-1 section 5.1.1). The specification assigns none; librist's default.
pub const PORT: u16 = 1968;

/// The greatest latency: as long as SRT's.
pub const MOST_LATENCY: Duration = crate::srt::MOST_LATENCY;

impl System for RistSpec {
    const NAME: &'static str = "rist";
    const TITLE: &'static str =
        "A clip as MPEG-TS in RTP by RIST's simple profile, with lost packets repeated on request";
    const VERSION: u32 = 1;
    const CONTENT: Content = Content::Clip;
    const B_FRAMES: bool = false;
    const EVENTS: &'static [EventKind] = &events([
        ("connected", "s"),
        ("connection_closed", "s"),
        ("playout_start", "s"),
        ("frame_shown", "1"),
        ("frame_late", "s"),
        ("frame_incomplete", "1"),
        ("picture_wait", "s"),
        ("nack", "packets"),
        ("repeated", "packets"),
        ("withheld", "packets"),
        ("unrepaired", "packets"),
        ("discarded", "packets"),
        ("rist_rtt", "s"),
        ("nak_interval", "s"),
        ("send_buffer", "s"),
    ]);

    fn usual() -> Self {
        Self::usual_settings()
    }

    fn parameters() -> Vec<Parameter> {
        Self::fields()
    }

    fn clip(&mut self) -> Option<&mut ClipSpec> {
        Some(&mut self.clip)
    }

    fn machines(&self, flow: &str, seed: u64) -> Result<Machines, Refusal> {
        let (sender, receiver) = self.ends(flow, seed)?;
        let channel = |id, port| Channel { id, carrier: Carrier::Udp { port, ecn: Ecn::NotEct } };
        Ok(Machines {
            channels: vec![channel(MEDIA, PORT), channel(CONTROL, PORT + 1)],
            server: Box::new(sender),
            player: Box::new(receiver),
        })
    }

    fn protocols(&self) -> Protocols {
        Protocols::udp(DatagramProtocol::Rist)
    }

    /// Returns the rate without repeated packets and control.
    fn wanted_bps(&self, link_bytes: u32) -> Option<f64> {
        wanted_bps(&self.clip, self.payload_bytes(), HEADER_BYTES, link_bytes)
    }
}

impl RistSpec {
    /// Refuses settings with which nothing can run, by their key.
    fn check(&self) -> Result<(), Refusal> {
        check_clip(&self.clip).map_err(within("app.rist.clip"))?;
        let refuse = |key: &str, what: String| Err((format!("app.rist.{key}").into(), what));
        let ms = Duration::from_millis;
        if self.latency < ms(1) || self.latency > MOST_LATENCY {
            let most = MOST_LATENCY.as_secs_f64();
            return refuse("latency", format!("{} s; give 1 ms to {most} s", self.latency.as_secs_f64()));
        }
        if self.rtt_min < ms(1) || self.rtt_min > self.rtt_max {
            let most = self.rtt_max.as_secs_f64();
            return refuse(
                "rtt_min",
                format!("{} s; give 1 ms to rtt_max, {most} s", self.rtt_min.as_secs_f64()),
            );
        }
        if self.rtt_max > Duration::from_secs(60) {
            return refuse("rtt_max", format!("{} s; give at most 60 s", self.rtt_max.as_secs_f64()));
        }
        if !(1..=7).contains(&self.ts_packets) {
            return refuse("ts_packets", format!("{}; give 1 to 7", self.ts_packets));
        }
        for (key, time, least) in [
            ("report_interval", self.report_interval, ms(1)),
            ("loop_interval", self.loop_interval, Duration::from_micros(100)),
        ] {
            if time < least {
                return refuse(key, format!("shorter than {least:?}; give that or more"));
            }
        }
        for (key, factor) in
            [("request_spacing", self.request_spacing), ("request_until", self.request_until)]
        {
            if !(0.1..=100.0).contains(&factor) {
                return refuse(key, format!("{factor}; give 0.1 to 100"));
            }
        }
        for (key, count, most) in
            [("max_retries", self.max_retries, 100), ("request_packets", self.request_packets, 5_000)]
        {
            if !(1..=most).contains(&count) {
                return refuse(key, format!("{count}; give 1 to {most}"));
            }
        }
        Ok(())
    }

    /// Returns both ends by their types, for programs that embed them: those of [`System::machines`].
    ///
    /// # Errors
    ///
    /// The faulty key, and the remedy.
    pub fn ends(&self, flow: &str, seed: u64) -> Result<(RistSender, RistReceiver), Refusal> {
        self.check()?;
        let ids = |end: &str| RandomStream::named(seed, flow, end);
        Ok((RistSender::new(self, ids("rist sender")), RistReceiver::new(self, ids("rist receiver"))))
    }
}
