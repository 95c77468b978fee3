//! The end of the media, with servers that announce it in one of several ways, or hardly at all, and no goodbye.

use rtp_types::RtpPacketBuilder;
use streamgauge_wire::rtsp::{Method, Request, interleave};

use super::*;

const VIDEO_TICKS: u32 = 90_000;
const SOUND_TICKS: u32 = 48_000;

/// A server of frames and blocks of a small packet each, which a send buffer holds all of, that sends its data ahead of
/// its time, in order, and then nothing: no goodbye.
struct Mute {
    sdp: String,
    range: &'static str,
    tcp: bool,
    reader: Reader,
    /// Time of transmission in ms after PLAY, the track, the RTP timestamp; the last first.
    left: Vec<(u64, u8, u32)>,
    numbers: [u16; 2],
    played: Option<Instant>,
}

impl Mute {
    fn answer(&mut self, request: &Request<Vec<u8>>) -> String {
        let (headers, body) = match request.method() {
            Method::Describe => ("Content-Type: application/sdp\r\n".into(), self.sdp.as_str()),
            Method::Setup => {
                let uri = request.request_uri().unwrap().to_string();
                let rtp = if uri.ends_with("trackID=2") { 2 } else { 0 };
                let transport = if self.tcp {
                    format!("RTP/AVP/TCP;unicast;interleaved={}-{}", rtp, rtp + 1)
                } else {
                    let (client, server) = (6970 + rtp, 6970 + rtp);
                    format!(
                        "RTP/AVP;unicast;client_port={client}-{};server_port={server}-{}",
                        client + 1,
                        server + 1
                    )
                };
                (format!("Session: abc\r\nTransport: {transport}\r\n"), "")
            }
            Method::Play => {
                let info = "RTP-Info: url=rtsp://server/a/trackID=1;seq=0;rtptime=0,\
                            url=rtsp://server/a/trackID=2;seq=0;rtptime=0\r\n";
                (format!("Session: abc\r\nRange: {}\r\n{info}", self.range), "")
            }
            _ => ("Session: abc\r\n".into(), ""),
        };
        let cseq = request.header(&streamgauge_wire::rtsp::names::CSEQ).unwrap().as_str().to_owned();
        format!("RTSP/1.0 200 OK\r\nCSeq: {cseq}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
    }
}

impl App for Mute {
    fn handle(&mut self, now: Instant, input: Input<'_>, io: &mut dyn Io) {
        if let Input::Readable(RTSP) = input {
            while let Some(chunk) = io.read(RTSP, usize::MAX) {
                self.reader.push(chunk);
            }
            let items: Vec<_> = self.reader.by_ref().collect();
            for item in items {
                let Ok(RtspItem::Request(request)) = item else { continue };
                let answer = self.answer(&request);
                io.write(RTSP, Chunk::bytes(answer.into_bytes()));
                if *request.method() == Method::Play {
                    self.played = Some(now);
                }
            }
        }
        while self.next_at().is_some_and(|at| at <= now) {
            let Some((_, track, timestamp)) = self.left.pop() else { break };
            let number = &mut self.numbers[usize::from(track)];
            let packet = RtpPacketBuilder::<&[u8], &[u8]>::new()
                .payload_type(96 + track)
                .marker_bit(true)
                .sequence_number(*number)
                .timestamp(timestamp)
                .ssrc(9 + u32::from(track))
                .payload(&[0, 0, 1, 0xb6]);
            *number += 1;
            let packet = Chunk::with_filler(packet.write_vec().unwrap(), 40);
            if self.tcp {
                io.write(RTSP, interleave(2 * track, &packet));
            } else {
                io.send(ChannelId(1 + 2 * u32::from(track)), packet);
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next_at()
    }

    fn poll_event(&mut self) -> Option<Event> {
        None
    }
}

impl Mute {
    fn next_at(&self) -> Option<Instant> {
        Some(self.played? + Duration::from_millis(self.left.last()?.0))
    }
}

/// The parts of the description and of PLAY's answer that announce the end.
#[derive(Clone, Copy)]
struct Said {
    range: &'static str,
    frame_rate: bool,
    /// Each track has a range of its own.
    ranges: bool,
    /// In ms, 0 for none.
    sound: u64,
    /// There is a track that the player cannot play, too.
    other: bool,
}

/// 12 s of pictures, 15 in a second, with times in 1/600 s as a QuickTime movie has them.
const PICTURES: u32 = 180;

fn played(said: Said, transport: MediaTransport, pipe: Pipe) -> Pair {
    let rate = if said.frame_rate { "a=framerate:15\r\n" } else { "" };
    let own = |range: &str| if said.ranges { format!("a=range:npt=0-{range}\r\n") } else { String::new() };
    let mut sdp = format!(
        "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=x\r\nt=0 0\r\na=range:{}\r\nm=video 0 RTP/AVP 96\r\n\
         a=rtpmap:96 MP4V-ES/{VIDEO_TICKS}\r\n{rate}{}a=control:trackID=1\r\n",
        said.range,
        own("12.0")
    );
    let mut left: Vec<(u64, u8, u32)> =
        (0..PICTURES).map(|n| (u64::from(n) * 1000 / 15 / 2, 0, n * 600 / 15 * 150 + n % 2 * 10)).collect();
    if said.sound > 0 {
        sdp += &format!(
            "m=audio 0 RTP/AVP 97\r\na=rtpmap:97 X-OTHER/{SOUND_TICKS}\r\n{}a=control:trackID=2\r\n",
            own(&format!("{}.{:03}", said.sound / 1000, said.sound % 1000))
        );
        left.extend((0..said.sound / 20).map(|n| (n * 10, 1, n as u32 * SOUND_TICKS / 50)));
    }
    if said.other {
        sdp += "m=application 0 RTP/AVP 98\r\na=rtpmap:98 X-HINTS/1000\r\na=control:trackID=3\r\n";
    }
    left.sort_unstable_by_key(|&(at, track, _)| std::cmp::Reverse((at, track)));
    let tcp = transport == MediaTransport::Tcp;
    let (reader, played) = (Reader::default(), None);
    let server = Mute { sdp, range: said.range, tcp, reader, left, numbers: [0; 2], played };
    let player = PlayerSettings { transport, ..PlayerSettings::of(PlayerKind::Quicktime) };
    let player = DarwinPlayer::new(player, "rtsp://server/a", "video", 1);
    let mut pair = Pair::new(Box::new(server), Box::new(player), pipe);
    pair.run(Instant::from_nanos(90_000_000_000));
    pair
}

/// The clock never stopped, each picture was shown once, and the session ended when the media did.
fn plays_to_its_end(pair: &Pair, end_s: f64) {
    assert_eq!(named(pair, "stall").len(), 0, "{:?}", named(pair, "stall"));
    assert_eq!(named(pair, "frame_incomplete").len(), 0, "{:?}", named(pair, "frame_incomplete"));
    assert_eq!(named(pair, "frame_shown").len(), PICTURES as usize);
    let start = named(pair, "playout_start")[0].at;
    let ended_s = (named(pair, MEDIA_END)[0].at - start).as_secs_f64();
    assert!((11.9..end_s + 1.1).contains(&ended_s), "ended {ended_s} s after play began");
    assert_eq!(end(pair).1, "all frames were shown or given up");
}

#[test]
fn without_a_frame_rate_and_a_goodbye_nothing_is_waited_for_behind_the_last_picture() {
    for (range, sound) in
        [("npt=0-12.0", 0), ("npt=0-12.00200", 0), ("npt=0-12.3", 12_300), ("npt=0-12.0", 11_500)]
    {
        for ranges in [false, true] {
            let said = Said { range, frame_rate: false, ranges, sound, other: false };
            for transport in [MediaTransport::Tcp, MediaTransport::Udp] {
                plays_to_its_end(&played(said, transport, pipe()), 12.3);
            }
        }
    }
}

#[test]
fn sound_that_outlasts_the_pictures_makes_no_picture() {
    for (range, sound) in [("npt=0-12.1", 12_100), ("npt=0-12.5", 12_500)] {
        for ranges in [false, true] {
            let said = Said { range, frame_rate: true, ranges, sound, other: false };
            for transport in [MediaTransport::Tcp, MediaTransport::Udp] {
                plays_to_its_end(&played(said, transport, pipe()), 12.5);
            }
        }
    }
}

#[test]
fn sound_that_outlasts_the_pictures_by_far_is_played_without_a_stall() {
    for frame_rate in [false, true] {
        for ranges in [false, true] {
            let said = Said { range: "npt=0-15.0", frame_rate, ranges, sound: 15_000, other: false };
            for transport in [MediaTransport::Tcp, MediaTransport::Udp] {
                plays_to_its_end(&played(said, transport, pipe()), 15.0);
            }
        }
    }
}

#[test]
fn sound_that_outlasts_the_pictures_and_then_does_not_come_is_a_stall() {
    // With less than a second of sound behind the last picture, and with more.
    for from_ms in [6_200, 6_800] {
        let said = Said { range: "npt=0-15.0", frame_rate: true, ranges: false, sound: 15_000, other: false };
        let outage = (Duration::from_millis(from_ms), Duration::from_secs(20));
        let held = played(said, MediaTransport::Tcp, Pipe { outage, ..pipe() });
        assert_eq!((named(&held, "stall").len(), named(&held, "resume").len()), (1, 1), "{from_ms} ms");
        assert_eq!(named(&held, "frame_shown").len(), PICTURES as usize);
        assert_eq!(named(&held, "frame_incomplete").len(), 0);
    }
}

#[test]
fn a_track_that_is_not_played_may_be_what_lasts_longest() {
    let said = Said { range: "npt=0-12.5", frame_rate: true, ranges: false, sound: 0, other: true };
    for transport in [MediaTransport::Tcp, MediaTransport::Udp] {
        plays_to_its_end(&played(said, transport, pipe()), 12.5);
    }
}

#[test]
fn pictures_lost_at_the_end_are_counted_where_their_end_is_known() {
    let alone = Said { range: "npt=0-12.0", frame_rate: true, ranges: false, sound: 0, other: false };
    let last_two = |n| n >= u64::from(PICTURES) - 2;
    let lost = played(alone, MediaTransport::Udp, Pipe { drop: last_two, ..pipe() });
    assert_eq!(named(&lost, "frame_incomplete").len(), 2);
    // In the last second, with the sound that falls into it.
    let beside_sound = Said { range: "npt=0-12.5", ranges: true, sound: 12_500, ..alone };
    let lost =
        played(beside_sound, MediaTransport::Udp, Pipe { drop: |n| (760..790).contains(&n), ..pipe() });
    let incomplete = named(&lost, "frame_incomplete").len();
    assert!(incomplete > 2);
    assert_eq!(named(&lost, "frame_shown").len() + incomplete, PICTURES as usize);
}

#[test]
fn a_stream_that_stops_before_its_end_stops_the_clock_and_nothing_is_forgotten() {
    for (from_s, sound) in [(2, 0), (2, 12_500), (5, 0), (5, 12_500)] {
        let said = Said { range: "npt=0-12.5", frame_rate: false, ranges: false, sound, other: false };
        let outage = (Duration::from_secs(from_s), Duration::from_secs(15));
        let held = played(said, MediaTransport::Tcp, Pipe { outage, ..pipe() });
        assert_eq!((named(&held, "stall").len(), named(&held, "resume").len()), (1, 1), "{from_s} s");
        assert_eq!(named(&held, "frame_shown").len(), PICTURES as usize);
    }
}
