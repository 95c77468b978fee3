//! OpaqueData: the data in a session description for a stream's decoder; a stream may have several encodings.

/// The beginning where there are several.
const SEVERAL: &[u8] = b"MLTI";

/// The type-specific data of one encoding or more, and which of them each rule of the stream's rule book has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpaqueData {
    /// By rule, the encoding. Where there is but one encoding, no rule need be named.
    pub rules: Vec<u16>,
    /// By encoding, the type-specific data of its MDPR.
    pub encodings: Vec<Vec<u8>>,
}

/// Bytes that are no OpaqueData.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpaqueError {
    /// A table of none.
    #[error("no encoding")]
    Empty,
    /// A rule without its encoding.
    #[error("rule {rule} has encoding {encoding}, and there are {encodings}")]
    Rule {
        /// Counted from 0.
        rule: usize,
        /// The named encoding, counted from 0.
        encoding: u16,
        /// How many there are.
        encodings: usize,
    },
    /// More than 16 bits count, or more bytes than 32 bits do.
    #[error("more rules, encodings or bytes than their fields can say")]
    TooMany,
    /// It ends too early.
    #[error("it ends at byte {at}, {missing} B before its {what}")]
    Truncated {
        /// Bytes before it.
        at: usize,
        /// Bytes that there should be more.
        missing: u64,
        /// The element that does not fit.
        what: &'static str,
    },
}

impl OpaqueData {
    /// Returns one encoding, which all rules have.
    pub fn of(type_specific: Vec<u8>) -> Self {
        OpaqueData { rules: Vec::new(), encodings: vec![type_specific] }
    }

    /// Returns the type-specific data of rule `rule`; of one that is not named, those of the first encoding.
    /// `None` without encodings.
    pub fn of_rule(&self, rule: u16) -> Option<&[u8]> {
        let encoding = self.rules.get(usize::from(rule)).copied().unwrap_or(0);
        self.encodings.get(usize::from(encoding)).map(Vec::as_slice)
    }

    /// Returns the bytes, before base64: one encoding without rules as it is; else `MLTI`, 16 bits that count
    /// the rules, 16 bits of the encoding of each, 16 bits that count the encodings, and each of these behind
    /// 32 bits of its length. ffmpeg, GStreamer and MPlayer read this form.
    ///
    /// # Errors
    ///
    /// If there is no encoding, a rule has one that there is not, or there are too many.
    pub fn write(&self) -> Result<Vec<u8>, OpaqueError> {
        match &self.encodings[..] {
            // One that would be taken for a table is put into one.
            [single] if self.rules.is_empty() && !single.starts_with(SEVERAL) => return Ok(single.clone()),
            _ => {}
        }
        if self.encodings.is_empty() {
            return Err(OpaqueError::Empty);
        }
        self.check()?;
        let counted = |count: usize| u16::try_from(count).map_err(|_| OpaqueError::TooMany);
        let mut bytes = SEVERAL.to_vec();
        bytes.extend(counted(self.rules.len())?.to_be_bytes());
        bytes.extend(self.rules.iter().flat_map(|encoding| encoding.to_be_bytes()));
        bytes.extend(counted(self.encodings.len())?.to_be_bytes());
        for encoding in &self.encodings {
            let length = u32::try_from(encoding.len()).map_err(|_| OpaqueError::TooMany)?;
            bytes.extend(length.to_be_bytes());
            bytes.extend(encoding);
        }
        Ok(bytes)
    }

    /// Reads the output of [`OpaqueData::write`]. Bytes behind the last encoding are passed over.
    ///
    /// # Errors
    ///
    /// If it ends too early, has no encoding, or a rule has one that there is not.
    pub fn read(bytes: &[u8]) -> Result<Self, OpaqueError> {
        let Some(mut rest) = bytes.strip_prefix(SEVERAL) else {
            return Ok(OpaqueData::of(bytes.to_vec()));
        };
        let mut take = |what, count: usize| {
            let Some((taken, left)) = rest.split_at_checked(count) else {
                let missing = (count - rest.len()) as u64;
                return Err(OpaqueError::Truncated { at: bytes.len(), missing, what });
            };
            rest = left;
            Ok(taken)
        };
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, &byte| number << 8 | usize::from(byte));
        let rules = number(take("number of rules", 2)?);
        let rules = take("rules", 2 * rules)?.chunks_exact(2).map(|rule| number(rule) as u16).collect();
        let count = number(take("number of encodings", 2)?);
        if count == 0 {
            return Err(OpaqueError::Empty);
        }
        let mut encodings = Vec::new();
        for _ in 0..count {
            let length = number(take("length of an encoding", 4)?);
            encodings.push(take("encodings", length)?.to_vec());
        }
        let read = OpaqueData { rules, encodings };
        read.check()?;
        Ok(read)
    }

    fn check(&self) -> Result<(), OpaqueError> {
        let encodings = self.encodings.len();
        match self.rules.iter().position(|&encoding| usize::from(encoding) >= encodings) {
            Some(rule) => Err(OpaqueError::Rule { rule, encoding: self.rules[rule], encodings }),
            None => Ok(()),
        }
    }
}
