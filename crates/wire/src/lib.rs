//! Bytes to messages and back, where no kept crate does it: HTTP/1.1 on top of `httparse`, RTSP 1.0 on top of
//! `rtsp-types`, compound RTCP on top of `rtcp-types`, the RTCP packets of Apple's Reliable UDP, Named Data Networking's
//! packets, and RealMedia.

pub mod http;
mod incoming;
pub mod ndn;
pub mod rm;
pub mod rtcp;
pub mod rtsp;

pub use rtcp::reliable_udp;
