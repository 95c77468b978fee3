//! One file of several rates out of several files: a server leaves streams out of it.

use super::fault::Problem;
use super::file::Asf;
use super::guid::Guid;
use super::header::{Header, MutualExclusion, OpaqueObject, StreamBitRate};
use super::headers::{
    ExtendedStreamProperties, FLAG_SEEKABLE, FileProperties, LeakyBucket, StreamProperties,
};
use super::object::MediaObject;
use super::packet::{DataPacket, MOST_PACKET_BYTES};
use super::packing::{LEAST_PACKET_BYTES, Load, bucket_ms, least_rate_bps, pack, send_times};
use super::write::{PacketSize, write_head, write_packet};

/// Streams that a file can have: numbers have 7 bits, and none is 0.
pub const MOST_STREAMS: usize = 127;
/// Units of 100 ns.
const UNITS_PER_MS: u64 = 10_000;

/// A file with its selected streams.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MultiplexInput<'a> {
    /// Its bytes.
    pub file: &'a [u8],
    /// The numbers of its streams that are taken, in this order; `None`: all of them, in the file's.
    pub streams: Option<Vec<u8>>,
}

/// How the file is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MultiplexSettings {
    /// The file's own name.
    pub id: Guid,
    /// When it was made, in units of 100 ns since 1601.
    pub created_100ns: u64,
    /// Bytes of each packet.
    pub packet_bytes: u32,
    /// How long a player buffers before it begins, in ms.
    pub preroll_ms: u32,
}

impl Default for MultiplexSettings {
    /// Packets that fill 1500 B of IPv4, UDP, RTP and its payload header with a time ([MS-RTSP] section 4.1), and ffmpeg's
    /// preroll.
    fn default() -> Self {
        MultiplexSettings { id: Guid::default(), created_100ns: 0, packet_bytes: 1444, preroll_ms: 3100 }
    }
}

/// Why there is no file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MultiplexError {
    /// An input that cannot be read, or ends before its media do.
    #[error("input {input}: {problem}")]
    Input {
        /// Which, counted from 0.
        input: usize,
        /// The fault in it.
        problem: Problem,
    },
    /// Media objects with missing parts.
    #[error("input {input}: parts are missing of {objects} media objects")]
    Incomplete {
        /// Which, counted from 0.
        input: usize,
        /// How many.
        objects: u64,
    },
    /// A stream that an input has not, or has nothing in.
    #[error("input {input}: no stream {stream} with media in it")]
    NoStream {
        /// Which, counted from 0.
        input: usize,
        /// The number.
        stream: u8,
    },
    /// No stream, or more than the numbers of a file.
    #[error("{0} streams instead of 1 to {MOST_STREAMS}")]
    Streams(usize),
    /// Packets that are too small or too large.
    #[error("packets of {0} B instead of {LEAST_PACKET_BYTES} to {MOST_PACKET_BYTES} B")]
    PacketBytes(u32),
    /// No rate is high enough for the preroll.
    #[error("input {input}, stream {stream}: with {preroll_ms} ms of preroll it comes too late at any rate")]
    Preroll {
        /// Which, counted from 0.
        input: usize,
        /// The number.
        stream: u8,
        /// The value in the settings.
        preroll_ms: u32,
    },
    /// The part in front of the packets cannot be written.
    #[error(transparent)]
    Head(#[from] Problem),
}

/// A stream of the file that is made.
struct Track<'a> {
    input: usize,
    /// Its number in the input.
    from: u8,
    properties: StreamProperties,
    objects: Vec<MediaObject<'a>>,
    /// How long the input plays, in ms.
    plays_ms: u64,
}

