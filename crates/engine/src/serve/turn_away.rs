//! Who comes when the server is full.

use streamgauge_base::{Chunk, Event, Instant};
use streamgauge_systems::darwin::RTSP;
use streamgauge_systems::{App, Input, Io};
use streamgauge_wire::rtsp::{Item, Reader, Response, StatusCode, Version, names, write_response};

/// What is read of a request at a time, bytes.
const READ: usize = 4096;

/// Answers the first request with 503 (RFC 2326 section 11) and closes.
#[derive(Default)]
pub struct TurnAway {
    reader: Reader,
    answered: bool,
}

impl App for TurnAway {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        if input != Input::Readable(RTSP) {
            return;
        }
        while let Some(chunk) = io.read(RTSP, READ) {
            if !self.answered {
                self.reader.push(chunk);
            }
        }
        let cseq = match self.reader.next().filter(|_| !self.answered) {
            Some(Ok(Item::Request(request))) => {
                request.header(&names::CSEQ).map(|cseq| cseq.as_str().to_owned())
            }
            Some(_) => None,
            None => return,
        };
        self.answered = true;
        let mut response = Response::builder(Version::V1_0, StatusCode::ServiceUnavailable);
        if let Some(cseq) = cseq {
            response = response.header(names::CSEQ, cseq);
        }
        let response = response.header(names::CONNECTION, "close").build(Vec::new());
        io.write(RTSP, Chunk::bytes(write_response(&response)));
        io.close(RTSP);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
