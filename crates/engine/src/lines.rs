//! JSON lines: commands in, answers out.

use std::io::{BufRead, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, OnceLock};

use nix::sys::eventfd::{EfdFlags, EventFd};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use streamgauge_base::Event;

use crate::error::{EngineError, Result};
use crate::sys::columns;

/// The first failure to write to standard output.
static UNWRITTEN: OnceLock<std::io::Error> = OnceLock::new();

/// Refuses a run with a lost answer: standard output no longer accepted a line, as on a full disk.
pub fn check_output() -> Result<()> {
    UNWRITTEN.get().map_or(Ok(()), |error| {
        let failed = EngineError::io("write to standard output", error);
        Err(failed.remedy("free some space, or redirect it").code(4))
    })
}

/// Writes at once. A reader that has left is no error; any other is kept for [`check_output`].
fn put(text: &str) {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let _ = UNWRITTEN.set(error);
        }
        _ => {}
    }
}

/// Prints a line on stderr. One that cannot be written, where `eprintln!` would panic, changes no exit status.
pub fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints one object as one line. A caller that has gone away is no error here: it shows as the end of stdin.
pub fn say(value: &impl Serialize) {
    if let Ok(mut line) = serde_json::to_string(value) {
        line.push('\n');
        put(&line);
    }
}

/// Prints text for people, at once, folded on a terminal. A reader that has left is no error.
pub fn say_text(text: &str) {
    let columns = columns(std::io::stdout().as_fd());
    put(&columns.map_or_else(|| text.into(), |columns| folded(text, columns)));
}

/// Prints a fault on stderr, folded on a terminal.
pub fn say_wrong(text: &str) {
    let columns = columns(std::io::stderr().as_fd());
    complain(&columns.map_or_else(|| text.into(), |columns| folded(text, columns)));
}

/// Returns text in lines of at most `columns`, except for longer words; all lines after the first are
/// indented.
pub fn folded(text: &str, columns: usize) -> String {
    let mut found = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (mut at, mut begun) = (0, false);
        for word in line.split_inclusive(' ') {
            let length = word.trim_end().chars().count();
            if begun && at + length > columns {
                found.truncate(found.trim_end_matches(' ').len());
                found.push_str("\n  ");
                at = 2;
            }
            found.push_str(word);
            at += word.trim_end_matches('\n').chars().count();
            begun = true;
        }
    }
    found
}

/// Returns a machine's event as JSON; the machine's time zero is `zero_ns`, CLOCK_MONOTONIC.
pub fn told(event: &Event, zero_ns: i64) -> Value {
    json!({
        "t_monotonic_ns": zero_ns + event.at.as_nanos() as i64, "name": event.name,
        "value": event.value, "unit": event.unit, "reason": event.reason,
    })
}

/// Prints an error event.
pub fn say_error(error: &EngineError) {
    say(&json!({
        "event": "error", "what": error.what, "path": error.path, "errno": error.errno,
        "message": error.why, "remedy": error.remedy,
    }));
}

/// Commands of a caller to a running subcommand.
#[derive(Debug, Deserialize)]
#[serde(tag = "cmd", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// The path without random loss, frozen at its first settings.
    Preflight,
    /// Counters to zero, path emptied.
    Reset,
    /// The trial's time zero.
    Start {
        /// CLOCK_MONOTONIC, ns.
        t0_monotonic_ns: u64,
    },
    /// The end, before the plan's.
    Stop,
    /// How far it is.
    Status,
}

/// Commands from stdin, read by a thread of their own, which blocks no other.
pub struct Commands {
    receiver: Receiver<std::result::Result<Command, String>>,
    wake: Arc<EventFd>,
}

impl Commands {
    /// Starts the reader. Call it before the process takes a real-time class: threads inherit it.
    pub fn from_stdin() -> Result<Self> {
        let wake = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(|e| EngineError::io("make an eventfd", &e.into()))?;
        let wake = Arc::new(wake);
        let (sender, receiver) = channel();
        let waker = Arc::clone(&wake);
        std::thread::Builder::new()
            .name("commands".into())
            .spawn(move || read_stdin(&sender, &waker))
            .map_err(|e| EngineError::io("start a thread", &e))?;
        Ok(Commands { receiver, wake })
    }

    /// Returns the descriptor, readable (POLLIN) when a command may be waiting.
    pub fn fd(&self) -> i32 {
        self.wake.as_raw_fd()
    }

    /// Makes [`Commands::fd`] readable from another thread.
    pub fn waker(&self) -> impl Fn() + Send + 'static {
        let wake = Arc::clone(&self.wake);
        move || {
            let _ = wake.write(1);
        }
    }

    /// Returns the next command; the end of stdin reads as [`Command::Stop`].
    pub fn next(&self) -> Result<Option<Command>> {
        let _ = self.wake.read();
        match self.receiver.try_recv() {
            Ok(Ok(command)) => Ok(Some(command)),
            Ok(Err(why)) => Err(EngineError::new("read a command", why).remedy("see PROTOCOL.md").code(2)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Ok(Some(Command::Stop)),
        }
    }
}

fn read_stdin(sender: &Sender<std::result::Result<Command, String>>, wake: &EventFd) {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if line.trim().is_empty() {
            continue;
        }
        let command = serde_json::from_str(&line).map_err(|e| format!("{e} in {:?}", shorten(&line)));
        if sender.send(command).is_err() {
            return;
        }
        let _ = wake.write(1);
    }
    let _ = sender.send(Ok(Command::Stop));
    let _ = wake.write(1);
}

fn shorten(line: &str) -> String {
    line.chars().take(80).collect()
}

/// Returns a plain description of a JSON value's shape errors; used where serde's own text would not name the
/// key.
pub fn bad_field(key: &str, why: &str) -> EngineError {
    EngineError { code: 2, ..EngineError::new("read the configuration", format!("{key}: {why}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_read_as_the_protocol_says() {
        let start: Command = serde_json::from_str(r#"{"cmd":"start","t0_monotonic_ns":5}"#).unwrap();
        assert!(matches!(start, Command::Start { t0_monotonic_ns: 5 }));
        assert!(matches!(serde_json::from_str(r#"{"cmd":"stop"}"#).unwrap(), Command::Stop));
        let error = serde_json::from_str::<Command>(r#"{"cmd":"halt"}"#).unwrap_err().to_string();
        assert!(error.contains("halt") && error.contains("preflight"), "{error}");
    }

    #[test]
    fn a_folded_line_is_no_longer_than_the_terminal_is_wide_and_says_the_same() {
        let text = "picture: first frame 0.86 s after PLAY; 104 frames shown, 0 late\nshort\n";
        for columns in 12..80 {
            let found = folded(text, columns);
            assert!(found.lines().all(|line| line.chars().count() <= columns), "{found}");
            assert!(found.lines().all(|line| !line.ends_with(' ')), "{found}");
            assert!(found.split_whitespace().eq(text.split_whitespace()), "{found}");
            assert!(found.ends_with("\nshort\n"), "{found}");
        }
        assert_eq!(folded(text, 80), text);
        assert_eq!(folded("a longer-than-that b\n", 8), "a\n  longer-than-that\n  b\n");
    }
}
