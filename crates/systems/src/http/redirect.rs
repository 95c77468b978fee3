//! Where a player may go: redirections (RFC 9110 section 15.4) and addresses on other hosts.

use std::collections::BTreeMap;

use streamgauge_wire::http::Response;
use streamgauge_wire::rtsp::Url;

use super::source::{Destination, Source};
use crate::app::{ChannelId, Io};
use crate::carrier::Carrier;

/// Redirections of one request, one after another. Browsers follow 20.
pub const MOST_REDIRECTS: usize = 10;

/// Permanent redirections that are kept.
const MOST_KEPT: usize = 1_000;

/// The hosts that a player may ask.
#[derive(Clone, Debug)]
pub struct Hosts {
    own: String,
    carrier: Carrier,
    allowed: Vec<String>,
    /// Where permanent redirections lead, by URL (RFC 9110 sections 15.4.2 and 15.4.9).
    moved: BTreeMap<String, String>,
}

impl Hosts {
    /// Returns the host of `source`, and no other.
    pub fn of(source: &Source) -> Self {
        let own =
            Destination::of(&format!("http://{}/", source.host)).map_or(source.host.clone(), |own| own.name);
        Hosts { own, carrier: source.carrier.clone(), allowed: Vec::new(), moved: BTreeMap::new() }
    }

    /// Allows further hosts, by name; `*` allows all.
    pub fn allow(&mut self, hosts: &[String]) {
        self.allowed.extend(hosts.iter().map(|host| host.to_ascii_lowercase()));
    }

    /// Returns the destination of a request for `url`.
    ///
    /// # Errors
    ///
    /// Why that is not asked, and the remedy.
    pub fn find(&self, url: &str) -> Result<Destination, String> {
        let found = Destination::of(self.moved.get(url).map_or(url, String::as_str))?;
        let is_allowed = |host: &String| {
            host == "*" || host.trim_matches(['[', ']']) == found.name.trim_matches(['[', ']'])
        };
        if found.name != self.own && !self.allowed.iter().any(is_allowed) {
            let name = &found.name;
            return Err(format!(
                "{} is at another server than {}; allow it with --allow-host {name}",
                found.url(),
                self.own
            ));
        }
        Ok(found)
    }

    /// Returns a connection there.
    pub fn open(&self, there: &Destination, io: &mut dyn Io) -> ChannelId {
        let carrier = match &self.carrier {
            Carrier::Tcp { settings, .. } => Carrier::Tcp { port: there.port, settings: settings.clone() },
            carrier => carrier.clone(),
        };
        if there.name == self.own { io.open(&carrier) } else { io.open_at(&there.name, &carrier) }
    }

    /// Returns where a redirection from `from` leads, if the answer is one; `before` are the URLs that led
    /// there.
    ///
    /// # Errors
    ///
    /// Why it is not followed.
    pub fn follow(
        &mut self,
        response: &Response,
        from: &Destination,
        before: &[String],
    ) -> Option<Result<Destination, String>> {
        if !matches!(response.status, 301 | 302 | 303 | 307 | 308) {
            return None;
        }
        let refused = |why: String| {
            let answer = format!("{} {}", response.status, response.reason);
            Some(Err(format!("the server answered {} to GET {}: {why}", answer.trim_end(), from.target)))
        };
        let Some(location) = response.headers.get("Location") else {
            return refused("it names no Location".into());
        };
        let here = from.url();
        let joined = Url::parse(&here).and_then(|here| here.join(location.trim()));
        let url = match joined {
            Ok(url) => url.to_string(),
            Err(error) => return refused(format!("its Location {location:?} is no address ({error})")),
        };
        if before.len() >= MOST_REDIRECTS {
            return refused(format!("more than {MOST_REDIRECTS} redirections one after another"));
        }
        let there = match self.find(&url) {
            Ok(there) => there,
            Err(why) => return refused(why),
        };
        if there.url() == here || before.contains(&there.url()) {
            return refused(format!("it leads back to {}, in a circle", there.url()));
        }
        if matches!(response.status, 301 | 308) && self.moved.len() < MOST_KEPT {
            self.moved.insert(here, there.url());
        }
        Some(Ok(there))
    }
}

#[cfg(test)]
mod tests {
    use streamgauge_plan::TcpSpec;

    use super::*;

    fn hosts() -> Hosts {
        let carrier = Carrier::Tcp { port: 8080, settings: TcpSpec::default() };
        Hosts::of(&Source {
            host: "own.example:8080".into(),
            target: "/a/x.mpd".into(),
            carrier,
            asks_identity: false,
        })
    }

    fn from() -> Destination {
        Destination::of("http://own.example:8080/a/x.mpd").unwrap()
    }

    fn followed(status: u16, location: &str) -> Result<String, String> {
        let response = Response::new(status).with("location", location);
        hosts().follow(&response, &from(), &[]).expect("a redirection").map(|there| there.url())
    }

    #[test]
    fn locations_are_taken_against_where_they_stand() {
        for status in [301, 302, 303, 307, 308] {
            for (location, expected) in [
                ("/new/x.mpd", "http://own.example:8080/new/x.mpd"),
                ("y.mpd?t=1#part", "http://own.example:8080/a/y.mpd?t=1"),
                ("../z%2fq.mpd", "http://own.example:8080/z%2fq.mpd"),
                ("//own.example/x.mpd", "http://own.example/x.mpd"),
                ("http://own.example:9000/x", "http://own.example:9000/x"),
                ("?k=2", "http://own.example:8080/a/x.mpd?k=2"),
            ] {
                assert_eq!(followed(status, location).as_deref(), Ok(expected), "{status}");
            }
        }
        assert!(hosts().follow(&Response::new(304), &from(), &[]).is_none());
        assert!(hosts().follow(&Response::new(300), &from(), &[]).is_none());
    }

    #[test]
    fn redirections_that_are_not_followed_say_why() {
        for (location, words) in [
            ("https://own.example/x", "TLS"),
            ("ftp://own.example/x", "not by HTTP"),
            ("http://me:pass@own.example/x", "cannot log in"),
            ("http://", "no address"),
            ("http://elsewhere.example/x", "--allow-host elsewhere.example"),
            ("x.mpd", "in a circle"),
        ] {
            let why = followed(302, location).unwrap_err();
            assert!(why.contains(words) && why.contains("answered 302"), "{why}");
        }
        let why = hosts().follow(&Response::new(302), &from(), &[]).unwrap().unwrap_err();
        assert!(why.contains("no Location"), "{why}");
        let before = vec![String::new(); MOST_REDIRECTS];
        let response = Response::new(302).with("Location", "/next");
        let why = hosts().follow(&response, &from(), &before).unwrap().unwrap_err();
        assert!(why.contains("more than 10"), "{why}");
    }

    #[test]
    fn allowed_hosts_are_asked_and_permanent_redirections_kept() {
        let mut hosts = hosts();
        hosts.allow(&["CDN.example".into(), "::1".into()]);
        assert!(hosts.find("http://cdn.example/a").is_ok() && hosts.find("http://[::1]:80/a").is_ok());
        assert!(hosts.find("http://other.example/a").is_err());
        for (status, expected) in [(302, "http://own.example:8080/a/x.mpd"), (308, "http://cdn.example/x")] {
            let response = Response::new(status).with("Location", "http://cdn.example/x");
            hosts.follow(&response, &from(), &[]).unwrap().unwrap();
            assert_eq!(hosts.find(&from().url()).unwrap().url(), expected);
        }
        hosts.allow(&["*".into()]);
        assert!(hosts.find("http://other.example/a").is_ok());
    }
}
