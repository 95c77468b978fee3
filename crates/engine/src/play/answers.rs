//! What the server answers, read beside the player from the same bytes.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use streamgauge_base::Chunk;
use streamgauge_systems::darwin::ReceivedUnit;
use streamgauge_systems::media::sdp::TrackDescription;
use streamgauge_systems::media::{Codec, assemble, preamble, sdp};
use streamgauge_wire::rtsp::{Item, Reader};

use crate::error::{EngineError, Result};

/// A session's.
#[derive(Default)]
pub struct Answers {
    reader: Reader,
    /// The status of the first that was no success.
    pub refused: Option<u16>,
    /// As DESCRIBE lists them.
    pub tracks: Vec<TrackDescription>,
}

impl Answers {
    /// Bytes of the RTSP connection have arrived.
    pub fn read(&mut self, chunk: Chunk) {
        self.reader.push(chunk);
        for item in self.reader.by_ref() {
            let Ok(Item::Response(response)) = item else { continue };
            if !response.status().is_success() {
                self.refused.get_or_insert(u16::from(response.status()));
            }
            let body = std::str::from_utf8(response.body()).unwrap_or_default();
            if let Some(described) = sdp::read(body).ok().filter(|found| !found.tracks.is_empty()) {
                self.tracks = described.tracks;
            }
        }
    }

    /// The track that is looked at: the first picture, or else the first.
    fn main(&self) -> usize {
        self.tracks.iter().position(|track| track.media == "video").unwrap_or(0)
    }
}

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

    /// A unit's time has come.
    pub fn take(&mut self, unit: &ReceivedUnit, answers: &Answers) -> Result<()> {
        let codec = answers.tracks.get(unit.track).and_then(|track| track.codec.as_ref());
        let Some(codec) = codec.filter(|_| unit.track == answers.main() && unit.shown) else { return Ok(()) };
        let mut bytes = if std::mem::replace(&mut self.begun, true) { Vec::new() } else { preamble(codec) };
        bytes.extend(frame(codec, unit));
        self.file.write_all(&bytes).map_err(|e| EngineError::io("save a frame", &e))
    }
}

fn frame(codec: &Codec, unit: &ReceivedUnit) -> Vec<u8> {
    assemble(codec, unit.payloads.iter().map(Chunk::head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracks_and_the_first_refusal_are_kept() {
        let mut answers = Answers::default();
        let sdp = "v=0\r\no=- 0 0 IN IP4 0.0.0.0\r\ns=x\r\nt=0 0\r\nm=audio 0 RTP/AVP 97\r\n\
                   a=rtpmap:97 mpeg4-generic/44100/2\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n";
        let described = format!("RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: {}\r\n\r\n{sdp}", sdp.len());
        for piece in described.as_bytes().chunks(7) {
            assert!(answers.tracks.is_empty());
            answers.read(Chunk::bytes(piece));
        }
        assert_eq!((answers.tracks.len(), answers.main()), (2, 1));
        answers.read(Chunk::bytes(*b"$\x00\x00\x04abcdRTSP/1.0 200 OK\r\nCSeq: 2\r\n\r\n"));
        assert_eq!((answers.refused, answers.tracks.len()), (None, 2));
        answers.read(Chunk::bytes(*b"RTSP/1.0 404 Not Found\r\nCSeq: 3\r\n\r\n"));
        answers.read(Chunk::bytes(*b"RTSP/1.0 454 Session Not Found\r\nCSeq: 4\r\n\r\n"));
        assert_eq!(answers.refused, Some(404));
    }
}
