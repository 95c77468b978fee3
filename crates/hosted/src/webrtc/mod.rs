//! str0m, unmodified: one end of a call that sends video one way, as a function of instants.
//!
//! Left out, and done by the caller: signalling (both ends are made from one [`Call`]), the encoder, the jitter
//! buffer and the picture. Cryptography is null, on sockets as well ([`null`]).

mod epoch;
mod frame;
mod null;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration as StdDuration, Instant as StdInstant};

use str0m::bwe::{Bitrate, BweKind};
use str0m::config::Fingerprint;
use str0m::format::Codec;
use str0m::media::{KeyframeRequestKind, MediaData, MediaKind, MediaTime, Mid, Pt};
use str0m::net::{Protocol, Receive};
use str0m::rtp::Ssrc;
use str0m::{Candidate, Event, IceCreds, Input, Output, Rtc, RtcConfig, RtcError};
use streamgauge_base::{BitRate, Duration, Ecn, Instant};

use crate::chance::Chance;
use crate::clock::Clock;
use crate::datagram::{Arrival, SentDatagram, with_zeros, without_zeros};

pub use frame::{FrameHead, HEAD_BYTES};

/// The version of str0m, as `Cargo.toml` pins it.
pub const VERSION: &str = "0.25.0";
/// Bounds of the target for datagrams, and str0m's own.
pub const LEAST_DATAGRAM_BYTES: u32 = str0m::DATAGRAM_MTU_TARGET_MIN as u32;
/// As [`LEAST_DATAGRAM_BYTES`].
pub const MOST_DATAGRAM_BYTES: u32 = 1472;
/// As [`LEAST_DATAGRAM_BYTES`].
pub const USUAL_DATAGRAM_BYTES: u32 = str0m::DATAGRAM_MTU_TARGET as u32;

/// str0m warns of datagrams that exceed the target by more; the difference of its own two defaults.
const WARNS_BEYOND: usize = str0m::DATAGRAM_MTU_WARN - str0m::DATAGRAM_MTU_TARGET;
/// Interval of str0m's own statistics.
const STATISTICS_EVERY: StdDuration = StdDuration::from_secs(1);
/// Addresses of the two ends for ICE. Their channel leads to the other end for any address.
const SENDER: SocketAddr = address(1);
const RECEIVER: SocketAddr = address(2);

const fn address(host: u8) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), 5004)
}

/// Which end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallEnd {
    /// It sends frames and estimates the bandwidth.
    Sender,
    /// It gathers frames and reports packets.
    Receiver,
}

/// The terms of a call, equal at both ends: they replace the exchange of session descriptions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// Seeds both ends, their credentials and their sources.
    pub seed: u64,
    /// The time that str0m's clock is behind a whole second at the trial's time 0. str0m turns instants into
    /// dates, and its course depends on their fractions of a second.
    pub phase: Duration,
    /// The first estimate.
    pub start: BitRate,
    /// The rate that the sender would like to reach.
    pub desired: BitRate,
    /// The target for the bytes of a datagram.
    pub datagram_bytes: u32,
}

impl Call {
    fn credentials(&self, end: CallEnd) -> IceCreds {
        let name = if end == CallEnd::Sender { 's' } else { 'r' };
        IceCreds {
            ufrag: format!("{name}{:015x}", self.seed >> 4),
            pass: format!("{name}{:016x}{:07x}", self.seed, self.seed & 0xfff_ffff),
        }
    }

    /// Returns the sources of media and of repeated packets. Source 0 is that of probes.
    fn sources(&self) -> (Ssrc, Ssrc) {
        let media = (self.seed as u32) & !1 | 2;
        (media.into(), (media | 1).into())
    }
}

/// An output of an end.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    /// A datagram leaves.
    Send(SentDatagram),
    /// The ends are connected: frames may be sent.
    Connected,
    /// The sender's estimate.
    Estimate(BitRate),
    /// The receiver asks for a key frame.
    KeyAsked,
    /// The last round trip by reports.
    RoundTrip(Duration),
    /// Requests for lost packets since the last statistics.
    Requests(u64),
    /// A frame is whole.
    Frame(Gathered),
    /// The other end has closed the call.
    Closed,
    /// str0m refused an input, and the call is over.
    Failed(String),
}

/// A frame that the receiver has gathered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gathered {
    /// Its head.
    pub head: FrameHead,
    /// Nothing is missing between the frame before it and this one.
    pub is_contiguous: bool,
    /// Packets that are missing between the two.
    pub missing: u64,
    /// Its packets.
    pub packets: u64,
}

