//! Who comes when a server is full.

use streamgauge_base::{Chunk, Event, Instant};
use streamgauge_wire::rtsp::{Reader, Response, RtspItem, StatusCode, Version, names, write_response};

use crate::app::{App, ChannelId, Input, Io};

/// What is read of a request at a time, bytes.
const READ: usize = 4096;

/// Answers the first request with 503 (RFC 2326 section 11) and closes.
pub struct TurnAway {
    channel: ChannelId,
    reader: Reader,
    answered: bool,
}

impl TurnAway {
    /// On this connection.
    pub fn on(channel: ChannelId) -> Self {
        TurnAway { channel, reader: Reader::default(), answered: false }
    }
}

impl App for TurnAway {
    fn handle(&mut self, _: Instant, input: Input<'_>, io: &mut dyn Io) {
        if input != Input::Readable(self.channel) {
            return;
        }
        while let Some(chunk) = io.read(self.channel, READ) {
            if !self.answered {
                self.reader.push(chunk);
            }
        }
        let cseq = match self.reader.next().filter(|_| !self.answered) {
            Some(Ok(RtspItem::Request(request))) => {
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
        io.write(self.channel, Chunk::bytes(write_response(&response)));
        io.close(self.channel);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}
