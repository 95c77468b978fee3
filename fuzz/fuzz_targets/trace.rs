//! Whatever is read as a trace, by its looks or by force, makes a rate that a path takes; a refusal is one short line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_base::{Direction, Duration, StageId};
use streamgauge_path::Path;
use streamgauge_path::spec::{BottleneckSpec, Layer, Limit, QueueSpec, ShaperSpec, StageKind, StageSpec};
use streamgauge_path::trace::{Trace, TraceFormat};

fuzz_target!(|input: (u8, &str)| {
    let (forced, text) = input;
    let format = TraceFormat::ALL.get(usize::from(forced)).copied();
    let trace = match Trace::parse(text, format) {
        Ok(trace) => trace,
        Err(error) => {
            let message = error.to_string();
            assert!(!message.is_empty() && !message.contains('\n') && message.len() < 1000, "{message}");
            return;
        }
    };
    assert!(!trace.is_empty() && trace.duration > Duration::ZERO);
    for lasts in [None, Some(trace.duration * 2)] {
        let rate = trace.rate(lasts).expect("short enough to repeat");
        let queue = QueueSpec::Droptail(Limit::Packets(10));
        let spec = BottleneckSpec { rate, shaper: ShaperSpec::Serial, queue, layer: Layer::Ethernet };
        let stage = StageSpec { name: "bottleneck".into(), kind: StageKind::Bottleneck(spec), changes: vec![] };
        assert!(Path::new(&[stage], StageId(0), 1, Direction::Down).is_ok(), "{trace:?}");
    }
    let _ = trace.mean();
});
