//! Sequence numbers that were sent, per source.

/// Sources remembered per flow and direction: audio, video and their retransmission streams, some times over.
pub const REMEMBERED: usize = 16;
/// Sequence numbers remembered behind the highest.
const WINDOW: u64 = 1024;
const WORDS: usize = WINDOW as usize / 64;

/// The sources of one flow in one direction, the last used first. There are `COUNT` sequence numbers; then they wrap.
#[derive(Default)]
pub struct Sources<const COUNT: u32>(Vec<Source<COUNT>>);

struct Source<const COUNT: u32> {
    /// RTP's SSRC, RDT's stream.
    id: u32,
    highest: u16,
    /// How often the numbers wrapped, times `COUNT`, plus `highest`.
    place: u64,
    /// Bit `place % WINDOW` for the `WINDOW` places up to the highest: it was sent.
    sent: [u64; WORDS],
}

impl<const COUNT: u32> Sources<COUNT> {
    pub fn knows(&self, id: u32) -> bool {
        self.0.iter().any(|source| source.id == id)
    }

    /// Notes a sent packet; true if its number, which is below `COUNT`, was sent before by this source, within the last
    /// 1024.
    pub fn sent(&mut self, id: u32, seq: u16) -> bool {
        let Some(at) = self.0.iter().position(|source| source.id == id) else {
            self.0.truncate(REMEMBERED - 1);
            self.0.insert(0, Source::of(id, seq));
            return false;
        };
        if at > 0 {
            self.0[..=at].rotate_right(1);
        }
        self.0[0].take(seq)
    }
}

impl<const COUNT: u32> Source<COUNT> {
    fn of(id: u32, seq: u16) -> Self {
        let place = u64::from(COUNT) + u64::from(seq);
        let mut source = Source { id, highest: seq, place, sent: [0; WORDS] };
        source.set(place);
        source
    }

    fn word(place: u64) -> (usize, u64) {
        ((place % WINDOW) as usize / 64, 1 << (place % 64))
    }

    fn set(&mut self, place: u64) {
        let (word, bit) = Self::word(place);
        self.sent[word] |= bit;
    }

    fn take(&mut self, seq: u16) -> bool {
        let ahead = u64::from((COUNT + u32::from(seq) - u32::from(self.highest)) % COUNT);
        if ahead == 0 {
            return true;
        }
        if ahead < u64::from(COUNT / 2) {
            if ahead >= WINDOW {
                self.sent = [0; WORDS];
            } else {
                for skipped in 1..ahead {
                    let (word, bit) = Self::word(self.place + skipped);
                    self.sent[word] &= !bit;
                }
            }
            (self.highest, self.place) = (seq, self.place + ahead);
            self.set(self.place);
            return false;
        }
        let behind = u64::from(COUNT) - ahead;
        if behind >= WINDOW {
            // Too old to judge, or the source restarted: far more likely than a repeat after 1024 packets.
            *self = Source::of(self.id, seq);
            return false;
        }
        let (word, bit) = Self::word(self.place - behind);
        let again = self.sent[word] & bit != 0;
        self.sent[word] |= bit;
        again
    }
}
