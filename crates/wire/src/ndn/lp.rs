//! Packets of the link protocol NDNLPv2, which carry Interests, Data and fragments of these, with header fields
//! (<https://redmine.named-data.net/projects/nfd/wiki/NDNLPv2>).

use streamgauge_base::Chunk;

use super::fault::{Fault, Problem};
use super::tlv::{self, Elements};
use super::types::{
    CONGESTION_MARK, DATA, FRAG_COUNT, FRAG_INDEX, FRAGMENT, INTEREST, LP_PACKET, MOST_FRAGMENTS, NACK,
    NACK_REASON, PIT_TOKEN, SEQUENCE,
};

/// Known header fields, in the order of their types in a packet; Fragment is the last.
const ORDER: [u32; 7] = [SEQUENCE, FRAG_INDEX, FRAG_COUNT, PIT_TOKEN, NACK, CONGESTION_MARK, FRAGMENT];

/// A packet of a link. A bare Interest or Data is one without header fields, and is written so.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LpPacket {
    /// Sequence: counts the sender's fragments.
    pub sequence: Option<u64>,
    /// FragIndex: number of this fragment, from 0; 0 if absent.
    pub frag_index: Option<u64>,
    /// FragCount: number of the packet's fragments; 1 if absent.
    pub frag_count: Option<u64>,
    /// PitToken: 1 to 32 bytes, to be returned with the answer.
    pub pit_token: Option<Box<[u8]>>,
    /// Nack: why the Interest that it carries is returned.
    pub nack: Option<NackReason>,
    /// CongestionMark: not 0 where a queue on the way is long.
    pub congestion_mark: Option<u64>,
    /// Fragment: an Interest, a Data, or a part of one. A packet without it is an idle one, for its fields alone.
    pub fragment: Option<Chunk>,
}

/// Why an Interest cannot be answered (NDNLPv2, "Network Nack").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NackReason {
    /// No reason, or 0.
    Unspecified,
    /// 50: a link on the way is congested.
    Congestion,
    /// 100: the nonce has been seen, the Interest was in a loop.
    Duplicate,
    /// 150: no route leads to the name.
    NoRoute,
    /// Another number.
    Other(u64),
}

impl NackReason {
    /// Returns the meaning of a number.
    pub fn of(number: u64) -> Self {
        match number {
            0 => NackReason::Unspecified,
            50 => NackReason::Congestion,
            100 => NackReason::Duplicate,
            150 => NackReason::NoRoute,
            other => NackReason::Other(other),
        }
    }

    /// Its number.
    pub fn number(self) -> u64 {
        match self {
            NackReason::Unspecified => 0,
            NackReason::Congestion => 50,
            NackReason::Duplicate => 100,
            NackReason::NoRoute => 150,
            NackReason::Other(number) => number,
        }
    }
}

impl LpPacket {
    /// Carries an Interest or a Data.
    pub fn of(packet: Chunk) -> Self {
        LpPacket { fragment: Some(packet), ..LpPacket::default() }
    }

    /// Returns an Interest.
    pub fn nack(reason: NackReason, interest: Chunk) -> Self {
        LpPacket { nack: Some(reason), ..LpPacket::of(interest) }
    }

    /// Returns whether its content is a part of a packet, for [`Reassembler`](super::Reassembler).
    pub fn is_fragmented(&self) -> bool {
        self.frag_count.unwrap_or(1) > 1
    }

    /// Reads one, or a bare Interest or Data, and nothing behind it. Its content is not read.
    ///
    /// # Errors
    /// Malformed bytes, and an unknown header field that may not be ignored.
    pub fn read(packet: Chunk) -> Result<LpPacket, Problem> {
        let first = Elements::of(&packet).next()?.ok_or(Fault::Truncated { missing: 1 }.at(0))?;
        match first.kind {
            LP_PACKET => LpPacket::read_fields(&packet),
            INTEREST | DATA => {
                tlv::packet(&packet, first.kind)?;
                Ok(LpPacket::of(packet))
            }
            other => Err(Fault::PacketType(other).at(0)),
        }
    }

