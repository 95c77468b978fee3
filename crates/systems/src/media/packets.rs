//! From access units to RTP payloads and back, for any codec.

use streamgauge_base::Chunk;

use super::asset::{Bytes, Codec, Track, UnitKind};
use super::payload::Payload;
use super::{aac, h264, mpeg4};

/// Payloads smaller than this leave no room for the headers of every codec and something of use besides.
pub const LEAST_PAYLOAD_BYTES: u32 = 64;

impl Track {
    /// Returns the packets that are sent for `unit`, each of at most `max_payload` bytes
    /// (`LEAST_PAYLOAD_BYTES` or more), all with the timestamp of that unit. Several small blocks of sound
    /// share a packet, which is sent with the first of them: for the others there is none.
    pub fn packets(&self, unit: usize, max_payload: u32) -> impl ExactSizeIterator<Item = Payload> + use<> {
        let max = max_payload.max(LEAST_PAYLOAD_BYTES);
        let mut payloads = match &self.codec {
            Codec::Sizes => self.units.get(unit).map_or_else(Vec::new, |unit| {
                let header = match unit.kind {
                    UnitKind::Key => h264::IDR_SLICE,
                    UnitKind::Predicted => h264::SLICE,
                    UnitKind::Disposable => h264::DISPOSABLE_SLICE,
                };
                h264::filler(header, unit.bytes, max)
                    .map(|(head, filler)| Payload { chunk: Chunk::with_filler(head, filler), marker: false })
                    .collect()
            }),
            Codec::H264 { length_bytes, .. } => h264::packets(self.unit_bytes(unit), *length_bytes, max),
            Codec::Mpeg4Visual { .. } => mpeg4::packets(self.unit_bytes(unit), max),
            Codec::Aac { .. } => aac::packets(self, unit, max),
        };
        if let Some(last) = payloads.last_mut() {
            last.marker = true;
        }
        payloads.into_iter()
    }

    /// Returns the bytes of `unit`; none if the track has only sizes.
    pub fn unit_bytes(&self, unit: usize) -> &[u8] {
        let (Bytes::Shared(file), Some(unit)) = (&self.bytes, self.units.get(unit)) else { return &[] };
        let from = usize::try_from(unit.offset).unwrap_or(usize::MAX);
        (**file).as_ref().get(from..from.saturating_add(unit.bytes as usize)).unwrap_or(&[])
    }
}

/// Returns true if a packet with a payload that begins with `head` (two bytes are enough) may be a unit's
/// first, false if it is a fragment's continuation. Exact for frames of one NAL unit (all of `Codec::Sizes`)
/// and for MPEG-4 Visual; in a frame of several NAL units each begins one, and sound does not reveal it:
/// there the marker of the packet before it does.
pub fn begins_unit(codec: &Codec, head: &[u8]) -> bool {
    match codec {
        Codec::Sizes | Codec::H264 { .. } => h264::begins_nal_unit(head),
        Codec::Mpeg4Visual { .. } => mpeg4::begins(head),
        Codec::Aac { .. } => true,
    }
}

/// Returns the unit that `payloads` carry, which are all of its packets in order, as players read it from a
/// file: H.264 as Annex B, MPEG-4 Visual as an elementary stream, AAC with ADTS headers.
pub fn assemble<'a>(codec: &Codec, payloads: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let payloads = payloads.into_iter();
    match codec {
        Codec::Sizes | Codec::H264 { .. } => h264::assemble(payloads),
        Codec::Mpeg4Visual { .. } => payloads.flatten().copied().collect(),
        Codec::Aac { config, channels } => aac::assemble(payloads, config, *channels),
    }
}

/// Returns the beginning of such a file: the parameter sets, or the decoder's configuration.
pub fn preamble(codec: &Codec) -> Vec<u8> {
    match codec {
        Codec::H264 { sps, pps, .. } => h264::annex_b(sps.iter().chain(pps).map(Vec::as_slice)),
        Codec::Mpeg4Visual { config } => config.clone(),
        Codec::Sizes | Codec::Aac { .. } => Vec::new(),
    }
}
