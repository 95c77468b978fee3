//! Interests (NDN Packet Format Specification version 0.3, "Interest Packet").

use sha2::{Digest, Sha256};
use streamgauge_base::{Chunk, Duration};

use super::component::Component;
use super::fault::{Fault, Problem};
use super::name::Name;
use super::tlv;
use super::types::{
    APPLICATION_PARAMETERS, CAN_BE_PREFIX, FORWARDING_HINT, HOP_LIMIT, IMPLICIT_SHA256_DIGEST, INTEREST,
    INTEREST_LIFETIME, INTEREST_SIGNATURE_INFO, INTEREST_SIGNATURE_VALUE, MUST_BE_FRESH, NAME, NONCE,
    PARAMETERS_SHA256_DIGEST,
};

/// An Interest's lifetime if it has none (section "InterestLifetime").
pub const DEFAULT_LIFETIME_MS: u64 = 4000;

/// The elements behind the name, in order.
const ORDER: [u32; 9] = [
    CAN_BE_PREFIX,
    MUST_BE_FRESH,
    FORWARDING_HINT,
    NONCE,
    INTEREST_LIFETIME,
    HOP_LIMIT,
    APPLICATION_PARAMETERS,
    INTEREST_SIGNATURE_INFO,
    INTEREST_SIGNATURE_VALUE,
];

/// Asks for a Data. It is all real bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Interest {
    /// Name of the requested Data; at least one component.
    pub name: Name,
    /// `name` may be a prefix of the Data's.
    pub can_be_prefix: bool,
    /// Excludes cached Data with a FreshnessPeriod that has expired.
    pub must_be_fresh: bool,
    /// ForwardingHint's value: names of delegations, as received.
    pub forwarding_hint: Option<Box<[u8]>>,
    /// Distinguishes Interests of one name; required on a link.
    pub nonce: Option<u32>,
    /// InterestLifetime in ms.
    pub lifetime_ms: Option<u64>,
    /// How often it may be forwarded.
    pub hop_limit: Option<u8>,
    /// ApplicationParameters; [`Interest::with_parameters`] also puts their digest into the name, without
    /// which receivers drop the Interest.
    pub parameters: Option<Parameters>,
}

/// ApplicationParameters and the elements that may follow them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parameters {
    /// ApplicationParameters' value.
    pub value: Box<[u8]>,
    /// The elements behind them, as received: InterestSignatureInfo and InterestSignatureValue, which are not
    /// checked.
    pub signature: Box<[u8]>,
}

impl Parameters {
    fn put(&self, to: &mut Vec<u8>) {
        tlv::put_element(to, APPLICATION_PARAMETERS, &self.value);
        to.extend(&self.signature);
    }

    /// Returns the digest of section "Interest Parameters Digest Component".
    fn digest(&self) -> [u8; 32] {
        let mut bytes = Vec::new();
        self.put(&mut bytes);
        Sha256::digest(bytes).into()
    }
}

impl Interest {
    /// Asks for `name`, without anything else.
    pub fn of(name: Name) -> Self {
        Interest { name, ..Interest::default() }
    }

    /// Adds these parameters, and their digest as the name's last component. An earlier digest is removed.
    ///
    /// # Errors
    /// [`Fault::NameTooLong`] if the name has no room for it.
    pub fn with_parameters(mut self, parameters: Parameters) -> Result<Self, Problem> {
        let others = self.name.components().filter(|component| component.kind() != PARAMETERS_SHA256_DIGEST);
        self.name = Name::of(others.chain([Component::parameters_digest(parameters.digest())]))?;
        self.parameters = Some(parameters);
        Ok(self)
    }

    /// Returns how long it lives: InterestLifetime, or 4 s.
    pub fn lifetime(&self) -> Duration {
        let ms = self.lifetime_ms.unwrap_or(DEFAULT_LIFETIME_MS);
        Duration::from_nanos(ms.saturating_mul(1_000_000))
    }

