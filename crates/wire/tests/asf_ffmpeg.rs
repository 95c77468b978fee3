//! ffmpeg finds the same in files as our reader, and in files combined from several the packets that were in
//! these.
//!
//! Without ffmpeg there is nothing to be seen here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use streamgauge_wire::asf::{
    Asf, DataPacket, MultiplexInput, MultiplexSettings, ObjectAssembler, StreamSelection, multiplex,
    without_padding, write_head,
};
use streamgauge_wire::mms::ThinningLevel;

fn output(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// Returns a folder of files that ffmpeg makes, once for all tests; `None`, noted on stderr, where there is
/// no ffmpeg.
fn folder() -> Option<&'static Path> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            if Command::new("ffmpeg").arg("-version").output().is_err() {
                eprintln!("skipped: no ffmpeg");
                return None;
            }
            let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join(format!("../../target/tmp/asf-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            make(&folder, "low.asf", "-map 0 -map 1 -b:v 60k -b:a 24k");
            make(&folder, "high.asf", "-map 0 -map 1 -b:v 300k -b:a 64k");
            // Five streams that share packets.
            make(
                &folder,
                "five.asf",
                "-map 0 -map 0 -map 0 -map 1 -map 1 -b:v:0 60k -b:v:1 150k -b:v:2 300k",
            );
            make(&folder, "small_packets.asf", "-map 0 -map 1 -b:v 300k -packet_size 600");
            Some(folder)
        })
        .as_deref()
}

/// 4 s of a test card and a tone, key frames 2 s apart.
fn make(folder: &Path, name: &str, options: &str) {
    let file = folder.join(name);
    let fixed = "-loglevel error -y -f lavfi -i testsrc2=size=176x144:rate=25 -f lavfi -i \
                 sine=frequency=440:sample_rate=22050 -t 4 -pix_fmt yuv420p -c:v wmv2 -g 50 -c:a wmav2 -ac 1";
    let arguments: Vec<&str> = fixed.split_whitespace().chain(options.split_whitespace()).collect();
    output("ffmpeg", &[&arguments[..], &[file.to_str().unwrap()]].concat());
}

/// A stream's packet: its presentation time, in ms, its bytes, whether it is a key frame.
type Probed = (i64, usize, bool);

/// Returns ffprobe's description of the packets of the stream at `place`.
fn probed(file: &Path, place: usize) -> Vec<Probed> {
    let select = place.to_string();
    let show = "packet=pts,size,flags";
    let arguments = ["-v", "error", "-select_streams", &select, "-show_entries", show, "-of", "csv=p=0"];
    let said = output("ffprobe", &[&arguments[..], &[file.to_str().unwrap()]].concat());
    let packet = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[0].parse().unwrap(), fields[1].parse().unwrap(), fields[2].starts_with('K'))
    };
    said.lines().map(packet).collect()
}

/// Returns our reading of the stream at `place`.
fn found(file: &[u8], place: usize) -> Vec<Probed> {
    let read = Asf::read(file).unwrap();
    let stream = &read.header.streams[place];
    // ffprobe takes each packet of sound for a key frame, and ffmpeg marks none.
    let (number, is_sound) = (stream.number, stream.audio_format().is_some());
    let objects = read.objects(file).unwrap();
    assert_eq!((objects.incomplete, read.cut), (0, None));
    let of = objects.objects.iter().filter(|object| object.stream == number);
    let preroll_ms = read.header.file.preroll_ms as i64;
    of.map(|one| (i64::from(one.presentation_ms) - preroll_ms, one.data.len(), one.is_key || is_sound))
        .collect()
}

/// A line for each packet of the stream at `place`, or for each of its pictures: when, how many bytes, their digest.
fn digests(file: &Path, place: usize, options: &[&str]) -> Vec<String> {
    let map = format!("0:{place}");
    let arguments = ["-loglevel", "error", "-i", file.to_str().unwrap(), "-map", &map];
    let said = output("ffmpeg", &[&arguments[..], options, &["-f", "framemd5", "-"]].concat());
    said.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
}

#[test]
fn ffprobe_finds_the_same_packets() {
    let Some(folder) = folder() else { return };
    for (name, streams) in [("low.asf", 2), ("high.asf", 2), ("five.asf", 5), ("small_packets.asf", 2)] {
        let path = folder.join(name);
        let file = std::fs::read(&path).unwrap();
        assert_eq!(Asf::read(&file).unwrap().header.streams.len(), streams);
        for place in 0..streams {
            let packets = probed(&path, place);
            assert!(packets.len() > 40, "{name} {place}");
            assert_eq!(found(&file, place), packets, "{name} {place}");
        }
    }
    // Frames that are longer than a packet are in it.
    assert!(probed(&folder.join("small_packets.asf"), 0).iter().any(|&(_, bytes, _)| bytes > 1800));
    let file = std::fs::read(folder.join("five.asf")).unwrap();
    let streams = &Asf::read(&file).unwrap().header.streams;
    assert_eq!(
        streams[0].video_format().map(|format| (format.width, format.height, format.codec)),
        Some((176, 144, *b"WMV2"))
    );
    let audio = streams[3].audio_format().unwrap();
    assert_eq!((audio.codec, audio.channels, audio.sample_rate_hz), (0x161, 1, 22_050));
    // Packets of several streams are found too.
    let read = Asf::read(&file).unwrap();
    assert!(read.packets(&file).any(|packet| DataPacket::read(packet).unwrap().stream().is_none()));
}