/// Makes one file with streams of all inputs, numbered from 1 in the order of the inputs.
///
/// Each packet has payloads of one stream, and of key frames alone or of others alone. A stream's packets are
/// sent one after another at its rate, each no earlier than its first media object begins and in time for it
/// to be presented, the preroll later; the rate is the stream's average, or the least sufficient one if that
/// is too low. All video streams exclude each other by bit rate, and all audio streams do too; audio media
/// objects all become key frames. Media objects without a byte are left out.
///
/// # Errors
///
/// See [`MultiplexError`].
pub fn multiplex(
    inputs: &[MultiplexInput<'_>],
    settings: &MultiplexSettings,
) -> Result<Vec<u8>, MultiplexError> {
    let MultiplexSettings { packet_bytes, preroll_ms, .. } = *settings;
    if !(LEAST_PACKET_BYTES..=MOST_PACKET_BYTES).contains(&packet_bytes) {
        return Err(MultiplexError::PacketBytes(packet_bytes));
    }
    let (mut tracks, mut others) = (Vec::new(), Vec::new());
    for (place, input) in inputs.iter().enumerate() {
        take(place, input, preroll_ms, &mut tracks, &mut others)?;
    }
    if tracks.is_empty() || tracks.len() > MOST_STREAMS {
        return Err(MultiplexError::Streams(tracks.len()));
    }
    let mut header = Header { others, ..Header::default() };
    let (mut packets, mut ends_ms) = (Vec::new(), 0);
    for (number, track) in (1..).zip(&tracks) {
        let own = pack(&track.objects, 0, number, packet_bytes as usize);
        ends_ms = schedule(track, number, preroll_ms, own, &mut packets, &mut header)?.max(ends_ms);
    }
    // Those of a stream keep their order.
    packets.sort_by_key(|packet: &DataPacket<'_>| packet.send_ms);
    exclude(&mut header);
    let plays_ms = tracks.iter().map(Track::plays_ms).max().unwrap_or(0) + u64::from(preroll_ms);
    header.file = FileProperties {
        id: settings.id,
        file_bytes: 0,
        created_100ns: settings.created_100ns,
        packets: packets.len() as u64,
        play_100ns: plays_ms.saturating_mul(UNITS_PER_MS),
        send_100ns: u64::from(ends_ms) * UNITS_PER_MS,
        preroll_ms: preroll_ms.into(),
        flags: FLAG_SEEKABLE,
        min_packet_bytes: packet_bytes,
        max_packet_bytes: packet_bytes,
        // Section 3.2: that of all streams together.
        max_bit_rate_bps: header
            .bit_rates
            .iter()
            .fold(0, |sum: u32, rate| sum.saturating_add(rate.average_bps)),
    };
    let media_bytes = packets.len() * packet_bytes as usize;
    header.file.file_bytes = (write_head(&header)?.len() + media_bytes) as u64;
    let mut file = write_head(&header)?;
    file.reserve_exact(media_bytes);
    for packet in &packets {
        file.extend(write_packet(packet, PacketSize::Fixed(packet_bytes))?);
    }
    Ok(file)
}

/// Adds the streams of an input, and from the first input the description of its content.
fn take<'a>(
    place: usize,
    input: &MultiplexInput<'a>,
    preroll_ms: u32,
    tracks: &mut Vec<Track<'a>>,
    others: &mut Vec<OpaqueObject>,
) -> Result<(), MultiplexError> {
    let wrong = |problem| MultiplexError::Input { input: place, problem };
    let asf = Asf::read(input.file).map_err(wrong)?;
    if let Some(cut) = asf.cut {
        return Err(wrong(cut));
    }
    let read = asf.objects(input.file).map_err(wrong)?;
    if read.incomplete > 0 {
        return Err(MultiplexError::Incomplete { input: place, objects: read.incomplete });
    }
    let before_ms = asf.header.file.preroll_ms.min(u32::MAX.into()) as u32;
    let all = || asf.header.all_streams().map(|stream| stream.number).collect();
    for from in input.streams.clone().unwrap_or_else(all) {
        let of = |object: &&MediaObject<'_>| object.stream == from && !object.data.is_empty();
        // A player can begin with each media object of sound; ffmpeg does not mark them.
        let is_sound = asf.header.stream(from).is_some_and(|stream| stream.kind == Guid::AUDIO);
        let rebased = |object: &MediaObject<'a>| {
            let begins_ms = object.presentation_ms.saturating_sub(before_ms);
            let (presentation_ms, is_key) = (begins_ms.saturating_add(preroll_ms), object.is_key || is_sound);
            MediaObject { presentation_ms, is_key, ..object.clone() }
        };
        let objects: Vec<_> = read.objects.iter().filter(of).map(rebased).collect();
        let properties = asf.header.stream(from).filter(|_| !objects.is_empty()).cloned();
        let properties = properties.ok_or(MultiplexError::NoStream { input: place, stream: from })?;
        let plays_ms = (asf.header.file.play_100ns / UNITS_PER_MS).saturating_sub(before_ms.into());
        tracks.push(Track { input: place, from, properties, objects, plays_ms });
    }
    if place == 0 {
        let description = asf.header.others.into_iter().find(|other| other.id == Guid::CONTENT_DESCRIPTION);
        others.extend(description);
    }
    Ok(())
}

