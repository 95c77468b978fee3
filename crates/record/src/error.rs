//! Errors of a record. Every message names the file and the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// A record that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The operating system refused: a full disk, no permission, no such directory.
    #[error("{}: {what}: {source}{}", path.display(), remedy(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The action that failed.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A file of the record is not there.
    #[error("{}: missing; the record is not complete, run the trial again", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file differs from the written one.
    #[error("{}: damaged: {what}; run the trial again or fetch the record anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The difference.
        what: String,
    },
    /// The file has a schema version that this program does not support.
    #[error(
        "{}: schema {found:?} is not one this version reads ({known}); read it with the StreamGauge that wrote it",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The schema that the file names.
        found: String,
        /// The schemas that can be read.
        known: &'static str,
    },
    /// A value that the record cannot hold: a flow or stage that the legend does not name, bad JSON.
    #[error("{}: {what}", path.display())]
    Invalid {
        /// The file being written, or the name of the argument.
        path: PathBuf,
        /// The fault.
        what: String,
    },
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space on that disk",
        io::ErrorKind::PermissionDenied => "; choose a directory that you may write to",
        _ => "",
    }
}

impl RecordError {
    pub(crate) fn io(path: &Path, what: &'static str, source: io::Error) -> Self {
        RecordError::Io { path: path.to_owned(), what, source }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        RecordError::Damaged { path: path.to_owned(), what: what.into() }
    }

    pub(crate) fn invalid(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        RecordError::Invalid { path: path.into(), what: what.into() }
    }

    /// Makes an error of the Parquet library while writing. Nearly always the operating system's underneath.
    pub(crate) fn writing(path: &Path, error: parquet::errors::ParquetError) -> Self {
        match error {
            parquet::errors::ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(source) => RecordError::io(path, "writing", *source),
                Err(source) => RecordError::io(path, "writing", io::Error::other(source)),
            },
            other => RecordError::io(path, "writing", io::Error::other(other)),
        }
    }
}
