//! The rate of content on the link.

use streamgauge_plan::TcpSpec;

use crate::media::ClipSpec;

/// Header bytes of an IPv4 packet, a UDP datagram, an RTP packet (RFC 3550), a TCP segment with timestamps.
const IP: u32 = 20;
const UDP: u32 = 8;
const RTP: u32 = 12;
const TCP: u32 = 32;
/// Header bytes of a packet interleaved on RTSP's connection (RFC 2326 section 10.12).
const INTERLEAVED: u64 = 4;
/// IP payload of an Ethernet frame, which is a multiple of 8 as fragments need it.
const FRAGMENT: u32 = 1480;

/// Returns the rate in bit/s of a clip as RTP, over UDP or interleaved on `tcp`, in IP packets that cost
/// `link` bytes more each. `cut` gives the RTP packets of a frame and the bytes of all their payloads. RTCP
/// and RTSP are left out.
pub fn rtp_bps(
    clip: &ClipSpec,
    cut: impl Fn(u64) -> (u64, u64),
    tcp: Option<&TcpSpec>,
    link: u32,
) -> Option<f64> {
    let (mut packets, mut bytes) = (0, 0);
    for &frame in &clip.frame_bytes {
        let (more, payload) = cut(frame.into());
        (packets, bytes) = (packets + more, bytes + payload);
    }
    let octets = match tcp {
        None => (bytes + packets * u64::from(RTP + UDP + IP + link)) as f64,
        Some(tcp) => {
            let stream = (bytes + packets * (u64::from(RTP) + INTERLEAVED)) as f64;
            stream + (stream / f64::from(tcp.mss) * f64::from(TCP + IP + link)).round_ties_even()
        }
    };
    let lasts_ns = clip.frame_bytes.len() as f64 * clip.frame_interval.as_nanos() as f64;
    (lasts_ns > 0.0).then(|| 8e9 * octets / lasts_ns)
}

/// Returns the rate in bit/s of `media_bps` on `tcp`, in IP packets that cost `link` bytes more each.
/// Requests are left out.
pub fn stream_bps(media_bps: f64, tcp: &TcpSpec, link: u32) -> f64 {
    media_bps * (1.0 + f64::from(TCP + IP + link) / f64::from(tcp.mss))
}

/// Returns the bytes of a UDP datagram in IP packets that cost `link` bytes more each; a datagram that
/// exceeds an Ethernet frame is fragmented.
pub fn datagram_bytes(payload: u32, link: u32) -> u64 {
    u64::from(payload) + u64::from(UDP) + fragments(payload) * u64::from(IP + link)
}

/// Packets of a UDP datagram.
pub fn fragments(payload: u32) -> u64 {
    (u64::from(payload) + u64::from(UDP)).div_ceil(FRAGMENT.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_beyond_a_frame_has_a_header_for_each_fragment() {
        assert_eq!(datagram_bytes(1000, 14), 1042);
        assert_eq!(datagram_bytes(1472, 0), 1500);
        assert_eq!(datagram_bytes(1473, 0), 1481 + 2 * 20);
    }
}
