//! TCP's settings, from the plan's words to the transport's.

use std::sync::Arc;

use streamgauge_plan::TcpSpec;
use streamgauge_transport::tcp::{Config, CongestionControl, Hystart, Mechanisms};

use crate::error::SimError;

/// The settings of connections, which share them.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    pub config: Arc<Config>,
    pub controller: Controller,
}

/// A congestion controller, by its place among those with names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Controller(u8);

impl Controller {
    pub fn name(self) -> &'static str {
        CongestionControl::NAMED[usize::from(self.0)].0
    }
}

/// The settings of a connection; refuses what no connection can work with.
pub fn settings(spec: &TcpSpec) -> Result<Settings, SimError> {
    let refused = |key: &str, what: String| Err(SimError::plan(format!("tcp.{key}"), what));
    let name = spec.congestion_control.as_str();
    let Some(place) = CongestionControl::NAMED.iter().position(|(known, _)| *known == name) else {
        let known = names(CongestionControl::NAMED);
        let what = format!("{name:?} is not simulated; give one of {known}, or run with --mode emu");
        return refused("congestion_control", what);
    };
    let congestion = CongestionControl::NAMED[place].1;
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
    let fixed = spec.fixed_window.filter(|_| congestion == CongestionControl::Fixed);
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
        ecn: spec.ecn,
        // As the engine's sockets: each write leaves at once (TCP_NODELAY).
        no_delay: true,
        mechanisms,
        ..Config::default()
    };
    Ok(Settings { config: Arc::new(config), controller: Controller(place as u8) })
}

fn names<T>(named: &[(&str, T)]) -> String {
    named.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}