    fn read_fields(packet: &Chunk) -> Result<LpPacket, Problem> {
        let mut elements = tlv::packet(packet, LP_PACKET)?;
        let start = elements.at();
        let mut read = LpPacket::default();
        let mut first = 0;
        while let Some(field) = elements.next()? {
            let Some(place) = ORDER.iter().position(|&kind| kind == field.kind) else {
                if read.fragment.is_none() && is_ignorable(field.kind) {
                    continue;
                }
                return Err(Fault::HeaderField(field.kind).at(field.start));
            };
            if place < first {
                return Err(Fault::HeaderField(field.kind).at(field.start));
            }
            first = place + 1;
            match field.kind {
                SEQUENCE => read.sequence = Some(u64::from_be_bytes(elements.array(&field)?)),
                FRAG_INDEX => read.frag_index = Some(elements.integer(&field)?),
                FRAG_COUNT => read.frag_count = Some(elements.integer(&field)?),
                PIT_TOKEN => {
                    let token = elements.value(&field)?;
                    if !(1..=32).contains(&token.len()) {
                        return Err(field.length_fault());
                    }
                    read.pit_token = Some(token.into());
                }
                NACK => read.nack = Some(nack_reason(elements.within(&field))?),
                CONGESTION_MARK => read.congestion_mark = Some(elements.integer(&field)?),
                _ => read.fragment = Some(packet.part(field.from, field.to)),
            }
        }
        let (index, count) = (read.frag_index.unwrap_or(0), read.frag_count.unwrap_or(1));
        if index >= count || count > MOST_FRAGMENTS || (count > 1 && read.sequence.is_none()) {
            return Err(Fault::Fragment { index, count }.at(start));
        }
        Ok(read)
    }

    /// Its header fields, without Fragment.
    pub(crate) fn put_fields(&self, to: &mut Vec<u8>) {
        if let Some(sequence) = self.sequence {
            tlv::put_element(to, SEQUENCE, &sequence.to_be_bytes());
        }
        if let Some(index) = self.frag_index {
            tlv::put_integer(to, FRAG_INDEX, index);
        }
        if let Some(count) = self.frag_count {
            tlv::put_integer(to, FRAG_COUNT, count);
        }
        if let Some(token) = &self.pit_token {
            tlv::put_element(to, PIT_TOKEN, token);
        }
        if let Some(reason) = self.nack {
            let mut value = Vec::new();
            if reason != NackReason::Unspecified {
                tlv::put_integer(&mut value, NACK_REASON, reason.number());
            }
            tlv::put_element(to, NACK, &value);
        }
        if let Some(mark) = self.congestion_mark {
            tlv::put_integer(to, CONGESTION_MARK, mark);
        }
    }

    /// Its bytes; without header fields those of the Interest or Data that it carries.
    pub fn write(&self) -> Chunk {
        let mut fields = Vec::new();
        self.put_fields(&mut fields);
        let Some(fragment) = &self.fragment else {
            let mut packet = Vec::with_capacity(tlv::element_bytes(LP_PACKET, fields.len()));
            tlv::put_element(&mut packet, LP_PACKET, &fields);
            return Chunk::bytes(packet);
        };
        if fields.is_empty() && [INTEREST, DATA].iter().any(|&kind| tlv::packet(fragment, kind).is_ok()) {
            return fragment.clone();
        }
        let value = fields.len() + tlv::element_bytes(FRAGMENT, fragment.len());
        let filler = fragment.len() - fragment.head().len();
        let mut packet = Vec::with_capacity(tlv::element_bytes(LP_PACKET, value) - filler);
        tlv::put_header(&mut packet, LP_PACKET, value);
        packet.extend(fields);
        tlv::put_header(&mut packet, FRAGMENT, fragment.len());
        packet.extend(fragment.head());
        Chunk::with_filler(packet, u32::try_from(filler).unwrap_or(u32::MAX))
    }
}

/// Returns whether a header field may be ignored: 800 to 959, a multiple of 4 (NDNLPv2, "TLV-TYPE Number
/// Assignments").
fn is_ignorable(kind: u32) -> bool {
    (800..=959).contains(&kind) && kind.is_multiple_of(4)
}

fn nack_reason(mut elements: Elements<'_>) -> Result<NackReason, Problem> {
    let mut reason = None;
    while let Some(element) = elements.next()? {
        match element.kind {
            NACK_REASON if reason.is_none() => reason = Some(NackReason::of(elements.integer(&element)?)),
            kind if is_ignorable(kind) => {}
            kind => return Err(Fault::HeaderField(kind).at(element.start)),
        }
    }
    Ok(reason.unwrap_or(NackReason::Unspecified))
}
