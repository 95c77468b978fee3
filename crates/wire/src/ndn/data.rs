//! Data (NDN Packet Format Specification version 0.3, "Data Packet" and "Signature").

use sha2::{Digest, Sha256};
use streamgauge_base::Chunk;

use super::component::Component;
use super::fault::{Fault, Problem};
use super::name::Name;
use super::tlv::{self, Element, Elements};
use super::types::{
    CONTENT, CONTENT_NACK, CONTENT_TYPE, DATA, FINAL_BLOCK_ID, FRESHNESS_PERIOD, META_INFO, NAME,
    SIGNATURE_INFO, SIGNATURE_TYPE, SIGNATURE_VALUE,
};

/// SignatureType of DigestSha256.
const DIGEST_SHA256: u64 = 0;
/// SignatureInfo of DigestSha256, with nothing else in it.
const DIGEST_SHA256_INFO: [u8; 3] = [SIGNATURE_TYPE as u8, 1, DIGEST_SHA256 as u8];
/// Bytes of a SHA-256.
const DIGEST_BYTES: usize = 32;
/// The elements behind the name, in order.
const ORDER: [u32; 4] = [META_INFO, CONTENT, SIGNATURE_INFO, SIGNATURE_VALUE];
/// The elements of MetaInfo, in order.
const META_ORDER: [u32; 3] = [CONTENT_TYPE, FRESHNESS_PERIOD, FINAL_BLOCK_ID];

/// Content under a name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Data {
    /// Its name.
    pub name: Name,
    /// ContentType: 0 for plain bytes (BLOB), also if absent, 1 LINK, 2 KEY, 3 NACK.
    pub content_type: Option<u64>,
    /// FreshnessPeriod in ms: as long it answers an Interest with MustBeFresh out of a cache.
    pub freshness_ms: Option<u64>,
    /// FinalBlockId: the last component of the name of the last segment.
    pub final_block_id: Option<Component<'static>>,
    /// Content; perhaps filler.
    pub content: Chunk,
    /// SignatureInfo and SignatureValue.
    pub signature: Signature,
}

/// The signature of a Data.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Signature {
    /// DigestSha256 (section "DigestSha256"): made where a Data is written, checked where it is read. Other
    /// fields of its SignatureInfo are ignored.
    #[default]
    DigestSha256,
    /// A signature of another type: kept, not checked.
    Other {
        /// SignatureInfo's value, which begins with SignatureType.
        info: Box<[u8]>,
        /// SignatureValue's value.
        value: Box<[u8]>,
    },
    /// It lies in filler: there is nothing to check.
    Absent {
        /// Bytes of both elements, with types and lengths.
        bytes: u32,
    },
}

impl Signature {
    /// None, in as many bytes of filler as DigestSha256 takes: for a simulator, also where the content is real.
    pub const ZEROS: Signature = Signature::Absent { bytes: Self::ZEROS_BYTES as u32 };
    pub(super) const ZEROS_BYTES: usize = 2 + DIGEST_SHA256_INFO.len() + 2 + DIGEST_BYTES;

    /// Returns the bytes of both elements.
    fn bytes(&self) -> usize {
        let of = |info, value| {
            tlv::element_bytes(SIGNATURE_INFO, info) + tlv::element_bytes(SIGNATURE_VALUE, value)
        };
        match self {
            Signature::DigestSha256 => of(DIGEST_SHA256_INFO.len(), DIGEST_BYTES),
            Signature::Other { info, value } => of(info.len(), value.len()),
            Signature::Absent { bytes } => *bytes as usize,
        }
    }
}

impl Data {
    /// Returns `content` under `name`, with DigestSha256.
    pub fn of(name: Name, content: Chunk) -> Self {
        Data { name, content, ..Data::default() }
    }

    /// Returns an application's no: there is nothing of that name (ContentType NACK).
    pub fn no(name: Name) -> Self {
        Data { content_type: Some(CONTENT_NACK), ..Data::of(name, Chunk::default()) }
    }

    /// Returns whether it is an application's no.
    pub fn is_no(&self) -> bool {
        self.content_type == Some(CONTENT_NACK)
    }

    /// Reads one, and nothing behind it.
    ///
    /// # Errors
    /// Malformed bytes, and a DigestSha256 that does not match its bytes.
    pub fn read(packet: &Chunk) -> Result<Data, Problem> {
        Data::read_with(packet, true)
    }

    /// Returns the same without the check of DigestSha256, as forwarders read.
    ///
    /// # Errors
    /// Malformed bytes.
    pub fn read_unchecked(packet: &Chunk) -> Result<Data, Problem> {
        Data::read_with(packet, false)
    }