    /// Returns whether a Data of this name answers it (sections "Name" and "CanBePrefix"). `implicit_digest`
    /// is asked for only where the Interest has one; `None` of it answers no such Interest.
    pub fn is_answered_by(&self, name: &Name, implicit_digest: impl FnOnce() -> Option<[u8; 32]>) -> bool {
        if self.name == *name || (self.can_be_prefix && name.starts_with(&self.name)) {
            return true;
        }
        let Some(last) = self.name.last().filter(|last| last.kind() == IMPLICIT_SHA256_DIGEST) else {
            return false;
        };
        self.name.len() == name.len() + 1
            && self.name.starts_with(name)
            && implicit_digest().is_some_and(|digest| last.value() == digest)
    }

    /// Reads one, and nothing behind it.
    ///
    /// # Errors
    /// Malformed bytes, and ApplicationParameters without their digest in the name.
    pub fn read(packet: &Chunk) -> Result<Interest, Problem> {
        let mut elements = tlv::packet(packet, INTEREST)?;
        let name_element = elements.expect(NAME)?;
        let name = Name::read(&elements, &name_element)?;
        if name.is_empty() {
            return Err(Fault::EmptyName.at(name_element.start));
        }
        let mut interest = Interest::of(name);
        let mut first = 0;
        while let Some((place, element)) = elements.next_of(&ORDER, first)? {
            first = place + 1;
            match element.kind {
                CAN_BE_PREFIX => interest.can_be_prefix = elements.array(&element).map(|[]| true)?,
                MUST_BE_FRESH => interest.must_be_fresh = elements.array(&element).map(|[]| true)?,
                FORWARDING_HINT => interest.forwarding_hint = Some(elements.value(&element)?.into()),
                NONCE => interest.nonce = Some(u32::from_be_bytes(elements.array(&element)?)),
                INTEREST_LIFETIME => interest.lifetime_ms = Some(elements.integer(&element)?),
                HOP_LIMIT => interest.hop_limit = Some(elements.array::<1>(&element)?[0]),
                APPLICATION_PARAMETERS => {
                    let value = elements.value(&element)?.into();
                    let signature = elements.bytes(element.to, elements.end())?.into();
                    interest.parameters = Some(Parameters { value, signature });
                }
                // Kept with the parameters; without these they mean nothing.
                _ => {}
            }
        }
        interest.check_digest().map_err(|fault| fault.at(name_element.start))?;
        Ok(interest)
    }

    fn check_digest(&self) -> Result<(), Fault> {
        let mut digests =
            self.name.components().filter(|component| component.kind() == PARAMETERS_SHA256_DIGEST);
        match (&self.parameters, digests.next(), digests.next()) {
            (None, None, _) => Ok(()),
            (Some(parameters), Some(digest), None) if digest.value() == parameters.digest() => Ok(()),
            (Some(_), Some(_), None) => Err(Fault::Digest),
            _ => Err(Fault::ParametersDigest),
        }
    }

    /// Its bytes.
    pub fn write(&self) -> Chunk {
        let mut value = Vec::with_capacity(self.name.element_bytes() + 32);
        self.name.put(&mut value);
        for (is_set, kind) in [(self.can_be_prefix, CAN_BE_PREFIX), (self.must_be_fresh, MUST_BE_FRESH)] {
            if is_set {
                tlv::put_element(&mut value, kind, &[]);
            }
        }
        if let Some(hint) = &self.forwarding_hint {
            tlv::put_element(&mut value, FORWARDING_HINT, hint);
        }
        if let Some(nonce) = self.nonce {
            tlv::put_element(&mut value, NONCE, &nonce.to_be_bytes());
        }
        if let Some(lifetime_ms) = self.lifetime_ms {
            tlv::put_integer(&mut value, INTEREST_LIFETIME, lifetime_ms);
        }
        if let Some(hop_limit) = self.hop_limit {
            tlv::put_element(&mut value, HOP_LIMIT, &[hop_limit]);
        }
        if let Some(parameters) = &self.parameters {
            parameters.put(&mut value);
        }
        let mut packet = Vec::with_capacity(tlv::element_bytes(INTEREST, value.len()));
        tlv::put_element(&mut packet, INTEREST, &value);
        Chunk::bytes(packet)
    }
}
