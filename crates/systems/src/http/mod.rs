//! Progressive download: a file by HTTP/1.1 (RFC 9110, RFC 9112) that is played while it is received.
//!
//! The file of a trial is a real MP4 as far as its tables go, made from the clip's frames; its samples are
//! filler. The player reads the tables as they arrive and derives from them which frames are whole. The same
//! machines serve and play other files: a server has a [`Library`] of [`Resource`]s, a player a [`Source`].

mod answer;
mod fetch;
mod film;
mod player;
mod redirect;
mod resource;
mod server;
mod source;
mod spec;
mod standalone;
#[cfg(test)]
mod tests;

pub(crate) use answer::{for_pages, preflight};
pub use player::HttpPlayer;
pub(crate) use redirect::Hosts;
pub use resource::{Busy, Library, MadeFile, OneFile, Resource};
pub use server::HttpServer;
pub(crate) use server::say_client_data;
pub(crate) use source::Destination;
pub use source::Source;
pub use spec::{HttpPlayerSettings, HttpServerSettings, HttpSpec};
pub(crate) use standalone::{full, host, source_of};

use std::sync::Arc;

use streamgauge_plan::{Parameter, Protocols, StreamProtocol, TcpSpec};

use crate::app::ChannelId;
use crate::carrier::Carrier;
use crate::describe::{Content, EventKind, Refusal, System, check_ends, events, tcp_last};
use crate::machines::{Channel, Machines};
use crate::media::ClipSpec;
use crate::standalone::{Player, Server};

/// The server's listener, with which a flow begins.
pub const LISTENER: ChannelId = ChannelId(0);

/// The server's port (RFC 9110 section 4.2.1).
pub const PORT: u16 = 80;

/// A path of the clip in a trial, for any clip.
pub const PATH: &str = "/clip.mp4";

/// The name of the server for the player of a trial.
const HOST: &str = "server";

impl System for HttpSpec {
    const NAME: &'static str = "http";
    const TITLE: &'static str =
        "Progressive download: a clip as an MP4 file by HTTP/1.1, played while it comes";
    const VERSION: u32 = 3;
    const CONTENT: Content = Content::Clip;
    const EVENTS: &'static [EventKind] = &events([
        ("playout_start", "s"),
        ("frame_shown", "1"),
        ("frame_late", "s"),
        ("frame_incomplete", "1"),
        ("stall", "1"),
        ("resume", "s"),
        ("buffer", "s"),
        ("download_off", "s"),
        ("download_on", "s"),
        ("http_request", "B"),
        ("http_response", "1"),
        ("http_failure", "1"),
        ("http_redirect", "1"),
        ("http_broken", ""),
        ("cmcd", "s"),
    ]);

    fn usual() -> Self {
        HttpSpec {
            clip: ClipSpec::default(),
            player: HttpPlayerSettings::default(),
            server: HttpServerSettings::default(),
            tcp: TcpSpec::default(),
        }
    }

    fn parameters() -> Vec<Parameter> {
        tcp_last(Self::fields())
    }

    fn clip(&mut self) -> Option<&mut ClipSpec> {
        Some(&mut self.clip)
    }

    fn server() -> Option<Server> {
        Some(Server::of::<HttpServerSettings>())
    }

    fn player() -> Option<Player> {
        Some(Player::of::<HttpPlayerSettings>())
    }

    fn machines(&self, _: &str, _: u64) -> Result<Machines, Refusal> {
        check_ends(Self::NAME, &self.player, &self.server, &self.clip)?;
        let file = MadeFile::of_clip(&self.clip)
            .map_err(|error| ("app.http.clip".into(), format!("{error}; give another clip")))?;
        let settings = self.tcp.clone();
        let listener =
            Carrier::Listener { port: PORT, settings: settings.clone(), backlog: self.server.backlog };
        // Its own path, which has the same clip alone, identifies it in a cache that several flows share.
        let path = format!("/{}{PATH}", file.tag().tag);
        let library = Arc::new(OneFile { paths: vec![PATH.into(), path.clone()], resource: Arc::new(file) });
        let source = Source {
            host: HOST.into(),
            target: path,
            carrier: Carrier::Tcp { port: PORT, settings },
            asks_identity: false,
        };
        Ok(Machines {
            channels: vec![Channel { id: LISTENER, carrier: listener }],
            server: Box::new(HttpServer::new(library, self.server.clone())),
            player: Box::new(HttpPlayer::new(self.player.clone(), source)),
        })
    }

    fn protocols(&self) -> Protocols {
        Protocols::tcp(StreamProtocol::Http)
    }

    fn media_tcp(&self) -> Option<&TcpSpec> {
        Some(&self.tcp)
    }

    /// Returns `None`: a download uses any rate, until the player holds enough.
    fn wanted_bps(&self, _: u32) -> Option<f64> {
        None
    }

    fn is_finite(&self) -> bool {
        true
    }
}
