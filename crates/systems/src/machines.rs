//! From a flow of the plan to its machines and the channels between them.

use std::borrow::Cow;

use streamgauge_base::Ecn;

use crate::app::{App, ChannelId};
use crate::plan::{AppSpec, FlowSpec, TcpSpec};
use crate::{bulk, cbr, darwin, ping, rtp};

/// What a channel rides on.
#[derive(Clone, PartialEq, Debug)]
pub enum Carrier {
    /// UDP; both ends use this port.
    Udp {
        /// Port at either end.
        port: u16,
        /// What the sender's host sets in every packet's ECN field.
        ecn: Ecn,
    },
    /// TCP. The server listens on this port and the player connects to it.
    Tcp {
        /// The server's port.
        port: u16,
        /// Settings of both ends.
        settings: TcpSpec,
    },
    /// ICMP echo. The server's datagrams are requests, the player's host answers them without asking the
    /// player's machine, and the server gets the replies. A datagram is the sequence number (2 bytes,
    /// big-endian) and then the data; the driver adds type, code, checksum and identifier.
    IcmpEcho,
}

/// One channel of a flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Channel {
    /// Its number at both ends.
    pub id: ChannelId,
    /// What it rides on.
    pub carrier: Carrier,
}

/// Both ends of a flow. The driver opens all channels, then gives each machine `Input::Start`.
pub struct Machines {
    /// Between the two, in order of their ids, which count from 0.
    pub channels: Vec<Channel>,
    /// The end that `down` leads away from.
    pub server: Box<dyn App + Send>,
    /// The end that `down` leads to.
    pub player: Box<dyn App + Send>,
}

/// A flow that cannot be made into machines.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("flows.{flow}.{key}: {what}")]
pub struct MachineError {
    /// The flow's name.
    pub flow: String,
    /// The key within the flow's plan.
    pub key: String,
    /// What is wrong and what would be right.
    pub what: String,
}

/// The machines of `flow`. Their random streams are named by `seed` and the flow's name.
pub fn machines(flow: &FlowSpec, seed: u64) -> Result<Machines, MachineError> {
    let refuse = |key: &str, what: String| MachineError { flow: flow.name.clone(), key: key.into(), what };
    let made = match &flow.app {
        AppSpec::Bulk(spec) => bulk::machines(spec),
        AppSpec::Cbr(spec) => cbr::machines(spec),
        AppSpec::Ping(spec) => ping::machines(spec),
        AppSpec::Rtp(spec) => rtp::machines(spec, &flow.name, seed),
        AppSpec::Darwin(spec) => darwin::machines(spec, &flow.name, seed),
        AppSpec::External => {
            let what = "a third-party system runs in emu only; give the flow a stand-in for sim \
                        (sim: {system: rtp}) or run with --mode emu";
            Err(("app".into(), what.into()))
        }
    };
    made.map_err(|(key, what)| refuse(&key, what))
}

/// What a folder's own `machines` says is wrong: the key, and the fault with its remedy.
pub(crate) type Refusal = (Cow<'static, str>, String);

/// What a part of the plan says of itself, a field and its fault, as a refusal of the plan that has the part at `key`.
pub(crate) fn within(key: &'static str) -> impl Fn((&'static str, String)) -> Refusal {
    move |(field, what)| (format!("{key}.{field}").into(), what)
}

#[cfg(test)]
mod tests {
    use streamgauge_base::Duration;

    use super::*;
    use crate::plan::{BulkSpec, CbrSpec, ClipSpec, EcnField, Entry, PingSpec, Role, RtpSpec};

    fn flow(app: AppSpec) -> FlowSpec {
        let (start, role, entry) = (Duration::ZERO, Role::Subject, Entry::Server);
        FlowSpec { name: "x".into(), role, entry, start, actions: Vec::new(), app }
    }

    fn tcp() -> TcpSpec {
        TcpSpec { receive_window: 65_536, send_buffer: 65_536, ..TcpSpec::default() }
    }

    fn rtp(tcp: Option<TcpSpec>) -> AppSpec {
        let second = Duration::from_secs(1);
        let (name, frame_interval) = ("clip".into(), Duration::from_millis(40));
        let clip =
            ClipSpec { name, duration: second, frame_interval, frame_bytes: vec![1000], key_frames: vec![] };
        AppSpec::Rtp(RtpSpec { clip, max_payload: 1400, tcp, rtcp_interval: second, playout_delay: second })
    }

    #[test]
    fn every_flow_declares_its_channels_in_order_of_their_ids() {
        let udp = |port| Carrier::Udp { port, ecn: Ecn::NotEct };
        let stream = |port| Carrier::Tcp { port, settings: tcp() };
        let cbr = CbrSpec {
            packets_per_s: 1.0,
            payload_bytes: 1,
            burst: 1,
            windows: Vec::new(),
            ecn: EcnField::No,
        };
        let ping = PingSpec { interval: Duration::from_secs(1), payload_bytes: 56 };
        for (app, expected) in [
            (AppSpec::Bulk(BulkSpec { tcp: tcp(), bytes: None }), vec![stream(5201)]),
            (AppSpec::Cbr(cbr), vec![udp(5000)]),
            (AppSpec::Ping(ping), vec![Carrier::IcmpEcho]),
            (rtp(None), vec![udp(5004), udp(5005)]),
            (rtp(Some(tcp())), vec![stream(554)]),
        ] {
            let channels = machines(&flow(app), 1).unwrap().channels;
            assert!((0..).zip(&channels).all(|(id, channel)| channel.id == ChannelId(id)));
            assert_eq!(channels.into_iter().map(|c| c.carrier).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_refusal_names_flow_and_key_and_what_to_do() {
        let error = machines(&flow(AppSpec::External), 1).err().unwrap().to_string();
        assert!(error.starts_with("flows.x.app: ") && error.contains("--mode emu"), "{error}");
    }
}
