//! Any datagram is packets and perhaps a problem; what is read is written and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use streamgauge_wire::rtcp::{Packet, parse, write};

fuzz_target!(|datagram: &[u8]| {
    let read: Vec<_> = parse(datagram).collect();
    assert!(read.iter().rev().skip(1).all(Result::is_ok), "a problem is the last");
    assert!(read.len() <= datagram.len() / 4 + 1);
    let ours = |packet: &Packet| !matches!(packet, Packet::Other { .. });
    let packets: Vec<_> = read.into_iter().flatten().filter(ours).collect();
    for packet in &packets {
        if let Packet::Ack(ack) = packet {
            assert!(ack.sequences().count() <= 8 * datagram.len());
        }
    }
    let again: Result<Vec<_>, _> = parse(&write(&packets)).collect();
    assert_eq!(again, Ok(packets));
});
