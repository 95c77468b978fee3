//! A clip's pictures as MPEG-TS, at their pace.

use streamgauge_base::{Duration, Instant};

use crate::media::ClipSpec;
use crate::media::mpegts::{Muxer, PACKET_BYTES, TICKS_PER_S, packets_of};
use crate::rates::datagram_bytes;

/// Muxes pictures when they are due.
pub struct Feed {
    clip: ClipSpec,
    muxer: Muxer,
    /// When picture 0 was due.
    base: Option<Instant>,
    next: u64,
    last: Instant,
    paused: Option<Instant>,
}

impl Feed {
    pub fn new(clip: &ClipSpec) -> Self {
        let clip = clip.clone();
        Feed { clip, muxer: Muxer::default(), base: None, next: 0, last: Instant::ZERO, paused: None }
    }

    /// Picture 0 is due now.
    pub fn start(&mut self, now: Instant) {
        (self.base, self.last) = (Some(now), now);
    }

    pub fn pause(&mut self, now: Instant) {
        self.paused = self.paused.or(Some(now));
    }

    pub fn resume(&mut self, now: Instant) {
        if let (Some(since), Some(base)) = (self.paused.take(), &mut self.base) {
            *base += now.saturating_since(since);
        }
    }

    /// Returns when the next picture is due.
    pub fn due(&self) -> Option<Instant> {
        let base = self.base.filter(|_| self.paused.is_none() && !self.has_ended())?;
        Some(base + self.clip.frame_interval * self.next)
    }

    /// Returns whether no picture is left.
    pub fn has_ended(&self) -> bool {
        self.next >= self.clip.frames()
    }

    /// Returns when the last picture was muxed, if none is left and nothing is paused.
    pub fn ended_at(&self) -> Option<Instant> {
        (self.has_ended() && self.paused.is_none()).then_some(self.last)
    }

    /// Returns the packets of the next picture.
    pub fn picture(&mut self, now: Instant) -> Vec<u8> {
        let (clip, number) = (&self.clip, self.next);
        let place = (number % clip.frame_bytes.len() as u64) as usize;
        let is_key = match clip.key_frames.is_empty() {
            true => place == 0,
            false => clip.key_frames.binary_search(&(place as u32)).is_ok(),
        };
        let ticks = u128::from(clip.frame_interval.as_nanos()) * u128::from(number) * u128::from(TICKS_PER_S);
        let has_tables = number.is_multiple_of(tables_every(clip));
        let stream =
            self.muxer.picture((ticks / 1_000_000_000) as u64, clip.frame_bytes[place], is_key, has_tables);
        self.next += 1;
        self.last = now;
        stream
    }
}

/// Returns how many pictures apart the tables of the stream are: each is repeated within 100 ms (ETSI TR 101 290
/// section 5.2.1 allows 500 ms; FFmpeg writes them each 100 ms).
fn tables_every(clip: &ClipSpec) -> u64 {
    (Duration::from_millis(100).as_nanos() / clip.frame_interval.as_nanos().max(1)).max(1)
}

/// Returns the rate in bit/s of datagrams with these bytes of payload and of header, in IP packets that cost `link_bytes`
/// more each, without repeated packets and control.
pub fn wanted_bps(
    clip: &ClipSpec,
    payload_bytes: usize,
    header_bytes: usize,
    link_bytes: u32,
) -> Option<f64> {
    let (most, header) = (payload_bytes as u64, header_bytes as u32);
    let (mut bytes, every) = (0, tables_every(clip));
    for (number, &picture) in (0u64..).zip(&clip.frame_bytes) {
        let payload = packets_of(picture, number.is_multiple_of(every)) * PACKET_BYTES as u64;
        let whole = datagram_bytes(most as u32 + header, link_bytes);
        let rest = (payload % most) as u32;
        bytes += payload / most * whole;
        bytes += if rest > 0 { datagram_bytes(rest + header, link_bytes) } else { 0 };
    }
    let lasts_ns = clip.frame_bytes.len() as f64 * clip.frame_interval.as_nanos() as f64;
    (lasts_ns > 0.0).then(|| 8e9 * bytes as f64 / lasts_ns)
}

/// Refuses a clip that cannot be sent, by its field.
pub fn check_clip(clip: &ClipSpec) -> Result<(), (&'static str, String)> {
    clip.check()?;
    if clip.display_order.is_empty() {
        return Ok(());
    }
    Err(("display_order", "its pictures are out of order; give a clip without B-frames".into()))
}
