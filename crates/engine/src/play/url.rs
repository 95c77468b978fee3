//! `SCHEME://HOST[:PORT]/PATH`, of a scheme that a system of ours plays.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use streamgauge_systems::standalone::Player;
use streamgauge_systems::{player_of, standalone_players};
use streamgauge_wire::rtsp::Url;

use crate::error::{EngineError, Result};

/// What to play.
#[derive(Clone)]
pub struct Target {
    /// As it was given.
    pub url: Url,
    /// Who plays it.
    pub player: Player,
    host: String,
    port: u16,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut schemes: Vec<_> = standalone_players().map(|(_, player)| player.facts.scheme).collect();
        schemes.dedup();
        let wrong = |why: &str| {
            let forms: Vec<_> = schemes.iter().map(|scheme| format!("{scheme}://HOST[:PORT]/PATH")).collect();
            format!("{text:?} {why}; write {}", forms.join(" or "))
        };
        let url = Url::parse(text).map_err(|e| wrong(&format!("is no URL ({e})")))?;
        let player = player_of(url.scheme(), url.path())
            .ok_or_else(|| wrong(&format!("is of scheme {}, which nobody here plays", url.scheme())))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("has a user name, and nobody here can log in"));
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong("has no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = url.port().unwrap_or(player.facts.port);
        Ok(Target { url, player, host, port })
    }
}

impl Target {
    /// Where that is; several addresses if the name has several.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>> {
        let what = format!("find host {}", self.host);
        let found = (self.host.as_str(), self.port).to_socket_addrs();
        let found: Vec<_> = found.map_err(|e| EngineError::io(what.as_str(), &e).code(4))?.collect();
        if found.is_empty() { Err(EngineError::new(what, "it has no address").code(4)) } else { Ok(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_others_say_what_is_wanted() {
        let target: Target = "rtsp://127.0.0.1/a%20b.mp4".parse().unwrap();
        assert_eq!((target.host.as_str(), target.port, target.url.path()), ("127.0.0.1", 554, "/a%20b.mp4"));
        let target: Target = "rtsp://[::1]:8554/a".parse().unwrap();
        assert_eq!((target.host.as_str(), target.port), ("::1", 8554));
        assert_eq!(target.resolve().unwrap(), ["[::1]:8554".parse().unwrap()]);
        for (text, words) in [
            ("gopher://a/b", "scheme gopher, which nobody here plays"),
            ("a.mp4", "is no URL"),
            ("rtsp:///a", "has no host"),
            ("rtsp://me:secret@a/b", "user name"),
            ("rtsp://a:99999/b", "is no URL"),
        ] {
            let error = text.parse::<Target>().err().unwrap();
            assert!(error.contains(words) && error.contains("rtsp://HOST"), "{error}");
        }
    }
}
