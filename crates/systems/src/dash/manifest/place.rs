//! Addresses: references against where they stand (RFC 3986 section 5).

use streamgauge_wire::rtsp::Url;

use super::fault::{ManifestError, broken};

/// An address against which relative references are resolved.
#[derive(Clone, Debug)]
pub struct Place(Url);

impl Place {
    /// The manifest's own address.
    pub fn of(url: &str) -> Result<Self, ManifestError> {
        let wrong = |why: String| ManifestError::Place { url: url.chars().take(200).collect(), why };
        let parsed = Url::parse(url).map_err(|error| wrong(error.to_string()))?;
        if !is_http(&parsed) {
            return Err(wrong("it is not http or https".into()));
        }
        Ok(Place(parsed))
    }

    /// Resolves `reference` from here.
    pub fn resolve(&self, reference: &str, line: u32) -> Result<Place, ManifestError> {
        let shown: String = reference.chars().take(100).collect();
        let mut url = self
            .0
            .join(reference)
            .map_err(|error| broken(line, format!("{shown:?} is no address: {error}")))?;
        if !is_http(&url) {
            return Err(broken(line, format!("{shown:?} is no address of http or https")));
        }
        url.set_fragment(None);
        Ok(Place(url))
    }

    /// The value of a parameter of its query, decoded.
    pub fn query_value(&self, name: &str) -> Option<String> {
        self.0.query_pairs().find(|(own, _)| own == name).map(|(_, value)| value.into_owned())
    }

    /// The address.
    pub fn url(&self) -> &str {
        self.0.as_str()
    }
}

/// A manifest may be anybody's: it may not name resources of the player's own machine.
fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.host_str().is_some()
}
