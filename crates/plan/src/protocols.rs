//! The protocols of a flow's channels, for the classifier of packets.

use serde::{Deserialize, Serialize};

/// The content of a TCP connection. A variant has its reader in `streamgauge-record`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamProtocol {
    /// Bytes that are not to be parsed: bulk data.
    Opaque,
    /// HTTP/1.0 and 1.1 (RFC 9112).
    Http,
    /// Named Data Networking, packets one behind the other (NDN Packet Format Specification 0.3).
    Ndn,
    /// RTSP, and RTP interleaved with it (RFC 2326 section 10.12).
    Rtsp,
    /// RTSP, and RealNetworks Data Transport interleaved with it.
    RtspRdt,
}

/// The content of UDP datagrams. A variant has its reader in `streamgauge-record`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DatagramProtocol {
    /// Bytes that are not to be parsed: a constant bit rate.
    Opaque,
    /// Named Data Networking, bare or by NDNLPv2 (NDN Packet Format Specification 0.3).
    Ndn,
    /// QUIC (RFC 9000).
    Quic,
    /// RealNetworks Data Transport.
    Rdt,
    /// Apple's Reliable UDP: RTP that RTCP acknowledges.
    ReliableUdp,
    /// RTP and RTCP (RFC 3550).
    Rtp,
    /// Secure Reliable Transport (draft-sharabayko-srt-01).
    Srt,
    /// RTP and RTCP of Reliable Internet Stream Transport (VSF TR-06-1).
    Rist,
}

/// The protocols of a flow's channels, by their carrier. Where several protocols share one carrier, a packet belongs to
/// the first that recognises it. Where none is given, the classifier guesses.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protocols {
    /// On TCP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tcp: Vec<StreamProtocol>,
    /// On UDP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub udp: Vec<DatagramProtocol>,
}

impl Protocols {
    /// Makes TCP connections with `protocol`, and no UDP.
    pub fn tcp(protocol: StreamProtocol) -> Self {
        Protocols { tcp: vec![protocol], udp: Vec::new() }
    }

    /// Makes datagrams of `protocol`, and no TCP.
    pub fn udp(protocol: DatagramProtocol) -> Self {
        Protocols { tcp: Vec::new(), udp: vec![protocol] }
    }

    /// Returns whether none is given.
    pub fn is_empty(&self) -> bool {
        self.tcp.is_empty() && self.udp.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_names_what_there_is() {
        let text = r#"{"tcp":["rtsp","http"],"udp":["reliable_udp","rdt"]}"#;
        let read: Protocols = serde_json::from_str(text).unwrap();
        assert_eq!(read.tcp, [StreamProtocol::Rtsp, StreamProtocol::Http]);
        assert_eq!(read.udp, [DatagramProtocol::ReliableUdp, DatagramProtocol::Rdt]);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
        let error = serde_json::from_str::<Protocols>(r#"{"tcp":["quic"]}"#).unwrap_err().to_string();
        assert!(error.contains("unknown variant `quic`") && error.contains("`http`"), "{error}");
    }
}
