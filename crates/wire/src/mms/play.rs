//! Messages that start, change and end playing.

use streamgauge_base::Duration;

use super::fault::{Fault, Problem};
use super::fields::{Fields, Out, seconds};

/// Numbers of packets and bytes without meaning.
const UNSET: [u32; 2] = [0, u32::MAX];
/// The bit of an end that counts from where play begins.
const FROM_START: u32 = 1 << 31;

/// Where play is to begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// At this time of the content.
    Time(Duration),
    /// At this byte of the ASF file, neither 0 nor 2³² - 1.
    Byte(u32),
    /// At this ASF data packet, neither 0 nor 2³² - 1.
    Packet(u32),
    /// Where the server is.
    Unset,
}

impl Position {
    fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let at = fields.at();
        let position = fields.f64()?;
        let (byte, packet) = (fields.u32()?, fields.u32()?);
        if position != f64::MAX {
            return seconds(position).map(Position::Time).ok_or_else(|| Fault::Time.at(at));
        }
        Ok(match (UNSET.contains(&byte), UNSET.contains(&packet)) {
            (false, _) => Position::Byte(byte),
            (true, false) => Position::Packet(packet),
            (true, true) => Position::Unset,
        })
    }

    fn write(self, out: &mut Out) {
        match self {
            Position::Time(time) => out.seconds(time).u32(u32::MAX).u32(u32::MAX),
            Position::Byte(byte) => out.f64(f64::MAX).u32(byte).u32(u32::MAX),
            Position::Packet(packet) => out.f64(f64::MAX).u32(u32::MAX).u32(packet),
            Position::Unset => out.f64(f64::MAX).u32(u32::MAX).u32(u32::MAX),
        };
    }
}

/// Where play is to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stop {
    /// In ms, below 2³¹. From 0 of the content it is not 0.
    pub ms: u32,
    /// From where play begins; else from the content's start.
    pub from_start: bool,
}

/// `StartPlaying`: play at the normal rate ([MS-MMSP] section 2.2.4.25).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StartPlaying {
    /// [`FileReport::file_id`](super::FileReport::file_id).
    pub file_id: u32,
    /// From where.
    pub from: Position,
    /// To where; `None` for the end.
    pub stop: Option<Stop>,
    /// 1 to 254; the media's packets have it.
    pub incarnation: u32,
    /// `dwAccelBandwidth` in bit/s and `dwAccelDuration` in ms: send this much media at this rate at first.
    pub acceleration: Option<(u32, u32)>,
    /// `dwLinkBandwidth`: the rate of the player's connection, in bit/s. Not written without an acceleration.
    pub link_bps: Option<u32>,
}

impl StartPlaying {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        let file_id = fields.u32()?;
        fields.u32()?;
        let from = Position::read(fields)?;
        let stop = match fields.u32()? {
            0 => None,
            stop => Some(Stop { ms: stop & !FROM_START, from_start: stop & FROM_START != 0 }),
        };
        let incarnation = fields.u32()?;
        // Old players omit the rest: only the length reveals its presence.
        let acceleration = if fields.left() >= 8 { Some((fields.u32()?, fields.u32()?)) } else { None };
        let link_bps = match acceleration {
            Some(_) if fields.left() >= 4 => Some(fields.u32()?),
            _ => None,
        };
        Ok(StartPlaying { file_id, from, stop, incarnation, acceleration, link_bps })
    }

    pub(super) fn write(&self, out: &mut Out) {
        out.u32(self.file_id).u32(0);
        self.from.write(out);
        let stop =
            self.stop.map_or(0, |stop| stop.ms & !FROM_START | if stop.from_start { FROM_START } else { 0 });
        out.u32(stop).u32(self.incarnation);
        if let Some((bps, ms)) = self.acceleration {
            out.u32(bps).u32(ms);
            self.link_bps.iter().for_each(|bps| {
                out.u32(*bps);
            });
        }
    }
}

/// Reads `StartStriding` behind its MID: the file, its position, incarnation and rate ([MS-MMSP] section
/// 2.2.4.26).
pub(super) fn read_striding(fields: &mut Fields<'_>) -> Result<(u32, Position, u32, f64), Problem> {
    let file_id = fields.u32()?;
    fields.u32()?;
    let from = Position::read(fields)?;
    fields.u32()?;
    let incarnation = fields.u32()?;
    let at = fields.at();
    let rate = fields.f64()?;
    if rate == 0.0 || !(-5.0..=5.0).contains(&rate) {
        return Err(Fault::Rate.at(at));
    }
    Ok((file_id, from, incarnation, rate))
}

