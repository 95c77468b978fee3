//! Messages that open a file and ask for its header.

use streamgauge_base::Duration;

use super::fault::{Fault, Problem};
use super::fields::{Fields, Out, units};

/// `OpenFile` ([MS-MMSP] section 2.2.4.21).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpenFile {
    /// 1 to 254; the answer repeats it.
    pub incarnation: u32,
    /// The URL's path without its first slash, not percent-encoded: `media/film.wmv`.
    pub name: String,
    /// Proof of the client's identity; may be empty.
    pub token: Vec<u8>,
}

impl OpenFile {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let incarnation = fields.u32()?;
        fields.u32()?;
        let at = fields.at();
        let (offset, bytes) = (fields.u32()?, fields.u32()?);
        if bytes == 0 {
            return Ok(OpenFile { incarnation, name: fields.text()?, token: Vec::new() });
        }
        // Behind the name, which has no other length.
        if offset % 2 != 0 {
            return Err(Fault::Length(offset).at(at));
        }
        let name = fields.part(offset as usize)?.text()?;
        Ok(OpenFile { incarnation, name, token: fields.bytes(bytes as usize)?.into() })
    }

    pub(super) fn write(&self, out: &mut Out) {
        let offset = if self.token.is_empty() { 0 } else { 2 * units(&self.name).count() };
        out.u32(self.incarnation).u32(0).u32(offset as u32).u32(self.token.len() as u32);
        out.text(&self.name).bytes(&self.token);
    }
}

/// Bits of [`FileReport::attributes`].
pub mod attributes {
    /// The server plays it fast and backwards.
    pub const CAN_STRIDE: u32 = 0x0080_0000;
    /// The server plays it from anywhere.
    pub const CAN_SEEK: u32 = 0x0100_0000;
    /// Several players may share it.
    pub const BROADCAST: u32 = 0x0200_0000;
    /// It is live.
    pub const LIVE: u32 = 0x0400_0000;
    /// It is part of a playlist.
    pub const PLAYLIST: u32 = 0x4000_0000;
}

/// `ReportOpenFile`: properties of the file ([MS-MMSP] section 2.2.4.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FileReport {
    /// An HRESULT ([MS-ERREF]), 0 if all is well.
    pub result: u32,
    /// That of [`OpenFile`].
    pub incarnation: u32,
    /// `openFileId`: the player's number for the file.
    pub file_id: u32,
    /// See [`attributes`].
    pub attributes: u32,
    /// How long it plays; 0 if that is not known. At most 26 days are written.
    pub duration: Duration,
    /// The largest ASF data packet.
    pub packet_bytes: u32,
    /// How many of these it has; 0 if that is not known.
    pub packets: u64,
    /// The sum of all streams' maxima.
    pub bit_rate_bps: u32,
    /// Bytes of the ASF file's header, with the first 50 of its Data Object.
    pub header_bytes: u32,
}

impl FileReport {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let (result, incarnation, file_id) = (fields.u32()?, fields.u32()?, fields.u32()?);
        // Padding, and the name, which is 0.
        fields.bytes(8)?;
        let (attributes, duration) = (fields.u32()?, fields.seconds()?);
        // The duration again, and unused bytes.
        fields.bytes(20)?;
        let (packet_bytes, packets) = (fields.u32()?, fields.u64()?);
        let (bit_rate_bps, header_bytes) = (fields.u32()?, fields.u32()?);
        Ok(FileReport {
            result,
            incarnation,
            file_id,
            attributes,
            duration,
            packet_bytes,
            packets,
            bit_rate_bps,
            header_bytes,
        })
    }

    pub(super) fn write(&self, out: &mut Out) {
        out.u32(self.result).u32(self.incarnation).u32(self.file_id).u32(0).u32(0).u32(self.attributes);
        let seconds = self.duration.as_nanos().div_ceil(1_000_000_000);
        out.seconds(self.duration).u32(u32::try_from(seconds).unwrap_or(u32::MAX)).bytes(&[0; 16]);
        out.u32(self.packet_bytes).u64(self.packets).u32(self.bit_rate_bps).u32(self.header_bytes);
        out.bytes(&[0; 36]);
    }
}

/// `ReadBlock`: asks for the file's header ([MS-MMSP] section 2.2.4.23).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadBlock {
    /// [`FileReport::file_id`].
    pub file_id: u32,
    /// 1 to 254; the header's packets have it.
    pub incarnation: u32,
}

impl ReadBlock {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let file_id = fields.u32()?;
        // Block, offset, length, flags, padding, earliest time and deadline.
        fields.bytes(20 + 16)?;
        Ok(ReadBlock { file_id, incarnation: fields.u32()? })
    }

    pub(super) fn write(&self, out: &mut Out) {
        out.u32(self.file_id).u32(0).u32(0).u32(0x8000).u32(u32::MAX).u32(0).f64(0.0).f64(3600.0);
        out.u32(self.incarnation).u32(0);
    }
}

/// `ReportRedirect`: where to go instead ([MS-MMSP] section 2.2.4.9).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Redirect {
    /// An HRESULT ([MS-ERREF]).
    pub result: u32,
    /// To a proxy; else to another URL.
    pub to_proxy: bool,
    /// Its URL; empty for no proxy any more.
    pub location: String,
}

impl Redirect {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let result = fields.u32()?;
        let at = fields.at();
        let to_proxy = match fields.u16()? {
            1 => false,
            2 => true,
            kind => return Err(Fault::Redirection(kind).at(at)),
        };
        let bytes = fields.u16()?;
        Ok(Redirect { result, to_proxy, location: fields.part(bytes.into())?.text()? })
    }

    /// A URL beyond 65535 B is cut.
    pub(super) fn write(&self, out: &mut Out) {
        let mut location = Out::default();
        location.text(&self.location);
        location.0.truncate(usize::from(u16::MAX - 1));
        out.u32(self.result).u16(1 + u16::from(self.to_proxy)).u16(location.0.len() as u16);
        out.bytes(&location.0);
    }
}

/// `SecurityChallenge` and `SecurityResponse`: of Basic or NTLM, which nothing here reads ([MS-MMSP] sections 2.2.4.14 and
/// 2.2.4.24).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SecurityToken {
    /// That of [`OpenFile`].
    pub incarnation: u32,
    /// The challenge's, which the response repeats.
    pub cookie: u32,
    /// The scheme's own bytes.
    pub token: Vec<u8>,
}

impl SecurityToken {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let (incarnation, cookie, bytes) = (fields.u32()?, fields.u32()?, fields.u32()?);
        Ok(SecurityToken { incarnation, cookie, token: fields.bytes(bytes as usize)?.into() })
    }

    pub(super) fn write(&self, out: &mut Out) {
        out.u32(self.incarnation).u32(self.cookie).u32(self.token.len() as u32).bytes(&self.token);
    }
}
