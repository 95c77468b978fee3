//! One stream of a session: its wanted rules, its place in the media, and its sent packets.

use std::collections::VecDeque;

use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_wire::rdt::SequenceNumber;
use streamgauge_wire::rm::{self, VideoFrame};

use super::super::object::{self, CodedFrame, Encoding, VIDEO};
use crate::app::ChannelId;

/// The carrier of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// UDP, from this channel.
    Udp(ChannelId),
    /// The RTSP connection, on this channel of it.
    Interleaved(u8),
}

/// A packet of media.
pub struct Packet {
    /// The rule that it is under.
    pub rule: u16,
    /// Time when it is shown.
    pub at: Duration,
    /// Its sequence number.
    pub sequence: SequenceNumber,
    /// Its content.
    pub payload: Chunk,
}

/// A packet that was sent.
struct Kept {
    sequence: SequenceNumber,
    sent_at: Instant,
    datagram: Chunk,
    resent: bool,
}

/// Over a connection a file's frames are sent whole, up to this: libavcodec does not always show one of more than two
/// parts.
const WHOLE_BYTES: u32 = 60_000;

/// Most bytes kept of a stream, however fast a player receives it: a quarter of a minute at 2.2 Mbit/s.
const MOST_KEPT_BYTES: usize = 4 << 20;

/// The part of an encoding that is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Taken {
    encoding: usize,
    /// Frames that depend on key frames too.
    whole: bool,
}

/// Upper bounds of one packet.
#[derive(Clone, Copy, Debug)]
struct Most {
    /// Bytes of media.
    bytes: usize,
    /// Time from its first picture within which all of its pictures are shown.
    media: Option<Duration>,
}

/// A stream on its way.
pub struct Stream {
    /// Its number in the object.
    pub number: usize,
    /// Its carrier.
    pub way: Way,
    object: object::Stream,
    /// By rule.
    wanted: Vec<bool>,
    taken: Option<Taken>,
    /// The next frame of the selected encoding; where parts wait, the frame that they belong to.
    frame: u64,
    /// Presentation time of the last frame sent.
    last_at: Option<Duration>,
    /// Unsent parts of a frame that is split.
    parts: VecDeque<Chunk>,
    /// Number of the next packet.
    sequence: SequenceNumber,
    kept: VecDeque<Kept>,
    kept_bytes: usize,
}

impl Stream {
    /// Makes the object's stream of that number; nothing of it is wanted yet.
    pub fn new(number: usize, way: Way, object: object::Stream) -> Self {
        let wanted = vec![false; 2 * object.encodings.len()];
        Stream {
            number,
            way,
            object,
            wanted,
            taken: None,
            frame: 0,
            last_at: None,
            parts: VecDeque::new(),
            sequence: SequenceNumber::default(),
            kept: VecDeque::new(),
            kept_bytes: 0,
        }
    }

    /// Makes a rule wanted, or unwanted. Returns whether there is one of that number.
    pub fn subscribe(&mut self, rule: u16, wanted: bool) -> bool {
        let known = self.wanted.get_mut(usize::from(rule));
        known.map(|known| *known = wanted).is_some()
    }

    /// Returns whether some rule is wanted.
    pub fn is_wanted(&self) -> bool {
        self.wanted.contains(&true)
    }

    /// Makes the lowest encoding wanted, where nothing is.
    pub fn want_lowest(&mut self) {
        if !self.is_wanted() {
            self.wanted.iter_mut().take(2).for_each(|rule| *rule = true);
        }
    }

    /// Returns the rate of the wanted rules, in bit/s.
    pub fn wanted_bps(&self) -> u64 {
        self.target().map_or(0, |taken| {
            let encoding = &self.object.encodings[taken.encoding];
            if taken.whole { encoding.bit_rate_bps } else { encoding.key_rate_bps }
        })
    }

    /// Returns the rate of the sent rules, in bit/s.
    pub fn sent_bps(&self) -> u64 {
        self.taken.map_or(0, |taken| {
            let encoding = &self.object.encodings[taken.encoding];
            if taken.whole { encoding.bit_rate_bps } else { encoding.key_rate_bps }
        })
    }

