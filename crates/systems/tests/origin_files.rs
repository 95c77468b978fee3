//! A ladder of real files behind the origin: ffmpeg decodes every frame of every form, and samples are those of the files.
//!
//! Without ffmpeg there is nothing to be seen here.

#![cfg(unix)]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use streamgauge_base::Instant;
use streamgauge_systems::dash::manifest::{Manifest, MediaKind, Segments, read_playlist};
use streamgauge_systems::dash::origin::{
    MASTER, MPD, OriginSettings, Presentation, RANGES_MASTER, RANGES_MPD, TIMELINE_MPD,
};
use streamgauge_systems::http::Library as _;
use streamgauge_systems::media::{Asset, Library, OpenError, StoredFile};

struct Folder(PathBuf);

struct Stored(File, u64);

impl Library for Folder {
    fn open(&self, _: &str) -> Result<Arc<Asset>, OpenError> {
        Err(OpenError::NotFound)
    }

    fn plain(&self, path: &str) -> Result<Arc<dyn StoredFile>, OpenError> {
        let file = File::open(self.0.join(path.trim_start_matches('/'))).map_err(|_| OpenError::NotFound)?;
        let length = file.metadata().map_err(|_| OpenError::NotFound)?.len();
        Ok(Arc::new(Stored(file, length)))
    }
}

impl StoredFile for Stored {
    fn length(&self) -> u64 {
        self.1
    }

    fn version(&self) -> &str {
        "1"
    }

    fn read(&self, first: u64, most: u64) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; most as usize];
        let read = self.0.read_at(&mut bytes, first).map_err(|error| error.to_string())?;
        bytes.truncate(read);
        Ok(bytes)
    }
}

/// Returns a program's output, once it has ended.
fn run(program: &str, arguments: &[&str]) -> String {
    let done = Command::new(program).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {arguments:?}: {errors}");
    // Undecodable segments are reported and passed over. For a template ffmpeg asks for one segment more than
    // there are.
    let is_ours =
        |line: &&str| !line.contains("fragment of playlist") && !line.contains("Last message repeated");
    let is_ours = |line: &&str| is_ours(line) && !line.contains("manifest.mpd: Invalid data found");
    assert_eq!(errors.lines().find(is_ours), None, "{program} {arguments:?}: {errors}");
    String::from_utf8(done.stdout).unwrap()
}

/// 7 s of ffmpeg's test card at two rates, one of them with pictures out of order, and of a tone; 2 s a segment.
fn ladder(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let encode = |arguments: &str, name: &str| {
        let mut all: Vec<&str> =
            "-nostdin -loglevel error -y".split(' ').chain(arguments.split(' ')).collect();
        let file = folder.join(name);
        all.push(file.to_str().unwrap());
        run("ffmpeg", &all);
    };
    let card = "-f lavfi -i testsrc2=size=320x180:rate=25 -t 7 -pix_fmt yuv420p -c:v libx264 -preset veryfast \
                -g 50 -keyint_min 50 -sc_threshold 0 -threads 1";
    encode(&format!("{card} -profile:v baseline -b:v 150k -movflags +faststart"), "low.mp4");
    // Tables behind the media.
    encode(&format!("{card} -bf 3 -b:v 400k"), "high.mp4");
    // At 48 kHz all segments but the last would have 94 blocks.
    encode("-f lavfi -i sine=frequency=440:sample_rate=44100 -t 7 -c:a aac -b:a 64k", "sound.mp4");
    let encoding = |file, rate| {
        let frames = r#"{"frame_bytes": [], "key_frames": []}"#;
        format!(
            r#"{{"name": "e", "bit_rate_bps": {rate}, "size": [320, 180], "file": "{file}", "frames": {frames}}}"#
        )
    };
    let [low, high] = [("low.mp4", 150_000), ("high.mp4", 400_000)].map(|(file, rate)| encoding(file, rate));
    let sound = encoding("sound.mp4", 64_000).replace(r#""size": [320, 180], "#, "");
    let text = format!(
        r#"{{"schema": "streamgauge.content/1", "name": "card", "duration_ns": 7000000000, "segment_ns": 2000000000,
        "tracks": [{{"kind": "video", "encodings": [{high}, {low}]}}, {{"kind": "audio", "encodings": [{sound}]}}]}}"#
    );
    fs::write(folder.join("content.json"), text).unwrap();
}

