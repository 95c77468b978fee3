//! What the server answers, read beside the player from the same bytes.

use streamgauge_base::Chunk;
use streamgauge_wire::rtsp::{Item, Reader};

/// A session's.
#[derive(Default)]
pub struct Answers {
    reader: Reader,
    /// The status of the last that was no success. A player goes on without some things, without others it ends.
    pub refused: Option<u16>,
}

impl Answers {
    /// Bytes of the RTSP connection have arrived.
    pub fn read(&mut self, chunk: Chunk) {
        self.reader.push(chunk);
        for item in self.reader.by_ref() {
            let Ok(Item::Response(response)) = item else { continue };
            if !response.status().is_success() {
                self.refused = Some(u16::from(response.status()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_refusal_is_kept() {
        let mut answers = Answers::default();
        for piece in b"RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: 2\r\n\r\nab".chunks(7) {
            answers.read(Chunk::bytes(piece));
        }
        answers.read(Chunk::bytes(*b"$\x00\x00\x04abcdRTSP/1.0 200 OK\r\nCSeq: 2\r\n\r\n"));
        assert_eq!(answers.refused, None);
        answers.read(Chunk::bytes(*b"RTSP/1.0 501 Not Implemented\r\nCSeq: 3\r\n\r\n"));
        answers.read(Chunk::bytes(*b"RTSP/1.0 404 Not Found\r\nCSeq: 4\r\n\r\n"));
        assert_eq!(answers.refused, Some(404));
    }
}
