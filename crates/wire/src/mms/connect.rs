//! Messages that a connection begins with.

use super::fault::{Fault, Problem};
use super::fields::{Fields, Out};

/// `MacToViewerProtocolRevision` and `ViewerToMacProtocolRevision`.
const REVISIONS: [u32; 2] = [0x0004_000b, 0x0003_001c];
/// `maxBitRate`: 10 Mbit/s, which bounds nothing.
const MOST_BPS: u32 = 0x0098_9680;
/// A server's name for the funnel.
const FUNNEL: &str = "Funnel Of The Gods";

/// Random bytes at the end of the three reports that are a packet pair over TCP: with headers they are 512, 512 and 1,056 B
/// ([MS-MMSP] section 3.2.5.4).
pub const TCP_PACKET_PAIR_BYTES: [usize; 3] = [432, 432, 976];

/// `playIncarnation` of the messages before a file is opened: whether and how the path's rate is estimated by
/// a packet pair. FFmpeg has other values, without meaning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PacketPairMode(pub u32);

impl PacketPairMode {
    /// Not at all.
    pub const DISABLED: Self = PacketPairMode(0xf0f0_f0ef);
    /// It is asked for, or can be.
    pub const WANTED: Self = PacketPairMode(0xf0f0_f0f0);
    /// Random bytes on the connection.
    pub const OVER_TCP: Self = PacketPairMode(0xf0f0_f0f1);
    /// Random bytes in datagrams.
    pub const OVER_UDP: Self = PacketPairMode(0xf0f0_f901);
}

/// `Connect`: a player's first message ([MS-MMSP] section 2.2.4.17).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connect {
    /// Whether it requests a packet pair.
    pub packet_pair: PacketPairMode,
    /// Its name: `NSPlayer/9.0.0.2980; {GUID}`, and perhaps `; Host: NAME`.
    pub subscriber: String,
    /// Behind it `HOST: ` and the server, for proxies.
    pub host: Option<String>,
    /// Behind it `VIA: ` and the proxies that passed it on.
    pub via: Option<String>,
}

impl Connect {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let packet_pair = PacketPairMode(fields.u32()?);
        fields.bytes(8)?;
        let mut connect = Connect { packet_pair, subscriber: fields.text()?, host: None, via: None };
        while fields.left() >= 2 {
            let text = fields.text()?;
            if let Some(host) = text.strip_prefix("HOST: ") {
                connect.host = Some(host.into());
            } else if let Some(via) = text.strip_prefix("VIA: ") {
                connect.via = Some(via.into());
            }
        }
        Ok(connect)
    }

    pub(super) fn write(&self, out: &mut Out) {
        out.u32(self.packet_pair.0).u32(REVISIONS[0]).u32(REVISIONS[1]).text(&self.subscriber);
        for (name, value) in [("HOST: ", &self.host), ("VIA: ", &self.via)] {
            if let Some(value) = value {
                out.text(&format!("{name}{value}"));
            }
        }
    }
}

/// `ReportConnectedEX`: the server's answer ([MS-MMSP] section 2.2.4.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectedEx {
    /// An HRESULT ([MS-ERREF]), 0 if all is well.
    pub result: u32,
    /// Whether it can do a packet pair.
    pub packet_pair: PacketPairMode,
    /// The server's version: `9.0.0.3372`.
    pub server_version: String,
    /// The version that a player is to get. Empty if it may stay as it is, as the next.
    pub player_version: String,
    /// Where from.
    pub player_url: String,
    /// `BASIC` or `NTLM`; empty without.
    pub authentication: String,
}