/// One end of a call.
pub struct CallPeer {
    rtc: Rtc,
    chance: Chance,
    clock: Clock,
    end: CallEnd,
    told: VecDeque<Told>,
    next: Option<Instant>,
    is_over: bool,
    gatherer: Gatherer,
    room: Vec<u8>,
}

impl CallPeer {
    /// Returns an end that begins at `now`.
    ///
    /// # Errors
    ///
    /// str0m's words, if it refuses the call.
    pub fn new(end: CallEnd, call: &Call, now: Instant) -> Result<Self, String> {
        Self::in_epoch(end, call, now, 0)
    }

    /// Returns an end as [`CallPeer::new`] with a clock that is `turns` spans of the epoch ahead, as in a process that
    /// began as much later. The call's course is the same.
    pub fn in_epoch(end: CallEnd, call: &Call, now: Instant, turns: u32) -> Result<Self, String> {
        let phase = StdDuration::from_nanos(call.phase.as_nanos());
        let clock = Clock::from_base(epoch::epoch() + epoch::SPAN * turns + phase);
        let mut chance = Chance::new(call.seed ^ end as u64);
        let rtc = made(end, call, clock.to_std(now), &mut chance, false);
        let mut peer = CallPeer {
            rtc: rtc.map_err(|error| error.to_string())?,
            chance,
            clock,
            end,
            told: VecDeque::new(),
            next: Some(now),
            is_over: false,
            gatherer: Gatherer::default(),
            room: Vec::new(),
        };
        peer.timeout(now);
        Ok(peer)
    }

    /// Takes a datagram. Bytes that are none of a call's are ignored.
    pub fn datagram(&mut self, arrival: Arrival<'_>) {
        let mut room = std::mem::take(&mut self.room);
        let at = self.clock.to_std(arrival.at);
        let (here, there) = addresses(self.end);
        let bytes = with_zeros(arrival.bytes, &mut room);
        // str0m has no use for the mark: it does not report ECN (RFC 8888).
        self.step(|rtc| match Receive::new(Protocol::Udp, there, here, bytes) {
            Ok(received) => rtc.handle_input(Input::Receive(at, received)),
            Err(_) => Ok(()),
        });
        self.room = room;
    }

    /// Lets str0m act at `now`.
    pub fn timeout(&mut self, now: Instant) {
        let at = self.clock.to_std(now);
        self.step(|rtc| rtc.handle_input(Input::Timeout(at)));
    }

    /// Sends a frame of `bytes` bytes.
    pub fn frame(&mut self, now: Instant, head: FrameHead, bytes: u32) {
        let at = self.clock.to_std(now);
        let captured = MediaTime::from_90khz(head.captured.as_nanos() * 9 / 100_000);
        self.step(|rtc| {
            let payload_type = video(rtc).ok_or(RtcError::NoSenderSource)?;
            match rtc.writer(media()) {
                Some(writer) => writer.write(payload_type, at, captured, head.write(bytes)),
                None => Ok(()),
            }
        });
        self.timeout(now);
    }

    /// Asks the sender for a key frame.
    pub fn ask_for_key(&mut self, now: Instant) {
        self.step(|rtc| match rtc.writer(media()) {
            Some(mut writer) => writer.request_keyframe(None, KeyframeRequestKind::Pli),
            None => Ok(()),
        });
        self.timeout(now);
    }

    /// Ends the call.
    pub fn close(&mut self) {
        self.step(Rtc::close);
    }

    /// Returns the next thing that str0m has to hand over.
    pub fn poll(&mut self) -> Option<Told> {
        self.told.pop_front()
    }

    /// Returns when it needs [`CallPeer::timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next.filter(|_| !self.is_over)
    }

    /// One change, then all that follows from it: str0m needs both in turn.
    fn step(&mut self, change: impl FnOnce(&mut Rtc) -> Result<(), RtcError>) {
        if self.is_over {
            return;
        }
        let CallPeer { rtc, chance, clock, told, gatherer, .. } = self;
        let next = chance.run(|| {
            change(rtc)?;
            loop {
                match rtc.poll_output()? {
                    Output::Timeout(at) => return Ok::<StdInstant, RtcError>(at),
                    Output::Transmit(sent) => {
                        let bytes = without_zeros(&sent.contents);
                        told.push_back(Told::Send(SentDatagram { bytes, ecn: Ecn::NotEct }));
                    }
                    Output::Event(event) => told.extend(gatherer.event(event)),
                }
            }
        });
        match next {
            Ok(at) => self.next = clock.from_std(at),
            Err(error) => {
                self.is_over = true;
                self.told.push_back(Told::Failed(error.to_string()));
            }
        }
    }
}

