//! A clip paced out as RTP with RTCP reports and no congestion response: what VLC gets from Darwin.
//!
//! Over UDP, frames that are late or incomplete are not shown. Over TCP the same packets are interleaved on
//! one stream (RFC 2326 section 10.12); nothing is lost, so the player stalls instead.

mod lane;
mod packet;
mod player;
mod playout;
mod rtcp;
mod server;
mod session;

pub use player::RtpPlayer;
pub use server::RtpServer;

use streamgauge_base::Ecn;

use crate::app::ChannelId;
use crate::machines::{Carrier, Channel, Machines, Refusal, within};
use crate::plan::RtpSpec;
use lane::Lane;
use session::Session;

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

pub(crate) fn machines(spec: &RtpSpec, flow: &str, seed: u64) -> Result<Machines, Refusal> {
    if !(MIN_PAYLOAD_BYTES..=MAX_PAYLOAD_BYTES).contains(&spec.max_payload) {
        let (given, low, high) = (spec.max_payload, MIN_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES);
        return Err(("app.rtp.max_payload".into(), format!("{given} B; give {low} to {high} B")));
    }
    spec.clip.check().map_err(within("app.rtp.clip"))?;
    if spec.rtcp_interval.as_nanos() < 10_000_000 {
        return Err(("app.rtp.rtcp_interval".into(), "shorter than 10 ms; give 10 ms or more".into()));
    }
    let (carriers, lane): (Vec<Carrier>, fn() -> Lane) = match &spec.tcp {
        None => ([PORT, PORT + 1].map(|port| Carrier::Udp { port, ecn: Ecn::NotEct }).to_vec(), Lane::udp),
        Some(settings) => (vec![Carrier::Tcp { port: TCP_PORT, settings: settings.clone() }], Lane::tcp),
    };
    let session = Session::new(spec, flow, seed);
    Ok(Machines {
        channels: (0..).zip(carriers).map(|(id, carrier)| Channel { id: ChannelId(id), carrier }).collect(),
        server: Box::new(RtpServer::new(session.clone(), spec.clip.frame_bytes.clone(), lane())),
        player: Box::new(RtpPlayer::new(session, lane())),
    })
}

#[cfg(test)]
mod tests;
