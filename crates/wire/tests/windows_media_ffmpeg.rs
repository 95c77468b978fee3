//! FFmpeg plays the media in our messages, over MMS and over HTTP, and every packet of media is the file's.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use streamgauge_base::{Chunk, Duration};
use streamgauge_wire::Body;
use streamgauge_wire::http::{self, HttpItem, Response};
use streamgauge_wire::mms::{
    ConnectedEx, DataPacket, EndOfStream, FileReport, FunnelReport, MmsItem, MmsMessage, PacketPairMode,
    Reader, TcpHeader, attributes, data_flags, write,
};
use streamgauge_wire::wmsp::{
    ContentFeature, PacketContent, Pragmas, RequestKind, WmspPacket, media_types, reasons,
};

/// An ASF file: its header, with the 50 B before the first packet, and its packets.
#[derive(Clone)]
struct Film {
    header: Vec<u8>,
    packets: Vec<Vec<u8>>,
    packet_bytes: usize,
}

/// The File Properties Object's GUID, and where it has the largest packet (ASF specification section 3.2).
const FILE_PROPERTIES: [u8; 16] =
    [0xa1, 0xdc, 0xab, 0x8c, 0x47, 0xa9, 0xcf, 0x11, 0x8e, 0xe4, 0, 0xc0, 0x0c, 0x20, 0x53, 0x65];
const MOST_PACKET_AT: usize = 96;
/// Bytes of the Data Object before its packets (section 5.1).
const DATA_OBJECT_BYTES: usize = 50;

impl Film {
    fn of(bytes: &[u8]) -> Self {
        let header_object = u64::from_le_bytes(*bytes[16..].first_chunk().unwrap()) as usize;
        let (header, packets) = bytes.split_at(header_object + DATA_OBJECT_BYTES);
        let at = header.windows(16).position(|guid| guid == FILE_PROPERTIES).unwrap() + MOST_PACKET_AT;
        let packet_bytes = u32::from_le_bytes(*header[at..].first_chunk().unwrap()) as usize;
        let count = u64::from_le_bytes(*header[header_object + 40..].first_chunk().unwrap()) as usize;
        let packets = packets.chunks_exact(packet_bytes).take(count).map(<[u8]>::to_vec).collect();
        Film { header: header.into(), packets, packet_bytes }
    }
}

/// A program's output, or `None` where it is not installed.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    // A program that hangs is ended.
    let Ok(output) = Command::new("timeout").args(["-s", "KILL", "20", program]).args(arguments).output()
    else {
        eprintln!("{program} is not installed: not tested");
        return None;
    };
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Pictures and sound of two seconds, as Windows Media 8 has them.
fn encoded(folder: &Path) -> Option<PathBuf> {
    let file = folder.join("film.asf");
    let sources = "testsrc=size=160x120:rate=10:duration=2[out0];sine=frequency=440:duration=2[out1]";
    let codecs = ["-c:v", "wmv2", "-b:v", "100k", "-c:a", "wmav2", "-b:a", "32k", "-packet_size", "1444"];
    let arguments = [&["-y", "-f", "lavfi", "-i", sources][..], &codecs, &[file.to_str().unwrap()]].concat();
    output("ffmpeg", &arguments).map(|_| file)
}

