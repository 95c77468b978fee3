//! Where assets come from.

use std::sync::Arc;

use super::Asset;

/// A server's media, by path. It is asked once for each DESCRIBE and once for each session.
pub trait Library: Send + Sync {
    /// Returns the asset at `path`: that of the URL, percent-decoded, with its leading `/`. It may hold
    /// anything a client can write, `..` included.
    fn open(&self, path: &str) -> Result<Arc<Asset>, OpenError>;

    /// Returns the file at `path`, as it lies there. A library of assets alone has none.
    fn file(&self, _path: &str) -> Result<Arc<dyn StoredFile>, OpenError> {
        Err(OpenError::NotFound)
    }

    /// Returns the file at `path`, with any ending: for callers that hand out the names themselves.
    fn plain(&self, _path: &str) -> Result<Arc<dyn StoredFile>, OpenError> {
        Err(OpenError::NotFound)
    }

    /// Returns the one file that there is, which is at every path, and its name. `None` of a folder.
    ///
    /// # Errors
    ///
    /// Why it cannot be had.
    fn alone(&self) -> Result<Option<NamedFile>, OpenError> {
        Ok(None)
    }

    /// Returns the names in the folder at `path`, in order.
    ///
    /// # Errors
    ///
    /// The reason why there are none, such as a missing folder.
    fn names(&self, _path: &str) -> Result<Vec<String>, OpenError> {
        Err(OpenError::NotFound)
    }

    /// Notes that a client plays the media at `path`, where that is no one file.
    fn plays(&self, _path: &str) {}
}

/// A file with its name.
pub type NamedFile = (String, Arc<dyn StoredFile>);

/// A file as it lies there.
pub trait StoredFile: Send + Sync {
    /// Returns the bytes in all.
    fn length(&self) -> u64;
    /// Its version, in letters, digits and dashes: another one where it has changed.
    fn version(&self) -> &str;
    /// Returns the bytes from `first` on: at most `most`, and none only at the file's end.
    ///
    /// # Errors
    ///
    /// The host's error.
    fn read(&self, first: u64, most: u64) -> Result<Vec<u8>, String>;
}

/// Why there is no asset.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// No such thing, or none that clients may have.
    #[error("not found")]
    NotFound,
    /// It is there and cannot be streamed.
    #[error("cannot be streamed: {0}")]
    Unsupported(String),
    /// It is there and could not be read.
    #[error("could not be read: {0}")]
    Failed(String),
}

/// A library of one asset, which is at every path: a trial's.
pub struct OneAsset(pub Arc<Asset>);

impl Library for OneAsset {
    fn open(&self, _path: &str) -> Result<Arc<Asset>, OpenError> {
        Ok(self.0.clone())
    }
}
