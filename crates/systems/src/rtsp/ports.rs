//! The ports that a server sends tracks from.

use streamgauge_wire::rtsp::{StatusCode, Transport};

use super::server::{Answer, status};
use crate::app::{ChannelId, Io};
use crate::carrier::Carrier;

/// For each track that has been on UDP, the channel of RTP; RTCP's is the next. A track keeps its ports from one
/// session of the connection to the next.
#[derive(Default)]
pub struct TrackPorts(Vec<(usize, ChannelId)>);

impl TrackPorts {
    /// Directs a track's ports to the client's, opens them if they are not, and writes them into `transport`. The
    /// channel of RTP; `None` of a track that is not on UDP.
    ///
    /// # Errors
    ///
    /// The answer where the host has no pair of ports left.
    pub fn direct(
        &mut self,
        track: usize,
        transport: &mut Transport,
        io: &mut dyn Io,
    ) -> Result<Option<ChannelId>, Answer> {
        let Some(ports) = transport.client_port else { return Ok(None) };
        let (channel, port) = self.to(track, ports, io)?;
        transport.server_port = Some((port, port.saturating_add(1)));
        Ok(Some(channel))
    }

    /// Directs a track's ports to these of the client, and opens them if they are not. Their first channel and its port.
    ///
    /// # Errors
    ///
    /// As [`TrackPorts::direct`].
    pub fn to(
        &mut self,
        track: usize,
        (first, second): (u16, u16),
        io: &mut dyn Io,
    ) -> Result<(ChannelId, u16), Answer> {
        let pair = self.pair(track, io);
        let (channel, port) = pair.ok_or_else(|| status(StatusCode::ServiceUnavailable))?;
        io.direct(channel, first);
        io.direct(ChannelId(channel.0 + 1), second);
        Ok((channel, port))
    }

    fn pair(&mut self, track: usize, io: &mut dyn Io) -> Option<(ChannelId, u16)> {
        if let Some(&(_, channel)) = self.0.iter().find(|(of, _)| *of == track) {
            return Some((channel, io.port(channel)?));
        }
        let channel = io.open(&Carrier::RtpPair);
        let port = io.port(channel)?;
        self.0.push((track, channel));
        Some((channel, port))
    }

    /// Returns the track with its RTCP on `channel`.
    pub fn track_of_rtcp(&self, channel: ChannelId) -> Option<usize> {
        self.0.iter().find(|(_, rtp)| rtp.0 + 1 == channel.0).map(|&(track, _)| track)
    }
}
