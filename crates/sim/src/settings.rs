//! TCP's settings, from the plan's words to the transport's.

use std::sync::Arc;

use streamgauge_plan::TcpSpec;
use streamgauge_transport::tcp::congestion::Marks;
use streamgauge_transport::tcp::{Config, CongestionControl, EcnMode, Hystart, Mechanisms};

use crate::error::SimError;

/// The settings of connections, which share them.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    pub config: Arc<Config>,
}

/// Returns the settings of a connection; refuses those that no connection can work with.
pub fn settings(spec: &TcpSpec) -> Result<Settings, SimError> {
    let refused = |key: &str, what: String| Err(SimError::plan(format!("tcp.{key}"), what));
    let congestion = match CongestionControl::named(&spec.congestion_control) {
        Ok(found) => found,
        Err(why) => return refused("congestion_control", format!("{why}, or run with --mode emu")),
    };
    let ecn = match (spec.ecn, spec.l4s) {
        (false, _) => EcnMode::Off,
        (true, false) => EcnMode::Classic,
        (true, true) => EcnMode::L4s,
    };
    let name = congestion.name();
    match congestion.marks() {
        Marks::Counts if ecn != EcnMode::L4s => {
            return refused("ecn", format!("congestion control {name} counts marks; write ecn: l4s"));
        }
        Marks::Echo if ecn == EcnMode::L4s => {
            let what = format!("l4s needs a congestion control that counts marks, not {name}");
            return refused("ecn", format!("{what}; give prague or dctcp, or write ecn: classic"));
        }
        _ => {}
    }
    let Some(hystart) = Hystart::named(&spec.hystart) else {
        return refused("hystart", format!("{:?}; give one of {}", spec.hystart, names(Hystart::NAMED)));
    };
    let mut mechanisms = Mechanisms::default();
    for name in &spec.without {
        if !mechanisms.switch_off(name) {
            let known = names(Mechanisms::NAMED);
            return refused("without", format!("{name:?} is no mechanism; give some of {known}"));
        }
    }
    let fixed = spec.fixed_window.filter(|_| congestion == CongestionControl::FIXED);
    let mss = u64::from(spec.mss);
    if !TcpSpec::MSS.contains(&spec.mss) {
        return refused("mss", format!("{mss} B; give {} to {} B", TcpSpec::MSS.start(), TcpSpec::MSS.end()));
    }
    for (key, bytes) in [
        ("receive_window", Some(spec.receive_window)),
        ("send_buffer", spec.send_buffer),
        ("fixed_window", fixed),
    ] {
        if let Some(bytes) = bytes.filter(|bytes| !(mss..=TcpSpec::MOST_WINDOW.into()).contains(bytes)) {
            return refused(key, format!("{bytes} B; give one segment ({mss} B) to 1 GiB"));
        }
    }
    if !TcpSpec::INITIAL_WINDOW.contains(&spec.initial_window) {
        let what = format!("{} segments; give 1 to {}", spec.initial_window, TcpSpec::INITIAL_WINDOW.end());
        return refused("initial_window", what);
    }
    if spec.delayed_ack > TcpSpec::MAX_DELAYED_ACK {
        let ms = spec.delayed_ack.as_nanos() as f64 / 1e6;
        return refused("delayed_ack", format!("{ms} ms; give 0 to 500 ms (RFC 9293)"));
    }
    let config = Config {
        mss: spec.mss,
        receive_window: spec.receive_window,
        send_buffer: spec.send_buffer,
        congestion,
        hystart,
        fixed_window: fixed,
        initial_window: spec.initial_window,
        delayed_ack: spec.delayed_ack,
        ecn,
        // As the engine's sockets: each write leaves at once (TCP_NODELAY).
        no_delay: true,
        mechanisms,
        ..Config::default()
    };
    Ok(Settings { config: Arc::new(config) })
}

fn names<T>(named: &[(&str, T)]) -> String {
    named.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}
