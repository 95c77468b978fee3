//! Where assets come from.

use std::sync::Arc;

use crate::media::Asset;

/// What a server has to stream, by path. It is asked once for each DESCRIBE and once for each session.
pub trait Library: Send + Sync {
    /// The asset at `path`: that of the URL, percent-decoded, with its leading `/`. It may hold anything a
    /// client can write, `..` included.
    fn open(&self, path: &str) -> Result<Arc<Asset>, OpenError>;
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