    /// Returns the part sent from the next frame on, in words that `streamgauge.media.level_quality` reads.
    pub fn says_sent(&self) -> String {
        match self.taken.zip(self.next_at()) {
            Some((Taken { encoding, whole }, at)) => {
                let what = if whole { "encoding" } else { "key frames of encoding" };
                format!("{what} {encoding} from {:.3} s of the media", at.as_secs_f64())
            }
            None => "no pictures".into(),
        }
    }

    fn target(&self) -> Option<Taken> {
        let encoding = self.wanted.iter().rposition(|wanted| *wanted)? / 2;
        Some(Taken { encoding, whole: self.wanted[2 * encoding + 1] })
    }

    /// Continues from `at`, or from the first key frame behind it.
    pub fn seek(&mut self, at: Duration) {
        (self.taken, self.last_at) = (self.target(), None);
        self.parts.clear();
        if let Some(encoding) = self.encoding() {
            self.frame = encoding.key_from(encoding.first_at(at));
        }
    }

    fn encoding(&self) -> Option<&Encoding> {
        self.taken.map(|taken| &self.object.encodings[taken.encoding])
    }

    fn next_frame(&self) -> Option<CodedFrame> {
        self.encoding()?.frame(self.frame)
    }

    /// Replaces the sent part by the wanted one, if the next frame allows it: a key frame of the wanted encoding or,
    /// where none is wanted, of the sent one. Media has reached `position`. Returns whether it did. Files need not have
    /// their key frames at the same times: of theirs any will do that is shown between the last frame and the next.
    pub fn follow(&mut self, position: Duration) -> bool {
        let target = self.target();
        if target == self.taken || !self.parts.is_empty() {
            return false;
        }
        let next = self.next_frame();
        match (target, next) {
            (Some(taken), next) => {
                let encoding = &self.object.encodings[taken.encoding];
                let from = next.map_or(position, |frame| frame.at);
                // Where nothing was sent for a while, the frames of that time are past.
                let last_at = self.last_at.filter(|_| encoding.is_coded() && next.is_some());
                let behind = last_at.map_or(from, |last| from.min(last + Duration::from_nanos(1)));
                let key = encoding.key_from(encoding.first_at(behind));
                let is_later = |frame: CodedFrame| frame.at > from;
                if next.is_some() && encoding.frame(key).is_none_or(is_later) {
                    return false;
                }
                (self.taken, self.frame) = (Some(taken), key);
            }
            (None, Some(frame)) if !frame.is_key => return false,
            (None, _) => self.taken = None,
        }
        true
    }

    /// Returns when its next frame is shown; `None` if there is none, or none is wanted.
    pub fn next_at(&self) -> Option<Duration> {
        self.next_frame().map(|frame| frame.at)
    }

    /// Returns the next packet, of about `limit` bytes of media at most; its pictures are shown within `media`, if that
    /// is given.
    pub fn next(&mut self, limit: u32, media: Option<Duration>) -> Option<Packet> {
        let taken = self.taken?;
        let frame = self.next_frame()?;
        let rules = object::rules_of(taken.encoding);
        let is_whole =
            self.object.encodings[taken.encoding].is_coded() && matches!(self.way, Way::Interleaved(_));
        let whole = if is_whole { WHOLE_BYTES } else { limit };
        let sequence = self.sequence;
        self.sequence = sequence.next();
        let rule = rules[usize::from(!frame.is_key)];
        let payload = match self.number {
            VIDEO => self.pictures(taken, frame, Most { bytes: limit as usize, media }, whole as usize),
            _ => self.sound(frame, limit),
        };
        Some(Packet { rule, at: frame.at, sequence, payload })
    }

