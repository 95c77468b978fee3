//! Secure Reliable Transport (SRT) in live mode: a clip as MPEG-TS over UDP, with lost packets repeated within a latency that
//! both ends agree on (draft-sharabayko-srt-01).
//!
//! The sender stamps each packet with the time at which it was made; the receiver delivers it a fixed latency later (TSBPD),
//! and skips what is missing by then (TLPKTDROP). Nothing adapts to the network: LiveCC bounds the rate alone. Not modelled:
//! encryption, error correction, groups, the drift of clocks (section 4.7), file mode.

mod connection;
mod receiver;
mod rtt;
mod sender;
mod spec;
#[cfg(test)]
mod tests;

pub use receiver::SrtReceiver;
pub use sender::SrtSender;
pub use spec::{Caller, Retransmission, SrtSpec};

use streamgauge_base::{Duration, Ecn, RandomStream};
use streamgauge_plan::{DatagramProtocol, Parameter, Protocols};
use streamgauge_wire::srt::HEADER_BYTES;

use crate::app::ChannelId;
use crate::carrier::Carrier;
use crate::contribution::{check_clip, wanted_bps};
use crate::describe::{Content, EventKind, Refusal, System, events, within};
use crate::machines::{Channel, Machines};
use crate::media::ClipSpec;

/// The one channel: data and control.
pub const MEDIA: ChannelId = ChannelId(0);

/// Its port. The draft assigns none; libsrt's examples use this one.
pub const PORT: u16 = 4200;

/// The greatest latency that a handshake's 16 bits of milliseconds hold.
pub const MOST_LATENCY: Duration = Duration::from_millis(u16::MAX as u64);

impl System for SrtSpec {
    const NAME: &'static str = "srt";
    const TITLE: &'static str =
        "A clip as MPEG-TS over SRT, with lost packets repeated within a fixed latency";
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
        ("unrepaired", "packets"),
        ("discarded", "packets"),
        ("overflow", "packets"),
        ("sender_dropped", "packets"),
        ("srt_rtt", "s"),
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
        Ok(Machines {
            channels: vec![Channel { id: MEDIA, carrier: Carrier::Udp { port: PORT, ecn: Ecn::NotEct } }],
            server: Box::new(sender),
            player: Box::new(receiver),
        })
    }

    fn protocols(&self) -> Protocols {
        Protocols::udp(DatagramProtocol::Srt)
    }

    /// Returns the rate without repeated packets and control.
    fn wanted_bps(&self, link_bytes: u32) -> Option<f64> {
        wanted_bps(&self.clip, self.payload_bytes(), HEADER_BYTES, link_bytes)
    }
}

impl SrtSpec {
    /// Refuses settings with which nothing can run, by their key.
    fn check(&self) -> Result<(), Refusal> {
        check_clip(&self.clip).map_err(within("app.srt.clip"))?;
        let refuse = |key: &str, what: String| Err((format!("app.srt.{key}").into(), what));
        for (key, latency) in [("latency", self.latency), ("peer_latency", self.peer_latency)] {
            if latency > MOST_LATENCY {
                let most = MOST_LATENCY.as_secs_f64();
                return refuse(key, format!("{} s; give at most {most} s", latency.as_secs_f64()));
            }
        }
        if !(1..=7).contains(&self.ts_packets) {
            return refuse("ts_packets", format!("{}; give 1 to 7", self.ts_packets));
        }
        for (key, time) in [("ack_interval", self.ack_interval), ("nak_interval", self.nak_interval)] {
            if time < Duration::from_millis(1) {
                return refuse(key, "shorter than 1 ms; give 1 ms or more".into());
            }
        }
        for (key, packets) in [("buffer", self.buffer), ("flight", self.flight)] {
            if !(32..=100_000).contains(&packets) {
                return refuse(key, format!("{packets} packets; give 32 to 100000"));
            }
        }
        if !(1.0..=100.0).contains(&self.drop_after) {
            return refuse("drop_after", format!("{}; give 1 to 100", self.drop_after));
        }
        Ok(())
    }

    /// Returns both ends by their types, for programs that embed them: those of [`System::machines`].
    ///
    /// # Errors
    ///
    /// The faulty key, and the remedy.
    pub fn ends(&self, flow: &str, seed: u64) -> Result<(SrtSender, SrtReceiver), Refusal> {
        self.check()?;
        let ids = |end: &str| RandomStream::named(seed, flow, end);
        Ok((SrtSender::new(self, ids("srt sender")), SrtReceiver::new(self, ids("srt receiver"))))
    }
}
