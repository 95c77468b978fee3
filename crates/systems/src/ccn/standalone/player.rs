//! The player of what any producer has, over a face that it opens.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use streamgauge_base::{Duration, Ecn, Event, Instant};
use streamgauge_plan::TcpSpec;
use streamgauge_wire::ndn::Name;
use streamgauge_wire::rtsp::Url;

use super::server::PORT;
use crate::app::{App, Input, Io};
use crate::carrier::Carrier;
use crate::ccn::consumer::window::{Retransmission, WindowControl};
use crate::ccn::ends::ConsumerHost;
use crate::ccn::face::Face;
use crate::ccn::forwarder::StorePolicy;
use crate::ccn::host::Host;
use crate::ccn::spec::{CcnPreset, CcnSettings};
use crate::dash::{DashPlayer, DashPlayerSettings, PLAYERS, PlayerKind, Tally, player_of, seen};
use crate::standalone::{ContentFault, Playable, Playing, Seen, names};

/// Whose Interests they are: nonces are drawn by that name.
const OWNER: &str = "play";

/// What the player's face is over.
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
    /// What its face is over.
    pub face: FaceOver,
    /// What chooses how many Interests are on their way.
    pub window_control: WindowControl,
    /// That number, or the most that a controller may choose.
    pub interest_window: u32,
    /// When an Interest that brings nothing is expressed again.
    pub retransmission: Retransmission,
    /// How long forwarders keep an Interest (NDN Packet Format Specification 0.3, InterestLifetime).
    pub interest_lifetime: Duration,
    /// Times that a segment is asked for before its object is given up.
    pub interest_tries: u32,
    /// An object's size and version are asked for before its segments (NDN Technical Report 0019); without it they are asked
    /// for right away, which a producer must answer that is asked for no version.
    pub metadata: bool,
    /// An Interest that comes again within that time of having been passed on is held for a copy.
    pub suppression: Duration,
    /// Data in bytes that the forwarder keeps for whoever asks again; 0 turns storing off.
    pub store_bytes: u64,
    /// What goes first where there is no room in it.
    pub store_policy: StorePolicy,
}

impl CcnPlayerSettings {
    fn constants(&self) -> CcnSettings {
        CcnSettings {
            window_control: self.window_control,
            interest_window: self.interest_window,
            retransmission: self.retransmission,
            interest_lifetime: self.interest_lifetime,
            interest_tries: self.interest_tries,
            metadata: self.metadata,
            suppression: self.suppression,
            store_bytes: self.store_bytes,
            store_policy: self.store_policy,
            ..CcnSettings::of(CcnPreset::NdnToday)
        }
    }
}

/// The player's host, with what it did.
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
}

impl Playing for Viewed {
    fn seen(&mut self, now: Instant) -> Seen {
        seen(self.host.player(), now)
    }

    fn figures(&mut self, _: Instant) -> Map<String, Value> {
        let asked = self.host.proxy().asked();
        let mut figures = self.tally.figures();
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
        format!("{}; {} Interests, {} expired", self.tally.in_words(rate), asked.interests, asked.expired)
    }

    fn is_gone(&self) -> bool {
        self.host.player().is_gone()
    }

    fn refused(&self) -> Option<u16> {
        let player = self.host.player();
        player.refused().filter(|_| !player.has_manifest())
    }

    fn is_unplayable(&self) -> bool {
        let player = self.host.player();
        !player.has_manifest() && player.bytes() > 0
    }

    /// Initialisation and media segments of the pictures, in order.
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
        let ccn = CcnSettings::of(CcnPreset::NdnToday);
        Some(CcnPlayerSettings {
            player: DashPlayerSettings::of(*kind),
            face: *face,
            window_control: ccn.window_control,
            interest_window: ccn.interest_window,
            retransmission: ccn.retransmission,
            interest_lifetime: ccn.interest_lifetime,
            interest_tries: ccn.interest_tries,
            metadata: ccn.metadata,
            suppression: ccn.suppression,
            store_bytes: ccn.store_bytes,
            store_policy: ccn.store_policy,
        })
    }

    fn check(&self) -> Result<(), ContentFault> {
        self.player.check()?;
        self.constants().check()
    }

    fn machine(self, url: &str, keep: bool, seed: u64) -> Box<dyn Playing> {
        let port = Url::parse(url).ok().and_then(|url| url.port()).unwrap_or(PORT);
        let (over, face) = (self.face, self.face.face(port, seed));
        // The URL's path is the whole name.
        let consumer = ConsumerHost::new(Name::root(), &self.constants(), face, OWNER, seed);
        let host = Host::new(player_of(self.player, url, keep, seed), consumer);
        Box::new(Viewed { host, tally: Tally::default(), over })
    }
}
