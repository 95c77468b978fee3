//! A player's file and the host to fetch it from.

use streamgauge_wire::rtsp::Url;

use super::PORT;
use crate::carrier::Carrier;

/// The file to fetch, and its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Source {
    /// Value of the Host header: a name or an address, with the port if it is not 80.
    pub host: String,
    /// Path and query, `/clip.mp4`.
    pub target: String,
    /// The carrier of each connection; the driver chooses its peer.
    pub carrier: Carrier,
    /// Bodies are asked for without a coding. A trial's own server has none, and its requests are as short as they were.
    pub asks_identity: bool,
}

impl Source {
    /// Returns its destination.
    pub fn destination(&self) -> Destination {
        let (name, port) = match Destination::of(&format!("http://{}/", self.host)) {
            Ok(own) => (own.name, own.port),
            Err(_) => (self.host.clone(), PORT),
        };
        Destination { name, port, target: self.target.clone() }
    }
}

/// The host and the target of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destination {
    /// The host's name or address, without a port; IPv6 in brackets.
    pub name: String,
    /// Its port.
    pub port: u16,
    /// Path and query.
    pub target: String,
}

impl Destination {
    /// Returns the destination of an absolute URL.
    ///
    /// # Errors
    ///
    /// Why nothing there can be asked for.
    pub fn of(url: &str) -> Result<Self, String> {
        let parsed = Url::parse(url).map_err(|error| format!("{url} is no URL ({error})"))?;
        if parsed.scheme() == "https" {
            return Err(format!("{url} needs TLS, which this player does not speak; offer it by http"));
        }
        if parsed.scheme() != "http" {
            return Err(format!("{url} is not by HTTP; this player speaks no other"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(format!("{url} has a user name, and this player cannot log in"));
        }
        let name = parsed.host_str().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| format!("{url} has no host"))?.to_owned();
        // As in the URL: a percent-encoded form there may differ from the plain one.
        let rest = url.split_once("://").map_or("", |(_, rest)| rest).split('#').next().unwrap_or_default();
        let target = match rest.find(['/', '?']) {
            Some(at) if rest[at..].starts_with('/') => rest[at..].to_owned(),
            Some(at) => format!("/{}", &rest[at..]),
            None => "/".into(),
        };
        Ok(Destination { name, port: parsed.port().unwrap_or(PORT), target })
    }

    /// Returns the value of the Host header.
    pub fn host(&self) -> String {
        match self.port {
            PORT => self.name.clone(),
            port => format!("{}:{port}", self.name),
        }
    }

    /// Returns the URL.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.host(), self.target)
    }

    /// Returns whether both are at one port of one host.
    pub fn is_beside(&self, other: &Destination) -> bool {
        (&self.name, self.port) == (&other.name, other.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_stay_as_they_are_written() {
        for (url, target) in [
            ("http://h/a%20b?x=1#y", "/a%20b?x=1"),
            ("http://h", "/"),
            ("http://h?x", "/?x"),
            ("http://h/a/../b", "/a/../b"),
        ] {
            assert_eq!(Destination::of(url).unwrap().target, target);
        }
    }
}
