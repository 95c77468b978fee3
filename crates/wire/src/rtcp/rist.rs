//! RIST's own RTCP packets: APP with the name `RIST`.

use super::{APP, Fault, Problem};

/// The name of the packets (TR-06-1 section 5.3.1.2).
pub const NAME: [u8; 4] = *b"RIST";

/// Ranges that one packet may have (section 5.3.1.2).
pub const MOST_RANGES: usize = 16;

/// Subtypes: a request by ranges (section 5.3.1.2), and both ways of the echo (section 5.2.6 of the edition of 2020).
const RANGES: u8 = 0;
const ECHO_REQUEST: u8 = 2;
const ECHO_RESPONSE: u8 = 3;

/// Bytes of an echo behind the name, without its padding.
const ECHO_BYTES: usize = 12;
/// Words of padding that an echo is written with at most.
const MOST_PADDING: u16 = 256;

/// Packets that are asked for again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NackRange {
    /// The sequence number of the first.
    pub first: u16,
    /// How many more follow it.
    pub more: u16,
}

impl NackRange {
    /// Reads the ranges in these bytes; less than four at the end are left out.
    pub fn read(bytes: &[u8]) -> impl Iterator<Item = NackRange> + '_ {
        bytes.as_chunks().0.iter().map(|[a, b, c, d]| NackRange {
            first: u16::from_be_bytes([*a, *b]),
            more: u16::from_be_bytes([*c, *d]),
        })
    }

    /// Returns the ranges of `sequences`, which come in their order: as few as hold them.
    pub fn of(sequences: &[u16]) -> Vec<NackRange> {
        let mut ranges: Vec<NackRange> = Vec::new();
        for &sequence in sequences {
            match ranges.last_mut() {
                Some(range) if range.more < u16::MAX && sequence == range.behind() => range.more += 1,
                _ => ranges.push(NackRange { first: sequence, more: 0 }),
            }
        }
        ranges
    }

    fn behind(self) -> u16 {
        self.first.wrapping_add(self.more).wrapping_add(1)
    }

    /// Returns the numbers that it names.
    pub fn sequences(self) -> impl Iterator<Item = u16> {
        (0..=self.more).map(move |more| self.first.wrapping_add(more))
    }
}

/// One way of an echo.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Echo {
    /// The source on the path that is measured.
    pub source: u32,
    /// The time at which the request left, as its sender counts: a response returns it.
    pub timestamp: u64,
    /// Time between request and response at the other end, in microseconds; 0 in a request.
    pub delay_us: u32,
    /// Words of padding, of which no content is kept; at most 256 are written.
    pub padding_words: u16,
}

/// A packet of RIST's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RistApp {
    /// Packets are asked for again.
    Ranges {
        /// Their source.
        source: u32,
        /// Which; as many are written as a packet of RTCP has room for, where the specification allows [`MOST_RANGES`].
        ranges: Vec<NackRange>,
    },
    /// The other end is to answer.
    EchoRequest(Echo),
    /// Its answer.
    EchoResponse(Echo),
}

impl RistApp {
    /// Reads the data of an APP named [`NAME`]; `None` for another subtype.
    pub(crate) fn read(source: u32, subtype: u8, data: &[u8]) -> Result<Option<Self>, Problem> {
        let wrong = Problem { fault: Fault::Contents, packet_type: APP };
        if !data.len().is_multiple_of(4) {
            return Err(wrong);
        }
        if subtype == RANGES {
            return Ok(Some(RistApp::Ranges { source, ranges: NackRange::read(data).collect() }));
        }
        if subtype != ECHO_REQUEST && subtype != ECHO_RESPONSE {
            return Ok(None);
        }
        let (Some(time), Some(delay)) =
            (data.first_chunk(), data.get(8..).and_then(|rest| rest.first_chunk()))
        else {
            return Err(wrong);
        };
        let echo = Echo {
            source,
            timestamp: u64::from_be_bytes(*time),
            delay_us: u32::from_be_bytes(*delay),
            padding_words: (((data.len() - ECHO_BYTES) / 4) as u16).min(MOST_PADDING),
        };
        Ok(Some(if subtype == ECHO_REQUEST {
            RistApp::EchoRequest(echo)
        } else {
            RistApp::EchoResponse(echo)
        }))
    }

    /// Returns source, subtype and data.
    pub(crate) fn parts(&self) -> (u32, u8, Vec<u8>) {
        let echo = |echo: &Echo| {
            let mut data = echo.timestamp.to_be_bytes().to_vec();
            data.extend(echo.delay_us.to_be_bytes());
            data.resize(data.len() + 4 * usize::from(echo.padding_words.min(MOST_PADDING)), 0);
            data
        };
        match self {
            RistApp::Ranges { source, ranges } => {
                let most = usize::from(u16::MAX) - 2;
                let words = ranges
                    .iter()
                    .take(most)
                    .flat_map(|one| [one.first.to_be_bytes(), one.more.to_be_bytes()]);
                (*source, RANGES, words.flatten().collect())
            }
            RistApp::EchoRequest(request) => (request.source, ECHO_REQUEST, echo(request)),
            RistApp::EchoResponse(response) => (response.source, ECHO_RESPONSE, echo(response)),
        }
    }
}
