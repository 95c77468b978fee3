//! Output of a server or a proxy: lines for people or JSON on stdout, machines' events to a file.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Map, Value, json};
use streamgauge_base::Event;

use crate::error::{EngineError, Result};
use crate::lines::{say, say_text, told};

/// Destinations of the output.
pub struct Teller {
    json: bool,
    quiet: bool,
    log: Option<File>,
    /// CLOCK_MONOTONIC at the machines' time zero.
    zero_ns: i64,
}

impl Teller {
    /// Returns a teller; `log` receives the machines' events; "-" is stdout, which then holds nothing else.
    pub fn new(json: bool, log: Option<&Path>, zero_ns: i64) -> Result<Teller> {
        let to_stdout = log == Some(Path::new("-"));
        let open = |path: &Path| {
            let path = if to_stdout { Path::new("/dev/stdout") } else { path };
            File::options().append(true).create(true).open(path).map_err(|e| {
                EngineError::io("write the log", &e).at(path).remedy("name a file that you may write").code(3)
            })
        };
        Ok(Teller { json, quiet: to_stdout && !json, log: log.map(open).transpose()?, zero_ns })
    }

    /// Prints one event of the server: `line` for people, `value` for programs.
    pub fn say(&self, value: &Value, line: &str) {
        if self.json {
            say(value);
        } else if !self.quiet {
            say_text(&format!("{line}\n"));
        }
    }

    /// Writes a machine's event, with its session where it has one.
    pub fn event(&mut self, session: Option<u64>, event: &Event) {
        let Some(log) = &mut self.log else { return };
        let mut line = told(event, self.zero_ns);
        if let Some(session) = session {
            line["session"] = json!(session);
        }
        // A full disk must not end the sessions.
        let _ = log.write_all(format!("{line}\n").as_bytes());
    }
}

/// Returns a session's end, for both readers.
pub fn closed(
    session: u64,
    peer: SocketAddr,
    why: &str,
    seconds: f64,
    (counts, in_words): (Map<String, Value>, String),
) -> (Value, String) {
    let mut value = json!({
        "event": "closed", "session": session, "client": peer.to_string(), "why": why, "duration_s": seconds,
    });
    if let Value::Object(value) = &mut value {
        value.extend(counts);
    }
    (value, format!("session {session} closed: {why}, {seconds:.1} s, {in_words}"))
}