fn bytes(presentation: &Presentation, path: &str) -> Vec<u8> {
    let resource = presentation.find(path, Instant::ZERO).unwrap().unwrap_or_else(|| panic!("{path}"));
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < resource.length() {
        let chunk = resource.read(bytes.len() as u64, 10_007).unwrap();
        assert_eq!(chunk.len(), chunk.head().len(), "{path}");
        bytes.extend(chunk.head());
    }
    bytes
}

/// Everything of the presentation as files.
fn package(presentation: &Presentation, folder: &Path) {
    let mut paths: Vec<String> =
        [MPD, TIMELINE_MPD, RANGES_MPD, MASTER, RANGES_MASTER].map(str::to_owned).to_vec();
    for (level, id) in (0..presentation.level_count()).zip(["v0", "v1", "a0"]) {
        fs::create_dir_all(folder.join(id)).unwrap();
        paths.extend(["", "/init"].map(|name| format!("/{id}{name}.mp4")));
        paths.extend([".m3u8", ".ranges.m3u8"].map(|suffix| format!("/{id}{suffix}")));
        paths.extend((1..=presentation.segment_count(level)).map(|number| format!("/{id}/{number}.m4s")));
    }
    let timeline = String::from_utf8(bytes(presentation, TIMELINE_MPD)).unwrap();
    for (set, ids) in timeline.split("<AdaptationSet").skip(1).zip([&["v0", "v1"][..], &["a0"]]) {
        let mut time = 0;
        for run in set.split("<S ").skip(1) {
            let number = |name: &str| {
                run.split(&format!(" {name}=\"")).nth(1).map(|rest| rest.split('"').next().unwrap())
            };
            let number = |name: &str| number(name).map_or(0, |text| text.parse::<u64>().unwrap());
            for _ in 0..=number("r") {
                paths.extend(ids.iter().map(|id| format!("/{id}/t{time}.m4s")));
                time += number("d");
            }
        }
    }
    for path in paths {
        fs::write(folder.join(&path[1..]), bytes(presentation, &path)).unwrap();
    }
}

/// The digest of each packet or decoded frame of a stream, as ffmpeg's framemd5 has them.
fn frames(of: &Path, arguments: &[&str]) -> Vec<String> {
    let mut all = vec!["-nostdin", "-loglevel", "error", "-allowed_extensions", "ALL"];
    if of.extension().is_none_or(|suffix| suffix != "m3u8") {
        all.truncate(3);
    }
    all.extend(["-i", of.to_str().unwrap()]);
    all.extend(arguments);
    all.extend(["-f", "framemd5", "-"]);
    let said = run("ffmpeg", &all);
    let lines = said.lines().filter(|line| !line.starts_with('#'));
    // Stream, two times, duration, bytes, digest; further data may follow.
    lines.map(|line| line.split(',').nth(5).unwrap().trim().to_owned()).collect()
}

