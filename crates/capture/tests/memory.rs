//! The bytes of memory that a followed flow takes, counted.

mod bytes;
#[path = "../../systems/tests/darwin_bad_input/heap.rs"]
mod heap;

use bytes::{down, pcap, up};
use streamgauge_capture::{Capture, CaptureReader, Flows};

const MS: i64 = 1_000_000;
/// As docs/captures.md states it: a flow of 40 packets, and one of any length with everything that is bounded full.
const SHORT: usize = 16_000;
const LONGEST: usize = 100_000;

/// A capture of so many connections in turn; `hole` of a hundred segments never pass.
fn capture(flows: u16, packets: u32, hole: u32) -> Vec<u8> {
    let mut frames = Vec::new();
    for n in 0..packets {
        for flow in 0..flows {
            let at = (i64::from(n) * 400 + i64::from(flow) / 100) * MS;
            if n % 3 == 2 {
                let mut ack = up(n as u16, n * 100);
                ack.ports = (4000 + flow, 80);
                frames.push((at, ack.ip()));
            } else if n % 100 >= hole {
                let mut data = down(n as u16, n * 100, 100);
                data.ports = (80, 4000 + flow);
                frames.push((at, data.ip()));
            }
        }
    }
    pcap(101, false, true, &frames)
}

/// Bytes that its flows hold, and their number.
fn held_by(capture: Vec<u8>) -> (usize, usize) {
    let reader = CaptureReader::new(std::io::Cursor::new(capture), "memory").unwrap();
    let mut capture = Capture::new(reader, None).unwrap();
    let before = heap::held();
    let mut flows = Flows::default();
    capture.read(&mut flows, |_, _| {});
    (heap::held().saturating_sub(before), flows.flows.len())
}

#[test]
fn a_flow_takes_as_much_as_is_stated() {
    let (few, many) = (held_by(capture(50, 40, 0)), held_by(capture(550, 40, 0)));
    assert_eq!((few.1, many.1), (50, 550));
    let each = (many.0 - few.0) / 500;
    assert!((1_000..=SHORT).contains(&each), "{each} bytes a flow");
}

#[test]
fn a_long_flow_takes_a_bounded_amount() {
    let held = [20_000, 40_000].map(|packets| held_by(capture(1, packets, 10)).0);
    assert!(held[0] <= LONGEST, "{held:?}");
    // Twice as many packets: not a byte more than lists that had room left.
    assert!(held[1] <= LONGEST && held[1] <= held[0] * 11 / 10, "{held:?}");
}