impl Track<'_> {
    /// Returns the time from its first media object to its last, in ms.
    fn span_ms(&self) -> u64 {
        let times = self.objects.iter().map(|object| object.presentation_ms);
        (times.clone().max().unwrap_or(0) - times.min().unwrap_or(0)).into()
    }

    /// Returns how long a media object is played on average, in units of 100 ns; 0 of a single one.
    fn frame_100ns(&self) -> u64 {
        (self.span_ms() * UNITS_PER_MS).checked_div(self.objects.len() as u64 - 1).unwrap_or(0)
    }

    /// Returns how long it plays, in ms: the last media object as long as the others on average.
    fn plays_ms(&self) -> u64 {
        let own = self.span_ms() + self.frame_100ns() / UNITS_PER_MS;
        let own = if self.objects.len() > 1 { own } else { 0 };
        own.max(self.plays_ms).max(1)
    }

    /// Returns its own duration, for its rate.
    fn own_ms(&self) -> u64 {
        match self.objects.len() {
            1 => self.plays_ms.max(1),
            _ => (self.span_ms() + self.frame_100ns() / UNITS_PER_MS).max(1),
        }
    }
}

/// Sets the send time of each packet of a stream, describes the stream in `header`, and returns the time at
/// which the last one has been sent, in ms.
fn schedule<'a>(
    track: &Track<'_>,
    number: u8,
    preroll_ms: u32,
    own: Vec<DataPacket<'a>>,
    packets: &mut Vec<DataPacket<'a>>,
    header: &mut Header,
) -> Result<u32, MultiplexError> {
    let loads = Load::of(&own, preroll_ms);
    let total = Load::bytes(&loads);
    let average_bps = (total * 8000).div_ceil(track.own_ms()).clamp(1, u32::MAX.into()) as u32;
    let late = MultiplexError::Preroll { input: track.input, stream: track.from, preroll_ms };
    let rate_bps = least_rate_bps(&loads, average_bps).ok_or(late)?;
    let (times, ends_ms) = send_times(&loads, rate_bps).ok_or(late)?;
    packets.extend(own.into_iter().zip(times).map(|(packet, send_ms)| DataPacket { send_ms, ..packet }));

    // Media drain from the bucket, without packet overhead.
    let media: u64 = track.objects.iter().map(|object| object.data.len() as u64).sum();
    let media_bps = (u128::from(rate_bps) * u128::from(media)).div_ceil(total.into()) as u32;
    let buffer_ms = bucket_ms(&track.objects, media_bps);
    let bucket = LeakyBucket { rate_bps: media_bps, buffer_ms, initial_ms: 0 };
    header.streams.push(StreamProperties { number, ..track.properties.clone() });
    header.bit_rates.push(StreamBitRate { stream: number, average_bps });
    header.extended.push(ExtendedStreamProperties {
        number,
        average: bucket,
        peak: bucket,
        max_object_bytes: track.objects.iter().map(|object| object.data.len() as u32).max().unwrap_or(0),
        // It can be sought in.
        flags: 2,
        frame_100ns: track.frame_100ns(),
        ..ExtendedStreamProperties::default()
    });
    Ok(ends_ms)
}

/// Declares which streams exclude each other.
fn exclude(header: &mut Header) {
    for kind in [Guid::VIDEO, Guid::AUDIO] {
        let of_kind = header.streams.iter().filter(|stream| stream.kind == kind);
        let streams: Vec<u8> = of_kind.map(|stream| stream.number).collect();
        if streams.len() > 1 {
            // The plain object occurs once at most (section 3.8).
            let (kind, is_advanced) = (Guid::EXCLUSIVE_BY_BIT_RATE, !header.exclusions.is_empty());
            header.exclusions.push(MutualExclusion { kind, is_advanced, streams });
        }
    }
}
