//! `streamgauge-engine`: the link emulator, our machines on real sockets, and pid 1 of a sandbox.

fn main() {}
