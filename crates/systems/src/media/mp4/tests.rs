use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use proptest::prelude::*;

use super::*;
use crate::media::{Payload, assemble, preamble, sdp};

fn output(program: &str, arguments: &[&str]) -> Vec<u8> {
    let done = Command::new(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(done.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
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
                .join(format!("../../target/tmp/mp4-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            let h264: &[&str] = &["-c:v", "libx264", "-preset", "veryfast", "-bf", "2", "-g", "12"];
            let mpeg4: &[&str] = &["-c:v", "mpeg4", "-bf", "2", "-g", "12"];
            let aac: &[&str] = &["-c:a", "aac", "-ac", "2"];
            make(&folder, "h264.mp4", &[h264, aac].concat());
            make(&folder, "mpeg4.mov", &[mpeg4, aac].concat());
            make(
                &folder,
                "baseline.mov",
                &["-an", "-c:v", "libx264", "-profile:v", "baseline", "-slices", "3"],
            );
            make(&folder, "fast.mp4", &[mpeg4, aac, &["-movflags", "+faststart"]].concat());
            make(&folder, "fragments.mp4", &[h264, aac, &["-movflags", "frag_keyframe+empty_moov"]].concat());
            make(
                &folder,
                "other.mp4",
                &["-c:v", "libx265", "-x265-params", "log-level=none", "-c:a", "libopus"],
            );
            Some(folder)
        })
        .as_deref()
}

fn make(folder: &Path, name: &str, arguments: &[&str]) {
    let file = folder.join(name);
    let fixed = "-loglevel error -y -f lavfi -i testsrc2=size=176x144:rate=25 -f lavfi -i \
                 sine=frequency=440:sample_rate=44100 -t 2 -pix_fmt yuv420p";
    let fixed: Vec<&str> = fixed.split_whitespace().collect();
    output("ffmpeg", &[&fixed, arguments, &[file.to_str().unwrap()]].concat());
}

fn bytes(name: &str) -> Option<Vec<u8>> {
    Some(std::fs::read(folder()?.join(name)).unwrap())
}

fn opened(bytes: Vec<u8>) -> Result<Asset, MediaError> {
    read("name", Arc::new(bytes))
}

/// Returns ffprobe's description of the packets of stream `number`: size, position, key, decoding and
/// presentation time in s.
fn probed(name: &str, number: usize) -> Vec<(u32, u64, bool, f64, f64)> {
    let file = folder().unwrap().join(name);
    let select = number.to_string();
    let arguments = [
        "-v",
        "error",
        "-select_streams",
        &select,
        "-show_entries",
        "packet=pts_time,dts_time,size,pos,flags",
    ];
    let text = output("ffprobe", &[&arguments[..], &["-of", "compact=p=0", file.to_str().unwrap()]].concat());
    let text = String::from_utf8(text).unwrap();
    let packet = |line: &str| {
        let value = |key: &str| {
            let mut pairs = line.split('|').filter_map(|pair| pair.split_once('='));
            pairs.find(|pair| pair.0 == key).unwrap().1.to_owned()
        };
        let number = |key: &str| value(key).parse::<f64>().unwrap();
        let key = value("flags").starts_with('K');
        (number("size") as u32, number("pos") as u64, key, number("dts_time"), number("pts_time"))
    };
    text.lines().filter(|line| !line.is_empty()).map(packet).collect()
}

/// MD5 of each decoded frame of `stream` of `file`.
fn decoded(file: &Path, stream: &str) -> Vec<String> {
    let arguments =
        ["-loglevel", "error", "-i", file.to_str().unwrap(), "-map", stream, "-f", "framemd5", "-"];
    let text = String::from_utf8(output("ffmpeg", &arguments)).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|row| row.rsplit(',').next().unwrap().trim().to_owned()).collect()
}

#[test]
fn units_are_those_that_ffprobe_finds() {
    for name in ["h264.mp4", "mpeg4.mov", "baseline.mov", "fast.mp4"] {
        let Some(bytes) = bytes(name) else { return };
        let asset = opened(bytes).unwrap();
        // By how much all times are later than ffprobe's, so that none is negative.
        let shift = probed(name, 0)[0].4 - asset.tracks[0].units[0].shown.as_secs_f64();
        for (number, track) in asset.tracks.iter().enumerate() {
            let packets = probed(name, number);
            assert_eq!(track.units.len(), packets.len(), "{name} track {number}");
            for (unit, &(size, position, key, decoded, shown)) in track.units.iter().zip(&packets) {
                assert_eq!((unit.bytes, unit.offset), (size, position), "{name} track {number}");
                assert_eq!(unit.kind == UnitKind::Key, key || !track.is_video(), "{name} track {number}");
                assert!((unit.shown.as_secs_f64() + shift - shown).abs() < 2e-6, "{name}: {unit:?}, {shown}");
                assert!(
                    (unit.at.as_secs_f64() + shift - decoded).abs() < 2e-6,
                    "{name}: {unit:?}, {decoded}"
                );
            }
            assert!(track.units.is_sorted_by_key(|unit| unit.at), "{name}");
        }
        let seconds = asset.duration.as_secs_f64();
        assert!((2.0..2.2).contains(&seconds), "{name}: {seconds} s");
    }
}

/// Each track through RTP payloads and back decodes to the same pictures and sounds as the file.
#[test]
fn what_goes_through_packets_decodes_as_the_file_does() {
    for (name, ends) in
        [("h264.mp4", ["h264", "aac"]), ("mpeg4.mov", ["m4v", "aac"]), ("baseline.mov", ["h264", ""])]
    {
        let Some(bytes) = bytes(name) else { return };
        let asset = opened(bytes).unwrap();
        for ((number, track), end) in asset.tracks.iter().enumerate().zip(ends) {
            // The other end has the values of the description.
            let text = sdp::describe(&asset, "127.0.0.1".parse().unwrap(), 1);
            let codec = sdp::read(&text).unwrap().tracks[number].codec.clone().unwrap();
            let mut stream = preamble(&codec);
            for unit in 0..track.units.len() {
                let payloads: Vec<Payload> = track.packets(unit, 300).collect();
                stream.extend(assemble(&codec, payloads.iter().map(|payload| payload.chunk.head())));
            }
            let file = folder().unwrap().join(format!("{name}.{number}.{end}"));
            std::fs::write(&file, stream).unwrap();
            let expected = decoded(&folder().unwrap().join(name), &format!("0:{number}"));
            let found = decoded(&file, "0:0");
            // ADTS cannot mark the first block as the encoder's lead-in, which the file's edit list leaves
            // out.
            let lead = found.len() - expected.len();
            assert!(lead <= usize::from(end == "aac"), "{name} track {number}: {lead} more");
            assert_eq!(found[lead..], expected, "{name} track {number}");
        }
    }
}

#[test]
fn pictures_that_none_refers_to_are_disposable() {
    for name in ["h264.mp4", "mpeg4.mov"] {
        let Some(bytes) = bytes(name) else { return };
        let asset = opened(bytes).unwrap();
        let units = &asset.tracks[0].units;
        let count = |kind| units.iter().filter(|unit| unit.kind == kind).count();
        assert_eq!(count(UnitKind::Key), 5, "{name}");
        // Shown before one that was decoded earlier: a B-frame. x264 lets B-frames refer to B-frames.
        let latest = |number: usize| units[..number].iter().map(|unit| unit.shown).max();
        let b_frames = (1..units.len()).filter(|&number| Some(units[number].shown) < latest(number)).count();
        assert!(count(UnitKind::Disposable) > 10 && count(UnitKind::Disposable) <= b_frames, "{name}");
    }
}

#[test]
fn what_cannot_be_served_is_told_apart() {
    let Some(whole) = bytes("fast.mp4") else { return };
    let error = |bytes: &[u8]| opened(bytes.to_vec()).unwrap_err();
    assert_eq!(error(b""), MediaError::NotMp4);
    assert_eq!(error(b"\x1aE\xdf\xa3 matroska"), MediaError::NotMp4);
    // Within the movie's tables; then within the media.
    assert_eq!(error(&whole[..600]), MediaError::NoMovie);
    let cut = error(&whole[..whole.len() - 100]).to_string();
    assert!(cut.contains("track ") && cut.contains("truncated"), "{cut}");
    assert_eq!(error(&bytes("fragments.mp4").unwrap()), MediaError::Fragmented);
    let other = error(&bytes("other.mp4").unwrap());
    assert_eq!(other, MediaError::NoTrack { found: "hev1, Opus".into() });
    assert!(other.to_string().contains("ffmpeg"), "{other}");
}

/// Each codec beside one that can be sent, by ffmpeg's name, with its name in the error.
#[test]
fn pictures_or_sound_of_another_codec_refuse_the_whole_file_by_their_name() {
    let Some(folder) = folder() else { return };
    let (h264, aac) = (["-c:v", "libx264", "-preset", "ultrafast"], ["-c:a", "aac"]);
    for (file, arguments, expected) in [
        ("hevc.mp4", ["-c:v", "libx265", "-x265-params", "log-level=none"], "video H.265 (hev1)"),
        ("jpeg.mov", ["-c:v", "mjpeg", "-pix_fmt", "yuvj420p"], "video Motion JPEG (jpeg)"),
        ("prores.mov", ["-c:v", "prores", "-threads", "1"], "video ProRes (apcn)"),
        ("mp3.mp4", ["-c:a", "libmp3lame", "-b:a", "64k"], "audio MP3 (mp4a)"),
        ("ac3.mp4", ["-c:a", "ac3", "-b:a", "64k"], "audio AC-3 (ac-3)"),
        ("pcm.mov", ["-c:a", "pcm_s16le", "-ac", "1"], "audio sowt"),
    ] {
        let beside: &[&str] = if arguments[0] == "-c:v" { &aac } else { &h264 };
        make(folder, file, &[&arguments[..], beside].concat());
        let whole = bytes(file).unwrap();
        assert_eq!(
            opened(whole.clone()).unwrap_err(),
            MediaError::LeftOut { left_out: expected.into() },
            "{file}"
        );
        let moov = whole.windows(4).position(|four| four == b"moov").unwrap() - 4;
        let head = read_head("name", &whole[moov..], whole.len() as u64).unwrap();
        assert_eq!((head.tracks.len(), head.left_out), (1, vec![expected.to_owned()]), "{file}");
    }
}

#[test]
fn a_table_that_claims_more_than_it_has_is_refused_before_memory_is_set_aside() {
    let Some(mut file) = bytes("h264.mp4") else { return };
    let at = file.windows(4).position(|four| four == b"stsz").unwrap();
    file[at + 12..at + 16].copy_from_slice(&u32::MAX.to_be_bytes());
    let error = opened(file).unwrap_err().to_string();
    assert!(error.contains("stsz"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// For any changed bytes, there is an asset with units within the file, or an error.
    #[test]
    fn damage_is_an_error_or_harmless(
        which in 0usize..3, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let Some(mut file) = bytes(["h264.mp4", "mpeg4.mov", "fragments.mp4"][which]) else { return Ok(()) };
        // In the tables, not in the media.
        let start = file.windows(4).rposition(|four| four == b"moov").unwrap();
        for (index, value) in changes {
            let at = start + index.index(file.len() - start);
            file[at] = value;
        }
        let length = file.len() as u64;
        if let Ok(asset) = opened(file) {
            for track in &asset.tracks {
                for (number, unit) in track.units.iter().enumerate() {
                    prop_assert!(unit.bytes > 0 && unit.offset + u64::from(unit.bytes) <= length);
                    prop_assert_eq!(track.unit_bytes(number).len(), unit.bytes as usize);
                }
            }
        }
    }
}

/// Returns the units that a head written for `frame_bytes` declares.
fn through_a_head(clip: &crate::media::ClipSpec) -> (Vec<u8>, Asset, Asset) {
    let asset = Asset::of_clip(clip);
    let head = write_head(&asset.tracks[0]).unwrap();
    let file_bytes = head.len() as u64 + asset.tracks[0].media_bytes();
    let end = movie_end(&head).unwrap().unwrap() as usize;
    let read = read_head("name", &head[..end], file_bytes).unwrap();
    (head, asset, read)
}

proptest! {
    #[test]
    fn a_head_that_was_written_tells_of_the_same_frames(
        frame_bytes in prop::collection::vec(1u32..100_000, 1..80),
        frames in 1u64..400, interval_us in 1_000u64..1_000_000, key in any::<prop::sample::Index>(),
    ) {
        let key_frames = vec![key.index(frame_bytes.len()) as u32];
        let frame_interval = Duration::from_nanos(interval_us * 1_000);
        let duration = frame_interval * frames;
        let clip = crate::media::ClipSpec {
            name: "x".into(), duration, frame_interval, frame_bytes: frame_bytes.into(),
            key_frames: key_frames.into(), ..crate::media::ClipSpec::default()
        };
        let (head, asset, read) = through_a_head(&clip);
        let (made, found) = (&asset.tracks[0].units, &read.tracks[0].units);
        prop_assert_eq!(made.len(), found.len());
        for (made, found) in made.iter().zip(found) {
            prop_assert_eq!((found.bytes, found.kind), (made.bytes, made.kind));
            prop_assert_eq!(found.offset, head.len() as u64 + made.offset);
            // A tick of 90 kHz.
            prop_assert!(found.shown.as_nanos().abs_diff(made.shown.as_nanos()) <= 11_112);
        }
        // While the moov box is incomplete, the tracks are unknown.
        for end in 0..head.len().min(200) {
            let known = movie_end(&head[..end]).unwrap();
            prop_assert!(known.is_none_or(|known| known <= head.len() as u64));
        }
    }
}

#[test]
fn a_head_that_was_written_is_read_by_others() {
    if folder().is_none() {
        return;
    }
    let clip = crate::media::ClipSpec {
        name: "x".into(),
        duration: Duration::from_secs(4),
        frame_interval: Duration::from_millis(40),
        frame_bytes: vec![1_000, 200, 300].into(),
        key_frames: vec![0].into(),
        ..crate::media::ClipSpec::default()
    };
    let (head, asset, read) = through_a_head(&clip);
    let mut file = head;
    file.resize(file.len() + asset.tracks[0].media_bytes() as usize, 0);
    std::fs::write(folder().unwrap().join("made.mp4"), file).unwrap();
    let probed = probed("made.mp4", 0);
    let units = &read.tracks[0].units;
    assert_eq!(probed.len(), units.len());
    // Which are key frames its parser looks for in the pictures, and finds none in filler.
    for (unit, (bytes, offset, ..)) in units.iter().zip(probed) {
        assert_eq!((unit.bytes, unit.offset), (bytes, offset));
    }
}

#[test]
fn where_the_moov_box_ends_is_known_or_never_will_be() {
    assert_eq!(movie_end(b""), Ok(None));
    assert_eq!(movie_end(b"\0\0\0\x10ftypisom"), Ok(None));
    assert_eq!(movie_end(b"\0\0\0\x08ftyp\0\0\x10\0moov"), Ok(Some(8 + 4_096)));
    assert_eq!(movie_end(b"<html"), Err(MediaError::NotMp4));
    assert_eq!(movie_end(b"\0\0\0\x08ftyp\0\0\0\x08mdat"), Err(MediaError::MovieLast));
    assert_eq!(movie_end(b"\0\0\0\x08ftyp\0\0\0\x00free"), Err(MediaError::NoMovie));
    let overflow = [b"\0\0\0\x01free".as_slice(), &[0xff; 8], b"\0\0\0\x08moov"].concat();
    assert_eq!(movie_end(&overflow), Ok(None));
}
