//! RTP and RTCP on one stream: `$`, channel, length (RFC 2326 section 10.12).

use streamgauge_base::Chunk;

/// The interleaved channel of RTP; RTCP's is the next.
pub const RTP: u8 = 0;
pub const RTCP: u8 = 1;

const MAGIC: u8 = b'$';
const HEADER_BYTES: usize = 4;

/// Real bytes kept of a packet: enough for any header or report of ours.
const KEPT_BYTES: usize = 256;

/// `head` and `filler` more bytes, framed.
pub fn frame(channel: u8, head: &[u8], filler: u32) -> Chunk {
    let length = u16::try_from(head.len() + filler as usize).expect("packets are far below 64 kB");
    let [high, low] = length.to_be_bytes();
    let mut bytes = Vec::with_capacity(HEADER_BYTES + head.len());
    bytes.extend_from_slice(&[MAGIC, channel, high, low]);
    bytes.extend_from_slice(head);
    Chunk::with_filler(bytes, filler)
}

/// A packet taken out of the stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Framed {
    pub channel: u8,
    /// Its first bytes.
    pub head: Vec<u8>,
}

/// Takes packets out of a stream that arrives in any pieces.
#[derive(Default)]
pub struct Deframer {
    header: Vec<u8>,
    head: Vec<u8>,
    /// Bytes of the packet's body still to come, once its header is whole.
    left: Option<usize>,
    lost_frame: bool,
}

impl Deframer {
    /// Takes the stream's next bytes and gives each packet that they complete to `packet`. Filler reads as
    /// zeros. A stream that is not framed as it should be is ignored from there on.
    pub fn push(&mut self, chunk: &Chunk, mut packet: impl FnMut(Framed)) {
        let mut real = chunk.head();
        let mut filler = chunk.len() - real.len();
        while !self.lost_frame && (!real.is_empty() || filler > 0) {
            let Some(left) = self.left else {
                self.header.push(take_byte(&mut real, &mut filler));
                if self.header.len() == HEADER_BYTES {
                    self.lost_frame = self.header[0] != MAGIC;
                    self.left = Some(usize::from(u16::from_be_bytes([self.header[2], self.header[3]])));
                    self.complete(&mut packet);
                }
                continue;
            };
            let from_real = left.min(real.len());
            let kept = from_real.min(KEPT_BYTES.saturating_sub(self.head.len()));
            self.head.extend_from_slice(&real[..kept]);
            real = &real[from_real..];
            let from_filler = if real.is_empty() { (left - from_real).min(filler) } else { 0 };
            filler -= from_filler;
            self.left = Some(left - from_real - from_filler);
            self.complete(&mut packet);
        }
    }

    fn complete(&mut self, packet: &mut impl FnMut(Framed)) {
        if self.left == Some(0) {
            packet(Framed { channel: self.header[1], head: std::mem::take(&mut self.head) });
            self.header.clear();
            self.left = None;
        }
    }
}

fn take_byte(real: &mut &[u8], filler: &mut usize) -> u8 {
    if let Some((&byte, rest)) = real.split_first() {
        *real = rest;
        return byte;
    }
    *filler -= 1;
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn packets_survive_any_cut(
            packets in prop::collection::vec((0u8..2, prop::collection::vec(any::<u8>(), 1..40), 0u32..1400), 1..8),
            cuts in prop::collection::vec(1usize..700, 1..20),
        ) {
            let mut deframer = Deframer::default();
            let mut got = Vec::new();
            let mut cuts = cuts.iter().cycle();
            for (channel, head, filler) in &packets {
                let mut rest = frame(*channel, head, *filler);
                while !rest.is_empty() {
                    let next = rest.split_off(*cuts.next().unwrap());
                    deframer.push(&rest, |p| got.push(p));
                    rest = next;
                }
            }
            let expected: Vec<_> = packets.into_iter().map(|(channel, head, _)| Framed { channel, head }).collect();
            prop_assert_eq!(got, expected);
        }
    }

    #[test]
    fn a_stream_without_frames_is_ignored() {
        let mut deframer = Deframer::default();
        deframer.push(&Chunk::bytes(*b"RTSP/1.0 200 OK"), |p| panic!("{p:?}"));
        deframer.push(&frame(0, b"late", 0), |p| panic!("{p:?}"));
    }
}