/// The digests of the packets of all streams that begin in the first 1.5 s: at the end of a stream of MMS FFmpeg 5.1 reads on
/// for ever.
fn digests(url: &str) -> Option<Vec<String>> {
    let arguments = ["-v", "error", "-t", "1.5", "-i", url, "-map", "0", "-c", "copy", "-f", "framemd5", "-"];
    let text = output("ffmpeg", &arguments)?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let digest = |line: &str| {
        let fields: Vec<_> = line.split(',').map(str::trim).collect();
        format!("{} {} {}", fields[0], fields[4], fields[5])
    };
    let mut digests: Vec<_> = lines.map(digest).collect();
    // Streams may be mixed otherwise.
    digests.sort_by_key(|digest| digest.as_bytes()[0]);
    Some(digests)
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("streamgauge-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn real(chunk: &Chunk) -> &[u8] {
    assert_eq!(chunk.head().len(), chunk.len(), "the file's bytes are real");
    chunk.head()
}

/// Serves one player of MMS over TCP; returns its messages.
fn serve_mms(mut connection: TcpStream, film: &Film) -> Vec<MmsMessage> {
    let mut reader = Reader::of_requests();
    let (mut said, mut sequence, mut buffer) = (Vec::new(), 0, [0; 4096]);
    loop {
        let Ok(bytes @ 1..) = connection.read(&mut buffer) else { return said };
        reader.push(Chunk::bytes(&buffer[..bytes]));
        for item in reader.by_ref() {
            let MmsItem::Message(message) = item.expect("FFmpeg's messages are MMS") else { unreachable!() };
            for packet in answer(&message, film, &mut sequence) {
                if connection.write_all(&packet).is_err() {
                    return said;
                }
            }
            said.push(message);
        }
    }
}

fn answer(message: &MmsMessage, film: &Film, sequence: &mut u16) -> Vec<Vec<u8>> {
    let mut say = |message: MmsMessage| {
        let header = TcpHeader { sequence: *sequence, time_sent_ms: 0 };
        *sequence += 1;
        write(header, &[message])
    };
    let packet_pair = PacketPairMode::DISABLED;
    match message {
        MmsMessage::Connect(_) => vec![say(MmsMessage::ReportConnectedEx(ConnectedEx {
            result: 0,
            packet_pair,
            server_version: "9.0.0.3372".into(),
            player_version: String::new(),
            player_url: String::new(),
            authentication: String::new(),
        }))],
        MmsMessage::FunnelInfo(_) => {
            let report = FunnelReport { result: 0, packet_pair, client_id: 5, random: Vec::new() };
            vec![say(MmsMessage::ReportFunnelInfo(report))]
        }
        MmsMessage::ConnectFunnel(_) => vec![say(MmsMessage::ReportConnectedFunnel)],
        MmsMessage::OpenFile(file) => vec![say(MmsMessage::ReportOpenFile(FileReport {
            result: 0,
            incarnation: file.incarnation,
            file_id: 1,
            attributes: attributes::CAN_SEEK,
            duration: Duration::from_secs(2),
            packet_bytes: film.packet_bytes as u32,
            packets: film.packets.len() as u64,
            bit_rate_bps: 132_000,
            header_bytes: film.header.len() as u32,
        }))],
        MmsMessage::ReadBlock(block) => {
            let header = DataPacket {
                location: 0,
                incarnation: block.incarnation as u8,
                flags: data_flags::WHOLE,
                payload: Body::from(&film.header[..]),
            };
            let report = MmsMessage::ReportReadBlock { result: 0, incarnation: block.incarnation };
            vec![say(report), real(&header.write()).to_vec()]
        }
        MmsMessage::StreamSwitch(_) => vec![say(MmsMessage::ReportStreamSwitch(0))],
        MmsMessage::StartPlaying(start) => {
            let incarnation = start.incarnation;
            let mut packets = vec![say(MmsMessage::ReportStartedPlaying {
                result: 0,
                incarnation,
                file_id: start.file_id,
            })];
            packets.extend((0u32..).zip(&film.packets).map(|(location, packet)| {
                let payload = Body::from(&packet[..]);
                let flags = location as u8;
                let data = DataPacket { location, incarnation: incarnation as u8, flags, payload };
                real(&data.write()).to_vec()
            }));
            packets.push(say(MmsMessage::ReportEndOfStream(EndOfStream {
                result: EndOfStream::DONE,
                incarnation,
            })));
            packets
        }
        _ => Vec::new(),
    }
}

#[test]
fn ffmpeg_plays_mms_over_tcp() {
    let folder = folder("mmst");
    let Some(file) = encoded(&folder) else { return };
    let film = Film::of(&std::fs::read(&file).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || serve_mms(listener.accept().unwrap().0, &film));
    let played = digests(&format!("mmst://127.0.0.1:{port}/media/film.asf")).unwrap();
    assert!(played.len() > 30, "{}", played.len());
    assert_eq!(played, digests(file.to_str().unwrap()).unwrap());
    let said = server.join().unwrap();
    let opened = said.iter().find_map(|message| match message {
        MmsMessage::OpenFile(file) => Some(file.name.as_str()),
        _ => None,
    });
    assert_eq!(opened, Some("media/film.asf"));
    let funnel =
        said.iter().any(|message| matches!(message, MmsMessage::ConnectFunnel(funnel) if !funnel.over_udp));
    let both = said.iter().any(|message| matches!(message, MmsMessage::StreamSwitch(all) if all.len() == 2));
    assert!(funnel && both && said.iter().any(|message| matches!(message, MmsMessage::CloseFile(1))));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Answers the requests of one connection; returns their kinds and headers.
fn serve_wmsp(mut connection: TcpStream, film: &Film) -> Vec<(RequestKind, Pragmas)> {
    let mut reader = http::Reader::of_requests();
    let (mut asked, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let Ok(bytes @ 1..) = connection.read(&mut buffer) else { return asked };
        reader.push(Chunk::bytes(&buffer[..bytes]));
        for item in reader.by_ref() {
            let HttpItem::Request(request) = item.expect("FFmpeg's requests are HTTP") else { continue };
            let pragmas = Pragmas::read(&request.headers).expect("and Windows Media's");
            let kind = RequestKind::of(&request, &pragmas).expect("of a kind");
            let answer = Pragmas {
                no_cache: true,
                client_id: Some(77),
                features: Some(vec![ContentFeature::Seekable]),
                timeout_ms: Some(60_000),
                ..Pragmas::default()
            };
            let is_play = kind == RequestKind::Play;
            let media_type = if is_play { media_types::FRAMED } else { media_types::HEADER };
            let mut response =
                Response::new(200).with("Content-Type", media_type).with("Server", "Cougar/9.0.0.3372");
            answer.add_to(&mut response.headers);
            let mut bytes = response.write();
            bytes.extend(body(film, is_play));
            asked.push((kind, pragmas));
            // Neither length nor chunks: the body ends with the connection.
            if connection.write_all(&bytes).is_err() || !is_play {
                return asked;
            }
        }
    }
}

fn body(film: &Film, is_play: bool) -> Vec<u8> {
    let header = DataPacket {
        flags: data_flags::WHOLE,
        payload: Body::from(&film.header[..]),
        ..DataPacket::default()
    };
    let mut contents = vec![PacketContent::Header(header.write())];
    if is_play {
        contents.extend((0u32..).zip(&film.packets).map(|(location, packet)| {
            let (flags, payload) = (location as u8, Body::from(&packet[..]));
            PacketContent::data(&DataPacket { location, incarnation: 0, flags, payload })
        }));
        contents.push(PacketContent::End(reasons::DONE));
    }
    contents.into_iter().flat_map(|content| real(&WmspPacket::from(content).write()).to_vec()).collect()
}

#[test]
fn ffmpeg_plays_over_http() {
    let folder = folder("mmsh");
    let Some(file) = encoded(&folder) else { return };
    let film = Film::of(&std::fs::read(&file).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        let first = serve_wmsp(listener.accept().unwrap().0, &film);
        let second = serve_wmsp(listener.accept().unwrap().0, &film);
        [first, second].concat()
    });
    let played = digests(&format!("mmsh://127.0.0.1:{port}/film.asf")).unwrap();
    assert!(played.len() > 30, "{}", played.len());
    assert_eq!(played, digests(file.to_str().unwrap()).unwrap());
    let asked = server.join().unwrap();
    let [(RequestKind::Describe, describe), (RequestKind::Play, play)] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!((describe.stream_time_ms, describe.rate), (Some(0), Some(1.0)));
    assert_eq!((play.play, play.stream_switches.len()), (Some(true), 2));
    std::fs::remove_dir_all(folder).unwrap();
}