#[test]
fn ffmpeg_decodes_every_frame_of_every_form() {
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        eprintln!("no ffmpeg here");
        return;
    }
    let root = std::env::temp_dir().join(format!("streamgauge-origin-{}", std::process::id()));
    let [source, packaged] = ["source", "packaged"].map(|name| root.join(name));
    ladder(&source);
    let presentation = Presentation::of_folder(&Folder(root.clone()), "/source", &OriginSettings::default());
    let presentation = presentation.unwrap();
    package(&presentation, &packaged);
    assert_eq!(presentation.level_count(), 3);
    assert_eq!([0, 1, 2].map(|level| presentation.segment_count(level)), [4, 4, 4]);
    for (map, file) in [("0:v:0", "low.mp4"), ("0:v:1", "high.mp4"), ("0:a:0", "sound.mp4")] {
        let own = frames(&source.join(file), &["-c", "copy", "-map", "0"]);
        let decoded = frames(&source.join(file), &["-map", "0"]);
        assert!(own.len() >= 175 && decoded.len() >= 175, "{file}");
        for path in [MPD, TIMELINE_MPD, RANGES_MPD, MASTER, RANGES_MASTER] {
            let manifest = packaged.join(&path[1..]);
            let told = format!("{path} {map}");
            assert!(frames(&manifest, &["-c", "copy", "-map", map]) == own, "{told}: other packets");
            let again = frames(&manifest, &["-map", map, "-vsync", "0"]);
            // The file's edit list leaves out the silence that the sound's encoder began with.
            match map {
                "0:a:0" => assert!(again.len() >= decoded.len(), "{told}: {} frames", again.len()),
                _ => assert!(again == decoded, "{told}: other pictures"),
            }
        }
    }
    packaged_by_ffmpeg(&source, &root.join("ffmpeg"));
    fs::remove_dir_all(&root).unwrap();
}

/// The output of ffmpeg's own packager is read: templates, lists of ranges, playlists of both kinds.
fn packaged_by_ffmpeg(source: &Path, folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    let inputs = ["low.mp4", "high.mp4", "sound.mp4"].map(|name| source.join(name));
    let mut all: Vec<&str> = "-nostdin -loglevel error -y".split(' ').collect();
    inputs.iter().for_each(|input| all.extend(["-i", input.to_str().unwrap()]));
    all.extend("-map 0 -map 1 -map 2 -c copy -f dash -seg_duration 2 -hls_playlist 1".split(' '));
    for (name, options) in [
        ("timeline.mpd", "-use_timeline 1 -use_template 1"),
        ("numbers.mpd", "-use_timeline 0 -use_template 1"),
        ("ranges.mpd", "-single_file 1"),
    ] {
        let file = folder.join(name);
        let options = options.split(' ').chain([file.to_str().unwrap()]);
        run("ffmpeg", &all.iter().copied().chain(options).collect::<Vec<_>>());
        let read = |name: &str| {
            let url = format!("http://server/{name}");
            (Manifest::read(&fs::read(folder.join(name)).unwrap(), &url).unwrap(), url)
        };
        let (mpd, _) = read(name);
        assert_eq!(mpd.flaws(), [], "{name}");
        let duration = mpd.duration.unwrap().as_secs_f64();
        assert!((duration - 7.0).abs() < 0.1, "{name}: {duration}");
        let counts: Vec<(MediaKind, usize)> = mpd
            .sets()
            .flat_map(|set| set.representations.iter().map(|one| (set.kind, one)))
            .map(|(kind, one)| match &one.segments {
                Segments::Listed(segments) => (kind, segments.len()),
                Segments::Numbered(template) => (kind, template.from(0).count()),
                other => panic!("{name}: {other:?}"),
            })
            .collect();
        // It puts each level into a set of its own; one of them is played.
        assert_eq!(counts, [(MediaKind::Video, 4), (MediaKind::Audio, 4)], "{name}");
        let (master, _) = read("master.m3u8");
        assert_eq!(master.sets().map(|set| set.representations.len()).collect::<Vec<_>>(), [2, 1]);
        let (media, url) = read("media_1.m3u8");
        let playlist = read_playlist(&fs::read(folder.join("media_1.m3u8")).unwrap(), &url, &[]).unwrap();
        assert_eq!((playlist.segments.len(), playlist.is_ended, playlist.flaws("v")), (4, true, Vec::new()));
        assert_eq!(media.duration, Some(playlist.duration()));
        for segment in &playlist.segments {
            let file = folder.join(segment.address.url.strip_prefix("http://server/").unwrap());
            let length = fs::metadata(file).unwrap().len();
            assert!(segment.address.range.is_none_or(|(_, last)| last < length), "{name}: {segment:?}");
        }
    }
}
