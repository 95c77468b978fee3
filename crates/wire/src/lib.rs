//! Bytes to messages and back, where no kept crate does it: RTSP 1.0 on top of `rtsp-types`, compound RTCP on top
//! of `rtcp-types`, and the RTCP packets of Apple's Reliable UDP.

pub mod reliable_udp;
pub mod rtcp;
pub mod rtsp;
