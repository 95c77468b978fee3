//! A TCP connection as a state machine (RFC 9293), with the choices Linux makes where the RFCs leave one.
//!
//! The model has: the handshake, SACK (RFC 2018, 2883), losses found by time with a reordering window that adapts and
//! tail loss probes (RACK-TLP, RFC 8985), repaired under proportional rate reduction (RFC 6937), limited transmit (RFC
//! 3042), the retransmission timer (RFC 6298) on the host's ticks, F-RTO (RFC 5682) and the undoing of reductions that
//! were for nothing (RFC 3522, 3708, 4015), SACK reneging, delayed, quick and compressed ACKs, timestamps (RFC 7323),
//! flow control with window updates and zero-window probes, Nagle's algorithm in Minshall's form, idle restart, ECN
//! (RFC 3168; RFC 9768 without its option), pacing, delivery rates, a send buffer that is bounded or tuned, closing and
//! aborting. Both ends are assumed to support SACK and timestamps.
//!
//! Windows are kept in bytes, and count segments as Linux does: each counts as a full one. The receive window is open
//! in full from the start: from Linux's receive-buffer autotuning the model has only the quick acknowledgements at each
//! rise of the window. Not modelled: simultaneous open and urgent data. TIME-WAIT is its driver's: a closed connection
//! still answers a retransmitted FIN for as long as it is kept.
//!
//! ```
//! use streamgauge_base::{Chunk, Duration, Instant};
//! use streamgauge_transport::tcp::{Config, Connection, ConnectionEvent};
//!
//! let mut now = Instant::ZERO;
//! let mut client = Connection::connect(Config::default(), now);
//! let mut server = Connection::listen(Config::default());
//! // A wire that takes 10 ms each way.
//! for _ in 0..3 {
//!     now = now + Duration::from_millis(10);
//!     while let Some(segment) = client.poll_transmit(now) {
//!         server.handle(now, &segment);
//!     }
//!     now = now + Duration::from_millis(10);
//!     while let Some(segment) = server.poll_transmit(now) {
//!         client.handle(now, &segment);
//!     }
//! }
//! assert_eq!(server.poll_event(), Some(ConnectionEvent::Opened));
//! assert_eq!(server.write(Chunk::filler(10_000)), 10_000);
//! ```

mod accurate_ecn;
mod ack_policy;
mod byte_queue;
mod clock;
mod config;
pub mod congestion;
mod connection;
mod mechanisms;
mod pacing;
mod prr;
mod rate_sample;
mod receiver;
mod receiving;
mod rto;
mod scoreboard;
mod segment;
mod send_buffer;
mod sender;
mod sending;
mod seq;
mod stats;
mod undo;
mod window_growth;

pub use config::{Config, EcnMode};
pub use congestion::{CongestionControl, Hystart};
pub use connection::{CloseReason, Connection, ConnectionEvent, reset_without_connection};
pub use mechanisms::Mechanisms;
pub use rate_sample::RateSample;
pub use rto::Rto;
pub use segment::{SackBlocks, Segment, Timestamps, flags};
pub use stats::Stats;
