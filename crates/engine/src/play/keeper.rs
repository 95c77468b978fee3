//! `--save`: what was shown, as a file.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use streamgauge_base::Chunk;
use streamgauge_systems::darwin::ReceivedUnit;
use streamgauge_systems::media::{Codec, assemble, preamble};

use crate::error::{EngineError, Result};

/// The frames that were shown, as an elementary stream: H.264 in Annex B, MPEG-4 Visual, or AAC in ADTS.
pub struct Keeper {
    file: File,
    begun: bool,
}

impl Keeper {
    /// Into a new file.
    pub fn create(path: &Path) -> Result<Keeper> {
        let file = File::create(path);
        let file = file.map_err(|e| {
            EngineError::io("save to", &e).at(path).remedy("name a file that you may write").code(3)
        })?;
        Ok(Keeper { file, begun: false })
    }

    /// Writes a unit of the one track, in its order of decoding, if it was shown.
    pub fn take(&mut self, unit: &ReceivedUnit, codec: &Codec) -> Result<()> {
        if !unit.shown {
            return Ok(());
        }
        let mut bytes = if std::mem::replace(&mut self.begun, true) { Vec::new() } else { preamble(codec) };
        bytes.extend(assemble(codec, unit.payloads.iter().map(Chunk::head)));
        self.file.write_all(&bytes).map_err(|e| EngineError::io("save a frame", &e))
    }
}