impl ConnectedEx {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let result = fields.u32()?;
        let packet_pair = PacketPairMode(fields.u32()?);
        // Two revisions, a DOUBLE and four numbers.
        fields.bytes(8 + 8 + 16)?;
        let mut units = [0; 4];
        for units in &mut units {
            *units = fields.u32()?;
        }
        let mut texts = units.map(|_| String::new());
        for (text, units) in texts.iter_mut().zip(units) {
            *text = fields.text_of(units)?;
        }
        let [server_version, player_version, player_url, authentication] = texts;
        Ok(ConnectedEx { result, packet_pair, server_version, player_version, player_url, authentication })
    }

    pub(super) fn write(&self, out: &mut Out) {
        out.u32(self.result).u32(self.packet_pair.0).u32(REVISIONS[0]).u32(REVISIONS[1]).f64(1.0);
        // Groups of blocks, open files, bytes of a block.
        out.u32(1).u32(1).u32(0x8000).u32(MOST_BPS);
        let texts = [&self.server_version, &self.player_version, &self.player_url, &self.authentication];
        let written = texts.map(|text| {
            let mut written = Out::default();
            if !text.is_empty() {
                written.text(text);
            }
            written.0
        });
        written.iter().for_each(|text| {
            out.u32((text.len() / 2) as u32);
        });
        written.iter().for_each(|text| {
            out.bytes(text);
        });
    }
}

/// `ConnectFunnel`: the transport for the media ([MS-MMSP] section 2.2.4.18).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectFunnel {
    /// Over UDP; else on the connection.
    pub over_udp: bool,
    /// The player's address as it takes it to be, which servers are not to believe.
    pub address: String,
    /// Its port, if it is UDP.
    pub port: u16,
}

impl ConnectFunnel {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        // An incarnation and four bounds that bound nothing.
        fields.bytes(20)?;
        let at = fields.at();
        let name = fields.text()?;
        Self::of_name(&name).ok_or_else(|| Fault::Funnel.at(at))
    }

    /// Reads `\\10.0.0.1\UDP\1234`.
    fn of_name(name: &str) -> Option<Self> {
        let (rest, port) = name.strip_prefix(r"\\")?.rsplit_once('\\')?;
        let (address, transport) = rest.rsplit_once('\\')?;
        let over_udp = match transport {
            "UDP" => true,
            "TCP" => false,
            _ => return None,
        };
        Some(ConnectFunnel { over_udp, address: address.into(), port: port.parse().ok()? })
    }

    pub(super) fn write(&self, out: &mut Out) {
        out.u32(0).u32(u32::MAX).u32(0).u32(MOST_BPS).u32(2);
        let transport = if self.over_udp { "UDP" } else { "TCP" };
        out.text(&format!(r"\\{}\{transport}\{}", self.address, self.port));
    }
}

/// Writes the fields of `ReportConnectedFunnel` behind its MID ([MS-MMSP] section 2.2.4.3).
pub(super) fn write_connected_funnel(out: &mut Out) {
    out.u32(0).u32(0).u32(0).text(FUNNEL);
}

/// `ReportFunnelInfo`: the server's identification of the player, and over TCP one of the three messages of a
/// packet pair ([MS-MMSP] section 2.2.4.6).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunnelReport {
    /// An HRESULT ([MS-ERREF]), 0 if all is well.
    pub result: u32,
    /// How a packet pair is sent.
    pub packet_pair: PacketPairMode,
    /// `nCubs`: the value for the player's [`ResendRequest`](super::ResendRequest)s; hard to guess.
    pub client_id: u32,
    /// Random bytes, as many as [`TCP_PACKET_PAIR_BYTES`] requires; else none. A multiple of 8, or zeros come
    /// behind them.
    pub random: Vec<u8>,
}

impl FunnelReport {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let (result, packet_pair) = (fields.u32()?, PacketPairMode(fields.u32()?));
        // Transports, fragments and their bytes.
        fields.bytes(12)?;
        let client_id = fields.u32()?;
        // Failed cubs, disks, declustering, bytes of a datagram.
        fields.bytes(16)?;
        Ok(FunnelReport { result, packet_pair, client_id, random: fields.rest().into() })
    }

    pub(super) fn write(&self, out: &mut Out) {
        out.u32(self.result).u32(self.packet_pair.0).u32(8).u32(1).u32(0x1_0000).u32(self.client_id);
        out.u32(0).u32(1).u32(0).u32(0).bytes(&self.random);
    }
}
