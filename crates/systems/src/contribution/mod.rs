//! The common part of systems that send one clip as MPEG-TS in datagrams and deliver it a fixed latency later: SRT, RIST.

mod delivery;
mod feed;
mod pictures;
mod tally;

pub(crate) use delivery::{Delivery, Held};
pub(crate) use feed::{Feed, check_clip, wanted_bps};
pub(crate) use pictures::ReceivedPictures;
pub(crate) use tally::Tally;
