//! Every constant of the player, by name and with its source.
//!
//! "The thesis" is Nichols, Measurement of Windows Streaming Media; "ours" has no published source.

use serde::{Deserialize, Serialize};
use streamgauge_base::Duration;
use streamgauge_plan::{Kind, Parameter, check_bounds, setting, settings};

/// A millisecond in nanoseconds.
const MS: f64 = 1e6;

/// Which player.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayerKind {
    /// Windows Media Player 9, of 2003, with its own server.
    Wmp9,
    /// The same with a Helix server: it reacts to nothing, and stops with an error when it has starved for long enough.
    Wmp9Helix,
}

impl PlayerKind {
    /// By their names in scenarios.
    pub const NAMED: [(&'static str, PlayerKind); 2] =
        [("wmp9", PlayerKind::Wmp9), ("wmp9-helix", PlayerKind::Wmp9Helix)];
}

setting!(PlayerKind => Kind::Words(vec!["wmp9", "wmp9_helix"]));

/// The protocol of the media.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WmTransport {
    /// RTSP, and RTP over UDP.
    Udp,
    /// RTSP, and RTP on its connection.
    Tcp,
    /// MMS, and its packets over UDP.
    MmsUdp,
    /// MMS, and its packets on its connection.
    MmsTcp,
    /// HTTP.
    Http,
    /// Each of these in turn, until one works.
    Rollover,
}

setting!(WmTransport => Kind::Words(WmTransport::NAMED.map(|(name, _)| name).to_vec()));

impl WmTransport {
    /// By their names in scenarios.
    pub const NAMED: [(&'static str, WmTransport); 6] = [
        ("udp", WmTransport::Udp),
        ("tcp", WmTransport::Tcp),
        ("mms_udp", WmTransport::MmsUdp),
        ("mms_tcp", WmTransport::MmsTcp),
        ("http", WmTransport::Http),
        ("rollover", WmTransport::Rollover),
    ];

    /// Returns whether the flow begins with the RTSP connection; else the player opens its connections.
    pub fn begins_connected(self) -> bool {
        matches!(self, WmTransport::Udp | WmTransport::Tcp)
    }
}

settings! {
    /// The player's constants. Times in nanoseconds.
    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct PlayerSettings {
        /// Which player.
        pub kind: PlayerKind => Parameter::elsewhere,
        /// The carrier of the media.
        pub transport: WmTransport => Parameter::elsewhere,

        /// Time from the first request to the first of the media, by RTSP over UDP at least.
        /// Source: the thesis, section 4.1; why it takes so long is not known.
        pub silence: Duration => |p| p.most(60_000.0 * MS),
        /// Measures the link by three packets in a row before it sets anything up, over UDP.
        /// Source: the thesis, section 4.2; [MS-RTSP] section 3.1.5.8.
        pub packet_pair: bool,
        /// Waits this long for them; by RTSP with rollover half a round trip more.
        /// Source: [MS-RTSP] section 3.1.6.1.
        pub pair_wait: Duration => |p| p.least(1_000.0 * MS).most(30_000.0 * MS),
        /// Assumed rate of the link where it was not measured; on a connection it never is.
        /// Source: ours.
        pub preference_bps: u64 => |p| p.called("preference").least(10_000),
        /// Selects the highest rate of pictures that, with the sound, is at most this share of that.
        /// Source: the thesis, section 4.2, of profiles' rates; ours, as the encoded rate is less than a profile's.
        pub fit_share: f64 => |p| p.above(0),

        /// Asks for media at this share of the link's rate until it holds enough.
        /// Source: not known; fitted to the rates of 340 and 548 kbit/s at 725 kbit/s in the thesis, section 4.1.
        pub accelerated_share: f64 => |p| p.least(0),
        /// It does so where that is at least this many times the media's own rate, and not at all where it is not.
        /// Source: the thesis, section 4.1: two to four times the rate, and not at all of 548 kbit/s at 725 kbit/s.
        pub least_acceleration: f64 => |p| p.least(1),
        /// It holds enough with this much media, and plays.
        /// Source: not known; fitted to how long 340 kbit/s fills it in the thesis, section 4.1.
        pub buffered: Duration => |p| p.least(MS),
        /// After a halt it plays again with this much.
        /// Source: Windows Media Player SDK, its buffer's default.
        pub rebuffered: Duration => |p| p.least(MS),

        /// Over UDP, asks the server to send lost packets again.
        /// Source: [MS-RTSP] section 3.1.4.6.
        pub retransmission: bool,
        /// Reports a missing packet this long after it was missed.
        /// Source: ours.
        pub nack_wait: Duration,
        /// Time between two reports of one packet.
        /// Source: ours.
        pub nack_repeat: Duration => |p| p.least(MS),
        /// Number of reports in all.
        /// Source: ours.
        pub nack_tries: u32,
        /// Packets that one message reports missing at most.
        /// Source: [MS-RTSP] section 2.2.4.
        pub most_nacks: u32 => |p| p.least(1).most(32),
        /// Time between two messages.
        /// Source: ours.
        pub nack_interval: Duration => |p| p.least(MS),
        /// Reports missing packets only after a stretch of `calm` without loss, so that repair follows the congestion; the
        /// server then has to keep packets for longer (`resend_keep`).
        /// Source: ours; Hessler and Welzl, section 3.2, suppose that lost media was made up for after the congestion.
        pub nack_when_calm: bool,
        /// A packet that is missing for longer is given up.
        /// Source: ours, longer than a server keeps it.
        pub missing_kept: Duration => |p| p.least(1_000.0 * MS),
        /// A time of this length without a loss is calm, for `nack_when_calm` and `refill`.
        /// Source: ours.
        pub calm: Duration => |p| p.least(100.0 * MS),
        /// After a loss above `most_loss` in `quality_time`, and then calm, refills its buffer as at the start: asks
        /// for this multiple of the media's rate until `buffered` of media has arrived beyond the played part; 0 is
        /// never. By RTSP alone.
        /// Source: ours; Hessler and Welzl, section 3.2, saw a rate above any before once the congestion was over.
        pub refill: f64 => |p| p.least(0),

        /// Selects less when more is lost than `most_loss`.
        /// Source: the thesis, section 4.3.
        pub heed_loss: bool,
        /// It requests less when more than this share is lost while that is judged, packets that arrived again
        /// included.
        /// Source: the thesis, section 4.3: between 3 and 5 %.
        pub most_loss: f64 => |p| p.least(0).most(1),
        /// Packets that are missing in a longer run than this do not count there: they overflowed a queue. 0 counts all.
        /// Source: ours; the thesis, sections 4.1 and 4.3: bursts that lose a third are not thinned, 5 % lost singly are.
        pub most_run: u32,
        /// It requests less, too, when more than this share is lost in all while that is judged.
        /// Source: ours; it matters where `most_run` leaves packets out.
        pub most_run_loss: f64 => |p| p.least(0).most(1),
        /// It begins to judge this long after it asked for media, and reacts when its buffer is full.
        /// Source: the thesis, section 5: it responds if the loss is present at the start; fitted to loss that begins or
        /// ends 15 s after the start (section 4.3).
        pub judged_after: Duration,
        /// Loss is judged over this time.
        /// Source: not known; fitted to the differences between runs at 3 % in the thesis, section 4.3.
        pub judged_for: Duration => |p| p.least(100.0 * MS),
        /// Time between two such judgements; 0 is never.
        /// Source: the thesis, sections 4.3 and 5: it responds to nothing later.
        pub judged_again: Duration,
        /// Its reception quality covers this time.
        /// Source: Windows Media Player SDK, receptionQuality.
        pub quality_time: Duration => |p| p.least(100.0 * MS),
        /// For that quality a retransmitted packet that arrived is not lost.
        /// Source: ours; which of the two holds is not known.
        pub recovered_counts: bool,

        /// Stops with an error when it has starved for this time; 0 is never.
        /// Source: Hessler and Welzl, section 4.3, with a Helix server.
        pub starved_after: Duration,
        /// Starves through each second in which less than this share of the pictures due was whole, from the first picture on.
        /// With 0 any picture ends the starving, which then counts from the session's start on.
        /// Source: ours; with half of all packets lost some picture of one packet is always whole.
        pub starved_share: f64 => |p| p.least(0).most(1),
        /// Asks the server to pause when it has starved for this time, and waits for the error of `starved_after`; 0 is
        /// never.
        /// Source: ours; Hessler and Welzl, section 3.2, saw the rate fall to almost zero at 80 s, and the error at 110 s.
        pub starved_pause: Duration,
        /// A silence of this length ends the session.
        /// Source: ours.
        pub give_up_after: Duration => |p| p.least(1_000.0 * MS),

        /// With rollover, a connection not established in this time is given up for the next protocol.
        /// Source: Windows 2000's TCP: a SYN is repeated twice, and each is waited for twice as long as the one before, from
        /// 3 s on.
        pub connect_wait: Duration => |p| p.least(100.0 * MS).most(300_000.0 * MS),
        /// With rollover, a protocol is given up for the next after a silence of this length, or without media this
        /// long after the request.
        /// Source: ours; as long as packets that measure the link are waited for.
        pub media_wait: Duration => |p| p.least(100.0 * MS).most(300_000.0 * MS),
    }
}

impl PlayerSettings {
    /// Makes the constants of `kind`.
    pub fn of(kind: PlayerKind) -> Self {
        let ms = Duration::from_millis;
        let is_helix = kind == PlayerKind::Wmp9Helix;
        PlayerSettings {
            kind,
            transport: WmTransport::Udp,

            silence: ms(5_000),
            packet_pair: !is_helix,
            pair_wait: ms(10_000),
            preference_bps: 1_500_000,
            fit_share: 0.93,

            accelerated_share: if is_helix { 0.0 } else { 0.88 },
            least_acceleration: 2.0,
            buffered: ms(15_000),
            rebuffered: ms(5_000),

            retransmission: !is_helix,
            nack_wait: ms(100),
            nack_repeat: ms(1_500),
            nack_tries: 2,
            most_nacks: 32,
            nack_interval: ms(50),
            nack_when_calm: false,
            missing_kept: ms(30_000),
            calm: ms(5_000),
            refill: 0.0,

            heed_loss: !is_helix,
            most_loss: 0.035,
            most_run: 0,
            most_run_loss: 1.0,
            judged_after: ms(12_000),
            judged_for: ms(3_000),
            judged_again: Duration::ZERO,
            quality_time: ms(30_000),
            recovered_counts: true,

            starved_after: if is_helix { ms(110_000) } else { Duration::ZERO },
            starved_share: 0.0,
            starved_pause: Duration::ZERO,
            give_up_after: ms(60_000),

            connect_wait: ms(21_000),
            media_wait: ms(10_000),
        }
    }

    /// Refuses unplayable settings: returns the constant, the fault and the remedy.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        check_bounds(&Self::fields(), self)
    }
}