    /// Blocks of sound one behind the other; those of a file have packets of their own.
    fn sound(&mut self, first: CodedFrame, limit: u32) -> Chunk {
        if let Some(encoding) = self.encoding().filter(|encoding| encoding.is_coded()) {
            let media = encoding.media(self.frame, first);
            self.frame += 1;
            return media;
        }
        let mut bytes = 0;
        while let Some(block) = self.next_frame().filter(|block| bytes == 0 || bytes + block.bytes <= limit) {
            bytes += block.bytes;
            self.frame += 1;
        }
        Chunk::filler(bytes)
    }

    /// Returns the next part of a frame that is longer than `whole`, or all of one, with others behind it that share
    /// the packet if all of them are within `most`.
    fn pictures(&mut self, taken: Taken, first: CodedFrame, most: Most, whole: usize) -> Chunk {
        if self.parts.is_empty() {
            let coded = self.coded(taken, first);
            if rm::among_several(&coded) <= whole {
                return self.shared(taken, first, most);
            }
            // A frame with more parts than can be counted is sent in larger ones.
            let sizes = (0..16).map(|doubled| whole << doubled);
            self.parts =
                sizes.map(|most| rm::fragment(&coded, most)).find_map(Result::ok).unwrap_or_default().into();
        }
        let part = self.parts.pop_front().unwrap_or_default();
        if self.parts.is_empty() {
            self.step(taken);
        }
        part
    }

    /// Returns the whole frames under one rule: one, and as many behind it as fit.
    fn shared(&mut self, taken: Taken, first: CodedFrame, most: Most) -> Chunk {
        let (mut frames, mut bytes) = (Vec::new(), 0);
        let ends = most.media.map(|media| first.at + media);
        let joins =
            |frame: &CodedFrame| frame.is_key == first.is_key && ends.is_none_or(|ends| frame.at < ends);
        while let Some(frame) = self.next_frame().filter(joins) {
            let coded = self.coded(taken, frame);
            bytes += rm::among_several(&coded);
            if bytes > most.bytes && !frames.is_empty() {
                break;
            }
            frames.push(coded);
            self.step(taken);
        }
        match frames.as_slice() {
            [alone] => rm::whole(alone),
            several => rm::several(several),
        }
    }

    /// Returns the next frame, as RealVideo has it.
    fn coded(&self, taken: Taken, frame: CodedFrame) -> VideoFrame {
        let timestamp_ms = Some((frame.at.as_nanos() / 1_000_000) as u32);
        let media = self.object.encodings[taken.encoding].media(self.frame, frame);
        VideoFrame { picture: self.frame as u8, timestamp_ms, media }
    }

    fn step(&mut self, taken: Taken) {
        let encoding = &self.object.encodings[taken.encoding];
        self.last_at = encoding.frame(self.frame).map(|frame| frame.at);
        self.frame = if taken.whole { self.frame + 1 } else { encoding.key_from(self.frame + 1) };
    }

    /// Keeps a datagram, for when it is lost; the oldest are dropped when all of them reach [`MOST_KEPT_BYTES`].
    pub fn keep(&mut self, now: Instant, sequence: SequenceNumber, datagram: Chunk, for_long: Duration) {
        self.kept_bytes += datagram.len();
        while self
            .kept
            .front()
            .is_some_and(|kept| self.kept_bytes > MOST_KEPT_BYTES || kept.sent_at + for_long < now)
        {
            self.kept_bytes -= self.kept.pop_front().map_or(0, |kept| kept.datagram.len());
        }
        self.kept.push_back(Kept { sequence, sent_at: now, datagram, resent: false });
    }

    /// Returns the datagram of that number, if it is kept still and may be sent again.
    pub fn again(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        for_long: Duration,
        once: bool,
    ) -> Option<Chunk> {
        // They are kept in order and without a gap.
        let place = sequence.ahead_of(self.kept.front()?.sequence);
        let kept = self.kept.get_mut(usize::try_from(place).ok()?)?;
        if kept.sequence != sequence || kept.sent_at + for_long < now {
            return None;
        }
        if std::mem::replace(&mut kept.resent, true) && once {
            return None;
        }
        Some(kept.datagram.clone())
    }

    /// Returns the number of the last packet.
    pub fn last_sequence(&self) -> SequenceNumber {
        self.sequence.plus(-1)
    }
}