/// Turns str0m's events into ours.
#[derive(Default)]
struct Gatherer {
    /// The sequence number after the last frame's, and the requests counted so far.
    after: Option<u64>,
    requests: u64,
}

impl Gatherer {
    fn event(&mut self, event: Event) -> Option<Told> {
        match event {
            Event::Connected => Some(Told::Connected),
            Event::EgressBitrateEstimate(BweKind::Twcc { estimate, .. }) => {
                Some(Told::Estimate(BitRate::from_bps(estimate.as_u64())))
            }
            Event::KeyframeRequest(_) => Some(Told::KeyAsked),
            Event::MediaEgressStats(seen) => {
                Some(Told::RoundTrip(Duration::from_nanos(seen.rtt?.as_nanos() as u64)))
            }
            Event::MediaIngressStats(seen) => {
                let more = seen.nacks - self.requests;
                self.requests = seen.nacks;
                (more > 0).then_some(Told::Requests(more))
            }
            Event::MediaData(data) => self.frame(&data),
            Event::Closed => Some(Told::Closed),
            _ => None,
        }
    }

    fn frame(&mut self, data: &MediaData) -> Option<Told> {
        let head = FrameHead::read(&data.data)?;
        let (first, last) = (**data.seq_range.start(), **data.seq_range.end());
        let missing = self.after.replace(last + 1).map_or(0, |after| first.saturating_sub(after));
        let packets = last + 1 - first;
        Some(Told::Frame(Gathered { head, is_contiguous: data.contiguous, missing, packets }))
    }
}

fn media() -> Mid {
    Mid::from("vid")
}

fn video(rtc: &Rtc) -> Option<Pt> {
    Some(rtc.codec_config().find(|one| one.spec().codec == Codec::Vp8)?.pt())
}

fn addresses(end: CallEnd) -> (SocketAddr, SocketAddr) {
    if end == CallEnd::Sender { (SENDER, RECEIVER) } else { (RECEIVER, SENDER) }
}

/// Makes one end: all that session descriptions would agree on.
fn made(
    end: CallEnd,
    call: &Call,
    start: StdInstant,
    chance: &mut Chance,
    shows_packets: bool,
) -> Result<Rtc, RtcError> {
    let is_sender = end == CallEnd::Sender;
    let other = if is_sender { CallEnd::Receiver } else { CallEnd::Sender };
    let bytes = call.datagram_bytes as usize;
    let config = RtcConfig::new()
        .clear_codecs()
        .enable_vp8(true)
        .set_crypto_provider(Arc::new(null::provider()))
        .set_fingerprint_verification(false)
        .set_local_ice_credentials(call.credentials(end))
        .set_stats_interval(Some(STATISTICS_EVERY))
        // Without a bound str0m 0.25 panics when it pads with packets that it has sent: its index exceeds its own table.
        .set_mtu(bytes..=bytes + WARNS_BEYOND)
        .enable_bwe(is_sender.then(|| Bitrate::bps(call.start.as_bps())))
        .enable_raw_packets(shows_packets);
    // Not watched: str0m's data channels, which a call has none of, begin with a reading of the clock that nothing uses.
    let mut rtc = chance.unwatched(|| config.build(start));
    chance.run(|| {
        let (here, there) = addresses(end);
        let host = |address| Candidate::host(address, Protocol::Udp).map_err(RtcError::Ice);
        rtc.add_local_candidate(host(here)?);
        rtc.add_remote_candidate(host(there)?);
        let (video, repeated) = call.sources();
        let mut direct = rtc.direct_api();
        direct.set_remote_ice_credentials(call.credentials(other));
        direct.set_remote_fingerprint(Fingerprint { hash_func: "sha-256".into(), bytes: vec![0; 32] });
        direct.set_ice_controlling(is_sender);
        direct.start_dtls(!is_sender)?;
        direct.declare_media(media(), MediaKind::Video);
        if is_sender {
            direct.declare_stream_tx(video, Some(repeated), media(), None);
        } else {
            direct.expect_stream_rx(video, Some(repeated), media(), None);
            direct.enable_twcc_feedback();
        }
        if is_sender {
            rtc.bwe().set_bitrate(Bitrate::ZERO, Bitrate::bps(call.desired.as_bps()));
        }
        Ok::<(), RtcError>(())
    })?;
    Ok(rtc)
}