    fn read_with(packet: &Chunk, is_checked: bool) -> Result<Data, Problem> {
        let mut elements = tlv::packet(packet, DATA)?;
        let name_element = elements.expect(NAME)?;
        let mut data = Data::of(Name::read(&elements, &name_element)?, Chunk::default());
        let (mut first, mut info) = (0, None);
        while let Some((place, element)) = elements.next_of(&ORDER, first)? {
            first = place + 1;
            match element.kind {
                META_INFO => data.read_meta(&elements, &element)?,
                CONTENT => {
                    data.content = packet.part(element.from, element.to);
                    let left = elements.end() - element.to;
                    if elements.end() > packet.head().len() && left > 0 {
                        data.signature = Signature::Absent { bytes: left as u32 };
                        return Ok(data);
                    }
                }
                SIGNATURE_INFO => info = Some(element),
                _ => {
                    let info = info.ok_or(Fault::Missing { expected: SIGNATURE_INFO }.at(element.start))?;
                    let signed = elements.bytes(name_element.start, info.to)?;
                    data.signature = signature(&elements, &info, &element, is_checked.then_some(signed))?;
                    // Later elements are skipped, or an error.
                    elements.next_of(&[], 0)?;
                    return Ok(data);
                }
            }
        }
        let expected = if info.is_some() { SIGNATURE_VALUE } else { SIGNATURE_INFO };
        Err(Fault::Missing { expected }.at(elements.end()))
    }

    fn read_meta(&mut self, elements: &Elements<'_>, meta: &Element) -> Result<(), Problem> {
        let mut within = elements.within(meta);
        let mut first = 0;
        while let Some((place, element)) = within.next_of(&META_ORDER, first)? {
            first = place + 1;
            match element.kind {
                CONTENT_TYPE => self.content_type = Some(within.integer(&element)?),
                FRESHNESS_PERIOD => self.freshness_ms = Some(within.integer(&element)?),
                _ => {
                    let id = Name::read(&within, &element)?;
                    let component = id.get(0).filter(|_| id.len() == 1).ok_or(element.length_fault())?;
                    self.final_block_id = Some(component.into_owned());
                }
            }
        }
        Ok(())
    }

    /// Returns MetaInfo's value.
    fn meta(&self) -> Vec<u8> {
        let mut meta = Vec::new();
        if let Some(content_type) = self.content_type {
            tlv::put_integer(&mut meta, CONTENT_TYPE, content_type);
        }
        if let Some(freshness_ms) = self.freshness_ms {
            tlv::put_integer(&mut meta, FRESHNESS_PERIOD, freshness_ms);
        }
        if let Some(component) = &self.final_block_id {
            tlv::put_header(&mut meta, FINAL_BLOCK_ID, component.element_bytes());
            component.put(&mut meta);
        }
        meta
    }

    /// Its bytes. Where the content has filler, or the signature is absent, everything behind the content's
    /// real bytes is filler.
    pub fn write(&self) -> Chunk {
        let meta = self.meta();
        let meta_bytes = if meta.is_empty() { 0 } else { tlv::element_bytes(META_INFO, meta.len()) };
        let (content, signature) = (self.content.len(), self.signature.bytes());
        let before = self.name.element_bytes() + meta_bytes;
        let value = before + tlv::element_bytes(CONTENT, content) + signature;
        let content_filler = content - self.content.head().len();
        let is_signed = content_filler == 0 && !matches!(self.signature, Signature::Absent { .. });
        let filler = if is_signed { 0 } else { content_filler + signature };

        let mut packet = Vec::with_capacity(tlv::element_bytes(DATA, value) - filler);
        tlv::put_header(&mut packet, DATA, value);
        let from = packet.len();
        self.name.put(&mut packet);
        if !meta.is_empty() {
            tlv::put_element(&mut packet, META_INFO, &meta);
        }
        tlv::put_header(&mut packet, CONTENT, content);
        packet.extend(self.content.head());
        if is_signed {
            self.sign(&mut packet, from);
        }
        Chunk::with_filler(packet, u32::try_from(filler).unwrap_or(u32::MAX))
    }

    /// Writes the signature of the bytes from `from` on.
    fn sign(&self, packet: &mut Vec<u8>, from: usize) {
        match &self.signature {
            Signature::DigestSha256 => {
                tlv::put_element(packet, SIGNATURE_INFO, &DIGEST_SHA256_INFO);
                let digest = Sha256::digest(&packet[from..]);
                tlv::put_element(packet, SIGNATURE_VALUE, &digest);
            }
            Signature::Other { info, value } => {
                tlv::put_element(packet, SIGNATURE_INFO, info);
                tlv::put_element(packet, SIGNATURE_VALUE, value);
            }
            Signature::Absent { .. } => {}
        }
    }
}

/// Reads a signature, and checks it against the bytes `signed` if it is a DigestSha256 and they are given.
fn signature(
    elements: &Elements<'_>,
    info: &Element,
    value: &Element,
    signed: Option<&[u8]>,
) -> Result<Signature, Problem> {
    let mut within = elements.within(info);
    let kind = within.expect(SIGNATURE_TYPE)?;
    let kind = within.integer(&kind)?;
    while within.next()?.is_some() {}
    if kind != DIGEST_SHA256 {
        let (info, value) = (elements.value(info)?.into(), elements.value(value)?.into());
        return Ok(Signature::Other { info, value });
    }
    let digest: [u8; DIGEST_BYTES] = elements.array(value)?;
    match signed {
        Some(signed) if Sha256::digest(signed)[..] != digest => Err(Fault::Digest.at(value.from)),
        _ => Ok(Signature::DigestSha256),
    }
}

/// Returns the digest of a whole Data packet, by which its full name ends (section "Implicit Digest
/// Component"). `None` if some of it is filler.
pub fn implicit_digest(packet: &Chunk) -> Option<[u8; DIGEST_BYTES]> {
    (packet.len() == packet.head().len()).then(|| Sha256::digest(packet.head()).into())
}
