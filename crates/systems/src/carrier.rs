//! The carriers of channels.

use streamgauge_base::Ecn;
use streamgauge_plan::TcpSpec;

/// The UDP ports of a host in a trial that pairs for RTP and RTCP are taken from, first and last; Darwin's begin there.
pub const RTP_PORTS: (u16, u16) = (6970, 9999);

/// The carrier of a channel.
#[derive(Clone, PartialEq, Debug)]
pub enum Carrier {
    /// UDP; both ends use this port.
    Udp {
        /// Port at either end.
        port: u16,
        /// The value that the sender's host sets in every packet's ECN field.
        ecn: Ecn,
    },
    /// A UDP port that accepts any of its peers, for a relay alone, which begins with it: the first datagram
    /// of each of its flows' players makes a channel of its own, reported by `Accepted`, on which this
    /// datagram and further ones arrive. The relay's datagrams to servers are sent from such a port too.
    UdpListener {
        /// Our port, and that of the peers.
        port: u16,
        /// As of [`Carrier::Udp`], on all of its channels.
        ecn: Ecn,
    },
    /// A pair of UDP ports for RTP and RTCP: an even one that this host chooses, and the next (RFC 3550
    /// section 11). RTCP's channel has the number after RTP's. Neither sends before `Io::direct` sets its
    /// destination.
    RtpPair,
    /// TCP. Opened by a machine, it connects to this port of the other end. As a channel that the flow begins
    /// with, the server waits at this port for the player, which connects.
    Tcp {
        /// The port of the end that is connected to.
        port: u16,
        /// Settings of this end, or of both where the flow begins with it.
        settings: TcpSpec,
    },
    /// A TCP port that accepts connections; each becomes a channel of its own. A flow may begin with one, at
    /// its server: it listens before anything starts.
    Listener {
        /// Ours.
        port: u16,
        /// Settings of this end of each connection.
        settings: TcpSpec,
        /// Connections that may wait to be accepted; a SYN beyond them is dropped, and the other end tries again.
        backlog: u32,
    },
    /// ICMP echo. The server's datagrams are requests, the player's host answers them without asking the
    /// player's machine, and the server gets the replies. A datagram is the sequence number (2 bytes,
    /// big-endian) and then the data; the driver adds type, code, checksum and identifier.
    IcmpEcho,
}