/// Writes the fields of [`read_striding`].
pub(super) fn write_striding(file_id: u32, from: Position, incarnation: u32, rate: f64, out: &mut Out) {
    out.u32(file_id).u32(0);
    from.write(out);
    out.u32(0).u32(incarnation).f64(rate);
}

/// How much of a stream is sent: Windows Media's thinning ([MS-MMSP] section 2.2.4.28.1, [MS-WMSP] section 2.2.1.4.27,
/// [MS-RTSP] section 2.2.7.10).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum ThinningLevel {
    /// 0: everything.
    #[default]
    All,
    /// 1: key frames alone.
    KeyFrames,
    /// 2: nothing.
    Nothing,
}

impl ThinningLevel {
    /// Returns `None` above 2.
    pub fn new(level: u16) -> Option<Self> {
        [ThinningLevel::All, ThinningLevel::KeyFrames, ThinningLevel::Nothing]
            .get(usize::from(level))
            .copied()
    }

    /// Returns 0 to 2.
    pub fn get(self) -> u16 {
        self as u16
    }
}

/// One stream in another's place, or with another thinning: an entry of `StreamSwitch` ([MS-MMSP] section 2.2.4.28.1) and of
/// `stream-switch-entry` ([MS-WMSP] section 2.2.1.4.27).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamSwitch {
    /// The ASF stream that is no longer to be sent; `None` if the other replaces none. Below 65535.
    pub from: Option<u16>,
    /// The stream to be sent; `None` if there is no replacement.
    pub to: Option<u16>,
    /// How much of it.
    pub level: ThinningLevel,
}

impl StreamSwitch {
    /// The value for no stream.
    pub const NONE: u16 = u16::MAX;

    /// Sends this stream beside the others.
    pub fn on(stream: u16) -> Self {
        StreamSwitch { to: Some(stream), ..StreamSwitch::default() }
    }

    /// Returns the streams' numbers, [`NONE`](Self::NONE) for none.
    pub fn numbers(&self) -> [u16; 2] {
        [self.from, self.to].map(|stream| stream.unwrap_or(Self::NONE))
    }

    /// Returns the stream of a number.
    pub fn stream(number: u16) -> Option<u16> {
        Some(number).filter(|number| *number != Self::NONE)
    }

    pub(super) fn read_all(fields: &mut Fields<'_>) -> Result<Vec<Self>, Problem> {
        let count = fields.u32()?;
        let mut entries = fields.part(6 * count as usize)?;
        let one = |_| {
            let (from, to) = (entries.u16()?, entries.u16()?);
            let at = entries.at();
            let level = entries.u16()?;
            let level = ThinningLevel::new(level).ok_or_else(|| Fault::Thinning(level).at(at))?;
            Ok(StreamSwitch { from: Self::stream(from), to: Self::stream(to), level })
        };
        (0..count).map(one).collect()
    }

    pub(super) fn write_all(switches: &[Self], out: &mut Out) {
        out.u32(switches.len() as u32);
        for switch in switches {
            let [from, to] = switch.numbers();
            out.u16(from).u16(to).u16(switch.level.get());
        }
    }
}

/// `ReportStreamChange`: a playlist's next entry ([MS-MMSP] section 2.2.4.12).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamChange {
    /// The largest ASF data packet.
    pub packet_bytes: u32,
    /// Bytes of the ASF file's header.
    pub header_bytes: u32,
    /// The sum of all streams' maxima.
    pub bit_rate_bps: u32,
}

impl StreamChange {
    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Problem> {
        // A result and an incarnation, which are always the same.
        fields.bytes(8)?;
        let (packet_bytes, header_bytes, bit_rate_bps) = (fields.u32()?, fields.u32()?, fields.u32()?);
        Ok(StreamChange { packet_bytes, header_bytes, bit_rate_bps })
    }

    pub(super) fn write(&self, out: &mut Out) {
        out.u32(0).u32(0xff).u32(self.packet_bytes).u32(self.header_bytes).u32(self.bit_rate_bps).u32(0);
    }
}

/// `ReportEndOfStream`: nothing more follows ([MS-MMSP] section 2.2.4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndOfStream {
    /// An HRESULT: [`DONE`](Self::DONE), [`MORE`](Self::MORE), or an error ([MS-ERREF]).
    pub result: u32,
    /// Incarnation of the played or stopped stream.
    pub incarnation: u32,
}

impl EndOfStream {
    /// The content is at its end, or was stopped.
    pub const DONE: u32 = 0;
    /// A [`StreamChange`] follows.
    pub const MORE: u32 = 1;
}
