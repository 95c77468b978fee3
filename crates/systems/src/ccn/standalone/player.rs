//! The player of any producer's content, over a face that it opens.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use streamgauge_base::{Ecn, Event, Instant};
use streamgauge_plan::TcpSpec;
use streamgauge_wire::ndn::Name;
use streamgauge_wire::rtsp::Url;

use super::consumer::ConsumerSettings;
use super::server::PORT;
use crate::app::{App, Input, Io};
use crate::carrier::Carrier;
use crate::ccn::ends::ConsumerHost;
use crate::ccn::face::Face;
use crate::ccn::host::Host;
use crate::ccn::spec::CcnPreset;
use crate::dash::{DashPlayer, DashPlayerSettings, PLAYERS, PlayerKind, Tally, player_of, seen};
use crate::standalone::{ContentFault, Playable, Playing, Seen, names};

/// The name by which nonces of its Interests are drawn.
const OWNER: &str = "play";

/// The transport of the player's face.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaceOver {
    /// A TCP connection.
    Tcp,
    /// UDP; packets are cut into datagrams that fit (NDNLPv2).
    Udp,
}

impl FaceOver {
    /// Each by its name.
    const NAMED: [(&'static str, FaceOver); 2] = [("tcp", FaceOver::Tcp), ("udp", FaceOver::Udp)];

    fn face(self, port: u16, seed: u64) -> Face {
        match self {
            FaceOver::Tcp => Face::opening(Carrier::Tcp { port, settings: TcpSpec::default() }),
            FaceOver::Udp => Face::opening_datagrams(Carrier::Udp { port, ecn: Ecn::NotEct }, seed),
        }
    }
}

/// The player's constants, and its consumer's and forwarder's. Times in nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CcnPlayerSettings {
    /// The player.
    #[serde(flatten)]
    pub player: DashPlayerSettings,
    /// The transport of its face.
    pub face: FaceOver,
    /// Its consumer.
    #[serde(flatten)]
    pub consumer: ConsumerSettings,
}

/// The player's host, with its counts.
struct Viewed {
    host: Host<DashPlayer, ConsumerHost>,
    tally: Tally,
    over: FaceOver,
}

impl App for Viewed {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        self.host.handle(now, input, io);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.host.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.host.poll_event()?;
        self.tally.note(&event);
        Some(event)
    }

    fn is_gone(&self) -> bool {
        self.host.player().is_gone()
    }
}

impl Playing for Viewed {
    fn seen(&mut self, now: Instant) -> Seen {
        seen(self.host.player(), now)
    }

    fn figures(&mut self, _: Instant) -> Map<String, Value> {
        let asked = self.host.proxy().asked();
        let mut figures = self.tally.figures(self.host.player().measured_bps());
        figures.insert("interests".into(), asked.interests.into());
        figures.insert("interests_expired".into(), asked.expired.into());
        figures
    }

    fn carried_by(&self) -> &'static str {
        match self.over {
            FaceOver::Tcp => "NDN (TCP face)",
            FaceOver::Udp => "NDN (UDP face)",
        }
    }

    fn in_words(&mut self, _: Instant, rate: &str) -> String {
        let asked = self.host.proxy().asked();
        let came = self.tally.in_words(rate, self.host.player().measured_bps());
        format!("{came}; {} Interests, {} expired", asked.interests, asked.expired)
    }

    fn left_out(&self) -> Vec<String> {
        self.host.player().left_out()
    }

    fn refused(&self) -> Option<u16> {
        let player = self.host.player();
        player.refused().filter(|_| !player.has_manifest())
    }

    fn is_unplayable(&self) -> bool {
        self.host.player().is_unplayable()
    }

    /// Returns initialisation and media segments of the pictures, in order.
    fn take_kept(&mut self) -> Option<Vec<u8>> {
        self.host.player_mut().take_bytes().map(|chunk| chunk.head().to_vec())
    }
}

impl Playable for CcnPlayerSettings {
    const SCHEME: &'static str = "ndn";
    const PORT: u16 = PORT;
    const PLAYERS: &'static [&'static str] = &PLAYERS;
    const TRANSPORTS: &'static [&'static str] = &names(&FaceOver::NAMED);
    const WITHOUT_CONNECTION: &'static [&'static str] = &["udp"];
    const ASKS: &'static str = "the first Interest";
    const IS_CONNECTED: bool = false;

    fn preset(player: &str, transport: &str) -> Option<Self> {
        let (_, face) = FaceOver::NAMED.iter().find(|(name, _)| *name == transport)?;
        let (_, kind) = PlayerKind::NAMED.iter().find(|(name, _)| *name == player)?;
        Some(CcnPlayerSettings {
            player: DashPlayerSettings::of(*kind),
            face: *face,
            consumer: ConsumerSettings::of(CcnPreset::NdnToday),
        })
    }

    fn check(&self) -> Result<(), ContentFault> {
        self.player.check()?;
        self.consumer.check()
    }

    fn machine(self, url: &str, keep: bool, seed: u64) -> Box<dyn Playing> {
        let port = Url::parse(url).ok().and_then(|url| url.port()).unwrap_or(PORT);
        let (over, face) = (self.face, self.face.face(port, seed));
        // The URL's path is the whole name.
        let consumer = ConsumerHost::new(Name::root(), &self.consumer.constants(), face, OWNER, seed);
        let host = Host::new(player_of(self.player, url, keep, seed), consumer);
        Box::new(Viewed { host, tally: Tally::default(), over })
    }
}
