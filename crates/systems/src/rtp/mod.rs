//! A clip paced out as RTP with RTCP reports and no congestion response: VLC's stream from Darwin.
//!
//! Over UDP, frames that are late or incomplete are not shown. Over TCP the same packets are interleaved on
//! one stream (RFC 2326 section 10.12); nothing is lost, so the player stalls instead.

mod description;
mod packet;
mod player;
mod rtcp;
mod server;
mod spec;
mod transport;

pub use player::RtpPlayer;
pub use server::RtpServer;
pub use spec::RtpSpec;

use serde_json::{Map, Value};
use streamgauge_base::{Duration, Ecn};
use streamgauge_plan::{DatagramProtocol, Kind, Parameter, Protocols, StreamProtocol, TcpSpec};

use crate::app::ChannelId;
use crate::carrier::Carrier;
use crate::describe::{Content, EventKind, Refusal, System, events, tcp_last, transport, value, within};
use crate::machines::{Channel, Machines};
use crate::media::ClipSpec;
use crate::playout::Decoder;
use crate::rates::rtp_bps;
use description::SessionDescription;
use transport::RtpTransport;

/// Over UDP: the channel of RTP. Over TCP: the one stream.
pub const MEDIA: ChannelId = ChannelId(0);

/// Over UDP: the channel of RTCP.
pub const CONTROL: ChannelId = ChannelId(1);

/// The port of RTP over UDP; RTCP's is the next (RFC 3551 section 8).
pub const PORT: u16 = 5004;

/// The port of the stream over TCP: RTSP's.
pub const TCP_PORT: u16 = 554;

/// Largest RTP payload that an Ethernet frame carries unfragmented over UDP (1500 - 20 - 8 - 12).
pub const MAX_PAYLOAD_BYTES: u32 = 1460;

/// Payloads below this leave no room for a fragment of use.
pub const MIN_PAYLOAD_BYTES: u32 = 64;

/// Reports beyond this rate are media themselves.
pub const MIN_RTCP_INTERVAL: Duration = Duration::from_millis(10);

impl System for RtpSpec {
    const NAME: &'static str = "rtp";
    const TITLE: &'static str = "A clip paced out as RTP with RTCP reports and no congestion response";
    const VERSION: u32 = 1;
    const CONTENT: Content = Content::Clip;
    const EVENTS: &'static [EventKind] = &events([
        ("playout_start", "s"),
        ("frame_shown", "1"),
        ("frame_late", "s"),
        ("frame_incomplete", "1"),
        ("stall", "1"),
        ("resume", "s"),
        ("dropped_frames", "1"),
        ("buffer", "s"),
        ("sender_behind", "s"),
        ("jitter", "s"),
        ("fraction_lost", "1"),
        ("cumulative_lost", "1"),
        ("rtcp_fraction_lost", "1"),
        ("rtcp_cumulative_lost", "1"),
        ("rtcp_jitter", "s"),
        ("rtcp_rtt", "s"),
    ]);

    fn usual() -> Self {
        let second = Duration::from_secs(1);
        let (clip, rtcp_interval, playout_delay) = (ClipSpec::default(), second * 5, second * 2);
        let decoder = Decoder::Ideal;
        RtpSpec { clip, max_payload: 1388, tcp: None, rtcp_interval, playout_delay, decoder }
    }

    fn parts() -> Map<String, Value> {
        Map::from_iter([("tcp".into(), value(&TcpSpec::default()))])
    }

    fn parameters() -> Vec<Parameter> {
        let chosen = transport(&["tcp"], Kind::Presence(["udp", "tcp"]));
        std::iter::once(chosen).chain(tcp_last(Self::fields())).collect()
    }

    fn clip(&mut self) -> Option<&mut ClipSpec> {
        Some(&mut self.clip)
    }

    fn machines(&self, flow: &str, seed: u64) -> Result<Machines, Refusal> {
        if !(MIN_PAYLOAD_BYTES..=MAX_PAYLOAD_BYTES).contains(&self.max_payload) {
            let (given, low, high) = (self.max_payload, MIN_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES);
            return Err(("app.rtp.max_payload".into(), format!("{given} B; give {low} to {high} B")));
        }
        self.clip.check().map_err(within("app.rtp.clip"))?;
        if self.rtcp_interval < MIN_RTCP_INTERVAL {
            return Err(("app.rtp.rtcp_interval".into(), "shorter than 10 ms; give 10 ms or more".into()));
        }
        let (carriers, transport): (Vec<Carrier>, fn() -> RtpTransport) = match &self.tcp {
            None => (
                [PORT, PORT + 1].map(|port| Carrier::Udp { port, ecn: Ecn::NotEct }).to_vec(),
                RtpTransport::udp,
            ),
            Some(settings) => {
                (vec![Carrier::Tcp { port: TCP_PORT, settings: settings.clone() }], RtpTransport::tcp)
            }
        };
        let session = SessionDescription::new(self, flow, seed);
        Ok(Machines {
            channels: (0..)
                .zip(carriers)
                .map(|(id, carrier)| Channel { id: ChannelId(id), carrier })
                .collect(),
            server: Box::new(RtpServer::new(session.clone(), self.clip.frame_bytes.clone(), transport())),
            player: Box::new(RtpPlayer::new(session, transport(), self)),
        })
    }

    fn protocols(&self) -> Protocols {
        match &self.tcp {
            None => Protocols::udp(DatagramProtocol::Rtp),
            Some(_) => Protocols::tcp(StreamProtocol::Rtsp),
        }
    }

    fn media_tcp(&self) -> Option<&TcpSpec> {
        self.tcp.as_ref()
    }

    /// Whole frames are cut into payloads of at most `max_payload`.
    fn wanted_bps(&self, link_bytes: u32) -> Option<f64> {
        let largest = u64::from(self.max_payload.max(1));
        rtp_bps(&self.clip, |frame| (frame.div_ceil(largest), frame), self.tcp.as_ref(), link_bytes)
    }
}

#[cfg(test)]
mod tests;
