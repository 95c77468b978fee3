//! Numbers of frames, shared by all their holders.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Numbers of frames, sizes or places, shared by all flows that play them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Vec<u32>", into = "Vec<u32>")]
pub struct Numbers(Arc<[u32]>);

impl Numbers {
    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Deref for Numbers {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.0
    }
}

impl From<Vec<u32>> for Numbers {
    fn from(numbers: Vec<u32>) -> Self {
        Numbers(numbers.into())
    }
}

impl From<Numbers> for Vec<u32> {
    fn from(numbers: Numbers) -> Self {
        numbers.0.to_vec()
    }
}

impl<'a> IntoIterator for &'a Numbers {
    type Item = &'a u32;
    type IntoIter = std::slice::Iter<'a, u32>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
