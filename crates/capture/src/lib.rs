//! Captures in, flows out: reads pcap and pcapng files, follows the flows in them, and matches two captures of one
//! path packet by packet.
//!
//! [`Capture`] returns the packets of a file in bounded memory, [`Flows`] follows them, [`analyse`] does both. Any bytes
//! are accepted: damage ends a capture early, and [`CaptureEnding`] has the place and the reason.

#![forbid(unsafe_code)]

mod analysis;
mod bottleneck;
mod capture;
mod clock;
mod copies;
mod course;
mod datagrams;
mod error;
mod exchanges;
mod feedback;
mod first_look;
mod flow;
mod hash;
mod input;
mod link;
mod manifests;
mod matching;
mod numbers;
mod packet;
mod pair;
mod path_course;
mod queue_model;
mod ranges;
mod reader;
mod reports;
mod rtcp;
mod rtp;
mod samples;
mod sequence;
mod srt;
mod streams;
mod survey;
mod tcp;
mod translation;
mod twins;
mod waiting;

pub use analysis::{Analysis, CaptureRow, CaptureSide, FlowRow, analyse};
pub use capture::Capture;
pub use error::CaptureError;
pub use first_look::{CaptureSource, KnownBeforehand, Mechanism};
pub use flow::{Flows, MOST_FLOWS};
pub use input::decompressed;
pub use link::LinkType;
pub use matching::{MatchedFlow, MatchedPacket, MatchedWay, Matching, PacketFate, matching};
pub use packet::{End, parse};
pub use pair::{PairAnalysis, PathRow, analyse_pair};
pub use reader::{CaptureEnding, CaptureReader};
pub use survey::{CaptureSurvey, survey};
pub use translation::{Renamed, end_of};
pub use twins::translated;
