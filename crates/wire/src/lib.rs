//! Bytes to messages and back, where no kept crate does it: HTTP/1.1 on top of `httparse`, RTSP 1.0 on top of
//! `rtsp-types`, session descriptions, compound RTCP on top of `rtcp-types`, the RTCP packets of Apple's Reliable UDP,
//! RealNetworks' RDT, the rule books beside it and RealMedia, SRT, RIST, the Advanced Systems Format, Windows Media's MMS, its HTTP
//! streaming and its payloads of RTP, and Named Data Networking's packets.

#![forbid(unsafe_code)]

pub mod asf;
pub mod asm;
mod body;
pub mod http;
mod incoming;
pub mod mms;
pub mod ndn;
pub mod rdt;
pub mod rist;
pub mod rm;
pub mod rtcp;
pub mod rtp_asf;
pub mod rtsp;
pub mod sdp;
pub mod srt;
pub mod wmsp;
mod words;

pub use body::Body;
pub use rtcp::reliable_udp;
