//! A rule of adaptive bit rate that is a function of Python, in a process beside the player: `FILE.py:NAME`.
//!
//! Lines of JSON both ways (PROTOCOL.md): the process answers `{"ready": true}` first, then each situation with a level and
//! a reason. The player waits for each answer, as it would for a function of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::{Value, json};
use streamgauge_systems::abr::{
    Decision, Fetched, Rule, Situation, Tuning, call_functions_by, chosen_level, fetched_as_json,
    situation_as_json,
};

use crate::error::EngineError;

/// The program that calls functions, and the script that it runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caller {
    program: PathBuf,
    script: PathBuf,
}

/// That of this process; none at the end that decides nothing.
static CALLER: OnceLock<Option<Caller>> = OnceLock::new();

/// Lets `caller` call the functions that rules name.
pub fn call_by(caller: Option<Caller>) {
    let _ = CALLER.set(caller);
    call_functions_by(make);
}

fn make(name: &str, _: &Tuning) -> Result<Box<dyn Rule>, String> {
    let caller = CALLER.get().and_then(Option::as_ref);
    let made = caller.map(|caller| FunctionProcess::start(name, caller));
    Ok(Box::new(FunctionRule { name: name.to_owned(), process: made.transpose()? }))
}

/// The function's process, with both ends of its pipes.
struct FunctionProcess {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl FunctionProcess {
    fn start(name: &str, caller: &Caller) -> Result<Self, String> {
        let failed = |why: String| format!("{name}: {why}");
        let mut command = Command::new(&caller.program);
        command.arg(&caller.script).arg(name).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|e| failed(format!("{} cannot be run: {e}", caller.program.display())))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("its process has no pipes".into()));
        };
        let mut made = FunctionProcess { child, to, from: BufReader::new(from) };
        made.answer().map_err(failed)?;
        Ok(made)
    }

    fn write(&mut self, line: &Value) -> Result<(), String> {
        writeln!(self.to, "{line}").map_err(|e| format!("its process takes no more lines: {e}"))
    }

    /// Returns the next line, which has no error in it.
    fn answer(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        self.from.read_line(&mut line).map_err(|e| e.to_string())?;
        let answer: Value = serde_json::from_str(&line).map_err(|_| "its process ended".to_owned())?;
        match answer["error"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(answer),
        }
    }
}

impl Drop for FunctionProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct FunctionRule {
    name: String,
    process: Option<FunctionProcess>,
}

impl FunctionRule {
    fn ask(&mut self, now: &Situation<'_>) -> Result<(usize, String), String> {
        let process = self.process.as_mut().ok_or("this end decides nothing")?;
        process.write(&json!({"situation": situation_as_json(now)}))?;
        let answer = process.answer()?;
        let level = answer["level"].as_i64().ok_or("it returned no level")?;
        let why = answer["why"].as_str().unwrap_or_default().to_owned();
        Ok((chosen_level(level, now)?, why))
    }

    /// Ends this process: a trial with a failed rule is worthless.
    fn fail(&self, why: String) -> ! {
        let error = EngineError::new(format!("call {}", self.name), why).code(4);
        crate::lines::complain(&format!("streamgauge-engine node: {error}"));
        std::process::exit(error.code.into())
    }
}

impl Rule for FunctionRule {
    fn decide(&mut self, now: &Situation<'_>) -> Decision {
        match self.ask(now) {
            Ok((level, why)) => Decision::at_once(level, None, why),
            Err(why) => self.fail(why),
        }
    }

    fn fetched(&mut self, fetched: &Fetched, _: &Situation<'_>) {
        let told =
            self.process.as_mut().map(|process| process.write(&json!({"fetched": fetched_as_json(fetched)})));
        if let Some(Err(why)) = told {
            self.fail(why);
        }
    }
}
