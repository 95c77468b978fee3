//! The fields of messages, little-endian.

use streamgauge_base::Duration;

use super::fault::{Fault, Problem};

/// Seconds that a `f64` holds to the nanosecond, and some margin: 26 days.
const MOST_NANOS: u64 = 1 << 51;

/// Reads fields one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    /// Bytes of the packet before it.
    at: usize,
}

impl<'a> Fields<'a> {
    pub fn of(rest: &'a [u8], at: usize) -> Self {
        Fields { rest, at }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Returns the remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        self.at += self.rest.len();
        std::mem::take(&mut self.rest)
    }

    pub fn bytes(&mut self, bytes: usize) -> Result<&'a [u8], Problem> {
        let Some((first, rest)) = self.rest.split_at_checked(bytes) else {
            return Err(Fault::Truncated { missing: (bytes - self.rest.len()) as u64 }.at(self.at));
        };
        (self.rest, self.at) = (rest, self.at + bytes);
        Ok(first)
    }

    /// Returns the next bytes as fields of their own.
    pub fn part(&mut self, bytes: usize) -> Result<Fields<'a>, Problem> {
        let at = self.at;
        self.bytes(bytes).map(|bytes| Fields::of(bytes, at))
    }

    fn array<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], Problem> {
        self.bytes(BYTES).map(|bytes| *bytes.first_chunk().expect("so many were asked for"))
    }

    pub fn u16(&mut self) -> Result<u16, Problem> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, Problem> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, Problem> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn f64(&mut self) -> Result<f64, Problem> {
        self.array().map(f64::from_le_bytes)
    }

    /// Reads seconds.
    pub fn seconds(&mut self) -> Result<Duration, Problem> {
        let at = self.at;
        seconds(self.f64()?).ok_or_else(|| Fault::Time.at(at))
    }

    /// Characters of UTF-16 up to the first that is zero, or to the end.
    pub fn text(&mut self) -> Result<String, Problem> {
        let at = self.at;
        let mut units = Vec::new();
        while self.left() >= 2 {
            match self.u16()? {
                0 => break,
                unit => units.push(unit),
            }
        }
        String::from_utf16(&units).map_err(|_| Fault::Text.at(at))
    }

    /// Reads text in this many characters of UTF-16, the zero at its end included.
    pub fn text_of(&mut self, units: u32) -> Result<String, Problem> {
        self.part(2 * units as usize)?.text()
    }
}

/// Returns `None` if it is negative, no number, or beyond 26 days.
pub fn seconds(seconds: f64) -> Option<Duration> {
    let nanos = seconds * 1e9;
    (0.0..=MOST_NANOS as f64).contains(&nanos).then(|| Duration::from_nanos(nanos.round() as u64))
}

/// Fields as they are written.
#[derive(Debug, Default)]
pub struct Out(pub Vec<u8>);

impl Out {
    pub fn u16(&mut self, number: u16) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    pub fn u32(&mut self, number: u32) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    pub fn u64(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    pub fn f64(&mut self, number: f64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    /// Writes a time as seconds; at most 26 days, the readers' limit.
    pub fn seconds(&mut self, time: Duration) -> &mut Self {
        self.f64(time.as_nanos().min(MOST_NANOS) as f64 / 1e9)
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Writes text in UTF-16 with a zero at its end, cut at any zero within.
    pub fn text(&mut self, text: &str) -> &mut Self {
        units(text).for_each(|unit| {
            self.u16(unit);
        });
        self
    }
}

/// Returns the characters of UTF-16 that [`Out::text`] writes.
pub fn units(text: &str) -> impl Iterator<Item = u16> {
    text.encode_utf16().take_while(|unit| *unit != 0).chain(Some(0))
}
