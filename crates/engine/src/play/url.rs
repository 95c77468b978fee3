//! `SCHEME://HOST[:PORT]/PATH`, of a scheme that a system of ours plays.

use std::str::FromStr;

use streamgauge_systems::standalone::Player;
use streamgauge_systems::{player_called, player_of, standalone_players};
use streamgauge_wire::rtsp::Url;

use crate::net::host::Host;

/// The target to play.
#[derive(Clone)]
pub struct Target {
    /// As it was given.
    pub url: Url,
    /// Its player.
    pub player: Player,
    /// Where its server is.
    pub host: Host,
}

impl Target {
    /// Returns the same, played by the scheme's player of that name; without one, by the player of its path.
    pub fn played_by(&self, name: Option<&str>) -> Target {
        let known = |name: &&str| !self.player.facts.players.contains(name);
        let other = name.filter(known).and_then(|name| player_called(self.url.scheme(), name));
        Target { player: other.unwrap_or(self.player), ..self.clone() }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut schemes: Vec<_> = Vec::new();
        for (_, player) in standalone_players() {
            if !schemes.contains(&player.facts.scheme) {
                schemes.push(player.facts.scheme);
            }
        }
        let wrong = |why: &str| {
            let forms: Vec<_> = schemes.iter().map(|scheme| format!("{scheme}://HOST[:PORT]/PATH")).collect();
            format!("{text:?} {why}; write {}", forms.join(" or "))
        };
        let url = Url::parse(text).map_err(|e| wrong(&format!("is no URL ({e})")))?;
        let player = player_of(url.scheme(), url.path())
            .ok_or_else(|| wrong(&format!("is of scheme {}, which nobody here plays", url.scheme())))?;
        let host = Host::of(&url, player.facts.port).map_err(wrong)?;
        Ok(Target { url, player, host })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_played_by_its_path_and_by_whom_is_named() {
        let by = |url: &str, name: Option<&str>| {
            url.parse::<Target>().unwrap().played_by(name).player.facts.players.first().copied()
        };
        assert_eq!(by("rtsp://h/film.RM", None), Some("realplayer8"));
        assert_eq!(by("rtsp://h/film.rmvb", Some("realplayer10")), Some("realplayer8"));
        assert_eq!(by("rtsp://h/clip.mp4", None), Some("quicktime"));
        assert_eq!(by("rtsp://h/live", Some("realplayer8")), Some("realplayer8"));
        assert_eq!(by("rtsp://h/film.rm", Some("vlc")), Some("quicktime"));
        assert_eq!(by("rtsp://h/film.rm", Some("nobody")), Some("realplayer8"));
        assert_eq!(by("rtsp://h/film.WMV", None), Some("wmp9"));
        assert_eq!(by("rtsp://h/live", Some("wmp9-helix")), Some("wmp9"));
    }

    #[test]
    fn urls_are_read_and_others_say_what_is_wanted() {
        let target: Target = "rtsp://127.0.0.1/a%20b.mp4".parse().unwrap();
        assert_eq!(target.url.path(), "/a%20b.mp4");
        assert_eq!(target.host.resolve().unwrap(), ["127.0.0.1:554".parse().unwrap()]);
        let target: Target = "rtsp://[::1]:8554/a".parse().unwrap();
        assert_eq!(target.host.resolve().unwrap(), ["[::1]:8554".parse().unwrap()]);
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
