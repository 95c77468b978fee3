//! One failure, with its remedy for the reader.

use std::fmt;
use std::path::{Path, PathBuf};

use streamgauge_record::RecordError;

/// The failed action, its place, the cause, and the remedy.
#[derive(Debug)]
pub struct EngineError {
    /// The action: "open interface veth0".
    pub what: String,
    /// The file concerned, if any.
    pub path: Option<PathBuf>,
    /// The kernel's error number, if the kernel reported it.
    pub errno: Option<i32>,
    /// Why it failed.
    pub why: String,
    /// The remedy for the reader; may be empty.
    pub remedy: String,
    /// The process's exit code: 1 a failure at run time, 2 a bad configuration, 4 this machine cannot.
    pub code: u8,
}

impl EngineError {
    /// Returns a failure at run time.
    pub fn new(what: impl Into<String>, why: impl fmt::Display) -> Self {
        EngineError {
            what: what.into(),
            path: None,
            errno: None,
            why: why.to_string(),
            remedy: String::new(),
            code: 1,
        }
    }
    /// Returns an IO error.
    pub fn io(what: impl Into<String>, error: &std::io::Error) -> Self {
        EngineError { errno: error.raw_os_error(), ..Self::new(what, error) }
    }
    /// Returns an error of the record.
    pub fn record(error: &RecordError) -> Self {
        let plain = Self::new("write", error);
        match error {
            RecordError::Io { path, source, .. } => {
                let full = source.kind() == std::io::ErrorKind::StorageFull;
                let remedy = if full { "free some space on that disk" } else { "" };
                EngineError { errno: source.raw_os_error(), ..plain }.at(path).remedy(remedy)
            }
            RecordError::Invalid { path, .. } => plain.at(path),
            _ => plain,
        }
    }
    /// Returns a mistake in `path`, which the caller wrote.
    pub fn config(path: &Path, why: impl fmt::Display) -> Self {
        EngineError { path: Some(path.to_owned()), code: 2, ..Self::new("read the configuration", why) }
    }
    /// Adds the remedy for the reader.
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        EngineError { remedy: remedy.into(), ..self }
    }
    /// Adds the file concerned.
    pub fn at(self, path: &Path) -> Self {
        EngineError { path: Some(path.to_owned()), ..self }
    }
    /// Sets the exit code.
    pub fn code(self, code: u8) -> Self {
        EngineError { code, ..self }
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(path) = &self.path {
            write!(f, " {}", path.display())?;
        }
        write!(f, ": {}", self.why)?;
        if !self.remedy.is_empty() {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

/// The result of every fallible step here.
pub type Result<T> = std::result::Result<T, EngineError>;