/// The file of two rates, and the inputs' streams in its order.
fn two_rates(folder: &Path) -> (Vec<u8>, [(PathBuf, usize); 4]) {
    let [low, high] = ["low.asf", "high.asf"].map(|name| folder.join(name));
    let files = [&low, &high].map(|path| std::fs::read(path).unwrap());
    let inputs = [0, 1].map(|place| MultiplexInput { file: &files[place], streams: None });
    let made = multiplex(&inputs, &MultiplexSettings { preroll_ms: 5000, ..Default::default() }).unwrap();
    (made, [(low.clone(), 0), (low, 1), (high.clone(), 0), (high, 1)])
}

#[test]
fn ffmpeg_plays_what_is_made_of_several_files() {
    let Some(folder) = folder() else { return };
    let (made, from) = two_rates(folder);
    let path = folder.join("two_rates.asf");
    std::fs::write(&path, &made).unwrap();
    for (place, (input, of)) in from.iter().enumerate() {
        let copied = digests(input, *of, &["-c", "copy"]);
        assert!(copied.len() > 40);
        // The first field is the place among the streams that are mapped, which is 0 in both.
        assert_eq!(digests(&path, place, &["-c", "copy"]), copied, "stream {place}");
        let decoded = digests(input, *of, &["-vsync", "0"]);
        assert!(decoded.len() > 40);
        assert_eq!(digests(&path, place, &["-vsync", "0"]), decoded, "stream {place}");
        assert_eq!(found(&made, place), probed(input, *of));
    }

    // For video, ffmpeg reads the rates of the Extended Stream Properties; for audio, those of the codec.
    let show = ["-v", "error", "-show_entries", "stream=bit_rate", "-of", "csv=p=0"];
    let said = output("ffprobe", &[&show[..], &[path.to_str().unwrap()]].concat());
    let rates: Vec<u32> = said.lines().map(|line| line.parse().unwrap()).collect();
    let header = Asf::read(&made).unwrap().header;
    for place in [0, 2] {
        assert_eq!(rates[place], header.extended[place].average.rate_bps);
    }
    // The bit rates include packet overhead: for audio at 64 kbit/s a tenth and more in front of each block.
    let seconds = 4.0;
    for (rate, (input, of)) in header.bit_rates.iter().zip(&from) {
        let bytes: usize = probed(input, *of).iter().map(|&(_, bytes, _)| bytes).sum();
        let media_bps = 8.0 * bytes as f64 / seconds;
        let more = f64::from(rate.average_bps) / media_bps;
        assert!((1.01..1.2).contains(&more), "{rate:?}: {more} of {media_bps} bit/s");
    }
    assert_eq!(header.exclusions.iter().map(|one| one.streams.clone()).collect::<Vec<_>>(), [[1, 3], [2, 4]]);
}

/// A server's output, written into a file again: ffmpeg finds the packets of the selected streams, and of the
/// thinned ones the key frames.
#[test]
fn ffmpeg_plays_what_is_selected() {
    let Some(folder) = folder() else { return };
    let (made, from) = two_rates(folder);
    let read = Asf::read(&made).unwrap();
    let mut selection = StreamSelection::of(&[4]);
    selection.set(3, ThinningLevel::KeyFrames);
    let sent: Vec<&[u8]> =
        read.packets(&made).filter(|packet| selection.takes(&DataPacket::read(packet).unwrap())).collect();
    let mut header = read.header.clone();
    header.file.packets = sent.len() as u64;
    let path = folder.join("selected.asf");
    std::fs::write(&path, [write_head(&header).unwrap(), sent.concat()].concat()).unwrap();
    let key = |packets: Vec<Probed>| packets.into_iter().filter(|&(_, _, is_key)| is_key).collect::<Vec<_>>();
    assert_eq!(probed(&path, 2), key(probed(&from[2].0, from[2].1)));
    assert_eq!(probed(&path, 2).len(), 2);
    assert_eq!(probed(&path, 3), probed(&from[3].0, from[3].1));
    assert_eq!((probed(&path, 0), probed(&path, 1)), (vec![], vec![]));

    // Without padding, of ffmpeg's own packets too, the same media objects come out.
    for file in [made, std::fs::read(folder.join("five.asf")).unwrap()] {
        let read = Asf::read(&file).unwrap();
        let (mut assembler, mut objects) = (ObjectAssembler::default(), Vec::new());
        for packet in read.packets(&file) {
            let stripped = without_padding(packet).unwrap();
            let packet = DataPacket::read(&stripped).unwrap();
            assert_eq!(packet.padding_bytes, 0);
            let complete = packet.payloads.iter().filter_map(|payload| assembler.push(payload));
            objects.extend(complete.map(|object| (object.stream, object.data.into_owned())));
        }
        let whole = read.objects(&file).unwrap().objects;
        assert!(objects.into_iter().eq(whole.into_iter().map(|one| (one.stream, one.data.into_owned()))));
    }
}
