//! The origin for players of a real network: ladders of a folder, and content that other packagers made there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use streamgauge_base::{Chunk, Duration, Instant};
use streamgauge_plan::{Parameter, Setting};
use streamgauge_wire::http::EntityTag;

use crate::app::App;
use crate::dash::origin::{DESCRIPTION, OriginSettings, Presentation};
use crate::http::{Busy, HttpServerSettings, Library, PORT, Resource, full, host};
use crate::media::{self, OpenError, StoredFile};
use crate::rtsp::decoded;
use crate::standalone::{Clients, ContentFault, Served, Service};

/// Ladders that are kept open; each holds a descriptor for every file of it.
const MOST_LADDERS: usize = 16;

/// Names that are served unchanged, by their endings.
const TYPES: [(&str, &str); 11] = [
    ("mpd", "application/dash+xml"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("mp4", "video/mp4"),
    ("m4s", "video/mp4"),
    ("m4v", "video/mp4"),
    ("m4i", "video/mp4"),
    ("m4a", "audio/mp4"),
    ("ts", "video/mp2t"),
    ("aac", "audio/aac"),
    ("vtt", "text/vtt"),
    ("webm", "video/webm"),
];

/// The type of a path's resource, by its ending.
pub(crate) fn content_type_of(path: &str) -> Option<&'static str> {
    known(path.split('?').next()?).map(|(_, content_type)| content_type)
}

fn known(path: &str) -> Option<(&'static str, &'static str)> {
    let suffix = path.rsplit_once('.')?.1.to_ascii_lowercase();
    TYPES.into_iter().find(|(name, _)| *name == suffix)
}

/// The server's constants: those of a server of HTTP.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DashServerSettings {
    /// The settings of its connections and of caches.
    pub http: HttpServerSettings,
    /// Shared by all clients of a server.
    #[serde(skip)]
    shelf: LadderShelf,
}

impl PartialEq for DashServerSettings {
    fn eq(&self, other: &Self) -> bool {
        self.http == other.http
    }
}

impl Setting for DashServerSettings {
    fn tell(field: &'static str, lines: &[&str]) -> Vec<Parameter> {
        HttpServerSettings::tell(field, lines)
    }
}

/// Ladders of a folder that are kept open, for all clients of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct LadderShelf(Arc<Mutex<Kept>>);

impl LadderShelf {
    /// The view of `library` for clients: its ladders, and other packagers' content.
    pub(crate) fn shown(&self, library: Arc<dyn media::Library>) -> Arc<dyn Library> {
        Arc::new(Shown { library, kept: self.0.clone() })
    }
}

/// Ladders that were asked for, by their folders.
#[derive(Default)]
struct Kept {
    ladders: BTreeMap<String, KeptLadder>,
    /// Counts requests, to find the least recently used entry.
    asked: u64,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.ladders.keys()).finish()
    }
}

struct KeptLadder {
    /// The time of its description.
    version: String,
    /// None if it cannot be served.
    presentation: Option<Arc<Presentation>>,
    used: u64,
}

impl Kept {
    /// The ladder in a folder, if there is one that can be served.
    fn ladder(
        &mut self,
        library: &dyn media::Library,
        folder: &str,
    ) -> Result<Option<Arc<Presentation>>, Busy> {
        let version = match library.plain(&format!("{folder}/{DESCRIPTION}")) {
            Ok(description) => description.version().to_owned(),
            Err(OpenError::Failed(_)) => return Err(Busy),
            Err(OpenError::NotFound | OpenError::Unsupported(_)) => return Ok(None),
        };
        self.asked += 1;
        let used = self.asked;
        if let Some(kept) = self.ladders.get_mut(folder).filter(|kept| kept.version == version) {
            kept.used = used;
            return Ok(kept.presentation.clone());
        }
        self.ladders.remove(folder);
        if self.ladders.len() >= MOST_LADDERS {
            let oldest =
                self.ladders.iter().min_by_key(|(_, kept)| kept.used).map(|(folder, _)| folder.clone());
            oldest.and_then(|folder| self.ladders.remove(&folder));
        }
        let presentation = match Presentation::of_folder(library, folder, &OriginSettings::default()) {
            Ok(presentation) => Some(Arc::new(presentation)),
            Err(OpenError::Failed(_)) => return Err(Busy),
            Err(OpenError::NotFound | OpenError::Unsupported(_)) => None,
        };
        let kept = KeptLadder { version, presentation: presentation.clone(), used };
        self.ladders.insert(folder.to_owned(), kept);
        Ok(presentation)
    }
}

/// A file of another packager.
struct Packaged {
    file: Arc<dyn StoredFile>,
    content_type: &'static str,
    is_manifest: bool,
}

impl Resource for Packaged {
    fn length(&self) -> u64 {
        self.file.length()
    }

    fn tag(&self) -> EntityTag {
        EntityTag { weak: false, tag: self.file.version().to_owned() }
    }

    fn content_type(&self) -> &str {
        self.content_type
    }

    fn read(&self, first: u64, most: u64) -> Result<Chunk, String> {
        self.file.read(first, most).map(Chunk::bytes)
    }

    /// A live packager writes manifests anew.
    fn max_age_s(&self, usual: u64) -> u64 {
        if self.is_manifest { 0 } else { usual }
    }
}

/// The answer to a client.
struct Shown {
    library: Arc<dyn media::Library>,
    kept: Arc<Mutex<Kept>>,
}

impl Shown {
    fn file(&self, path: &str) -> Result<Option<Arc<dyn Resource>>, Busy> {
        let Some((suffix, content_type)) = known(path) else { return Ok(None) };
        match self.library.plain(path) {
            Ok(file) => {
                let is_manifest = matches!(suffix, "mpd" | "m3u8");
                Ok(Some(Arc::new(Packaged { file, content_type, is_manifest })))
            }
            Err(OpenError::Failed(_)) => Err(Busy),
            Err(OpenError::NotFound | OpenError::Unsupported(_)) => Ok(None),
        }
    }

    /// The resource of a ladder at `path`: directly in its folder, or in a folder of a level.
    fn of_ladder(&self, path: &str, now: Instant) -> Result<Option<Arc<dyn Resource>>, Busy> {
        if ![".mpd", ".m3u8", ".m4s", ".mp4"].iter().any(|suffix| path.ends_with(suffix)) {
            return Ok(None);
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let slashes = path.rmatch_indices('/').map(|(at, _)| at);
        for at in slashes.take(2) {
            if let Some(ladder) = kept.ladder(self.library.as_ref(), &path[..at])?
                && let Some(found) = ladder.find(&path[at..], now)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

impl Library for Shown {
    fn find(&self, path: &str, now: Instant) -> Result<Option<Arc<dyn Resource>>, Busy> {
        let path = decoded(path);
        let is_plain =
            |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains(['\\', '\0']);
        if !path.strip_prefix('/').is_some_and(|parts| parts.split('/').all(is_plain)) {
            return Ok(None);
        }
        // A request for a manifest of another packager gets that; our own names get ours.
        let is_manifest = path.ends_with(".mpd") || path.ends_with(".m3u8");
        let found = match is_manifest {
            true => self.file(&path)?.map_or_else(|| self.of_ladder(&path, now), |file| Ok(Some(file)))?,
            false => self.of_ladder(&path, now)?.map_or_else(|| self.file(&path), |own| Ok(Some(own)))?,
        };
        if found.is_some() {
            self.library.plays(&path);
        }
        Ok(found)
    }

    fn is_for_pages(&self) -> bool {
        true
    }
}

impl Clients for DashServerSettings {
    fn machine(&self, library: Arc<dyn media::Library>, _: &str, _: u64) -> Box<dyn Served> {
        host(self.shelf.shown(library), &self.http)
    }

    fn turn_away(&self) -> Box<dyn App> {
        full()
    }
}

impl Service for DashServerSettings {
    const SCHEME: &'static str = "http";
    const PORTS: [u16; 2] = [PORT, 8080];
    const PRESETS: &'static [&'static str] = &[];

    fn preset(_: &str) -> Option<Self> {
        Some(DashServerSettings::default())
    }

    fn check(&self) -> Result<(), ContentFault> {
        self.http.check()
    }

    fn give_up_after(&mut self, silence: Duration) {
        self.http.keep_alive = silence;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standalone::Server;

    /// Files by their paths.
    struct Files(Mutex<BTreeMap<String, Vec<u8>>>);

    struct File(Vec<u8>, String);

    impl StoredFile for File {
        fn length(&self) -> u64 {
            self.0.len() as u64
        }
        fn version(&self) -> &str {
            &self.1
        }
        fn read(&self, first: u64, most: u64) -> Result<Vec<u8>, String> {
            let bytes = self.0.get(first as usize..).unwrap_or_default();
            Ok(bytes[..bytes.len().min(most as usize)].to_vec())
        }
    }

    impl media::Library for Files {
        fn open(&self, _: &str) -> Result<Arc<media::Asset>, OpenError> {
            Err(OpenError::NotFound)
        }
        fn plain(&self, path: &str) -> Result<Arc<dyn StoredFile>, OpenError> {
            let files = self.0.lock().unwrap();
            let bytes = files.get(path).ok_or(OpenError::NotFound)?;
            if bytes == b"busy" {
                return Err(OpenError::Failed("Too many open files".into()));
            }
            Ok(Arc::new(File(bytes.clone(), format!("{:x}", blake3::hash(bytes).as_bytes()[0]))))
        }
    }

    /// One second of video with real tables.
    fn movie(frame_bytes: u32) -> Vec<u8> {
        let clip = media::ClipSpec {
            duration: Duration::from_secs(1),
            frame_interval: Duration::from_millis(40),
            frame_bytes: vec![frame_bytes; 25].into(),
            ..media::ClipSpec::default()
        };
        let made = media::Asset::of_clip(&clip);
        let mut file = media::mp4::write_head(&made.tracks[0]).unwrap();
        file.resize(file.len() + 25 * frame_bytes as usize, 7);
        file
    }

    fn described(file: &str) -> Vec<u8> {
        let frames = r#""frames": {}"#;
        format!(
            r#"{{"schema": "streamgauge.content/1", "tracks": [{{"kind": "video", "encodings":
            [{{"name": "a", "bit_rate_bps": 100000, "file": "{file}", {frames}}}]}}]}}"#
        )
        .into_bytes()
    }

    fn shown(files: &[(&str, Vec<u8>)]) -> Shown {
        let files = files.iter().map(|(path, bytes)| ((*path).to_owned(), bytes.clone())).collect();
        Shown { library: Arc::new(Files(Mutex::new(files))), kept: Arc::default() }
    }

    fn type_of(shown: &Shown, path: &str) -> Option<String> {
        let found = shown.find(path, Instant::ZERO).unwrap();
        found.map(|resource| resource.content_type().to_owned())
    }

    #[test]
    fn ladders_and_packaged_files_are_there_and_nothing_else() {
        let shown = shown(&[
            ("/a/content.json", described("v.mp4")),
            ("/a/v.mp4", movie(500)),
            ("/a/v0.mp4", b"another film".to_vec()),
            ("/content.json", described("../a/v.mp4")),
            ("/b/live/x.mpd", b"<MPD/>".to_vec()),
            ("/b/live/x 1.ts", b"ts".to_vec()),
            ("/b/manifest.mpd", b"<MPD/>".to_vec()),
            ("/b/content.json", described("v.mp4")),
            ("/b/v.mp4", movie(100)),
            ("/notes.txt", b"secret".to_vec()),
            ("/full/x.mpd", b"busy".to_vec()),
            ("/full/content.json", b"busy".to_vec()),
        ]);
        for (path, wanted) in [
            ("/a/manifest.mpd", Some("application/dash+xml")),
            ("/a/master.m3u8", Some("application/vnd.apple.mpegurl")),
            ("/a/v0.m3u8", Some("application/vnd.apple.mpegurl")),
            ("/a/v0/1.m4s", Some("video/mp4")),
            ("/a/v%30/1.m4s", Some("video/mp4")),
            ("/a/v0/2.m4s", None),
            ("/b/live/x.mpd", Some("application/dash+xml")),
            ("/b/live/x%201.ts", Some("video/mp2t")),
            // A ladder that names files elsewhere is none.
            ("/manifest.mpd", None),
            ("/a/content.json", None),
            ("/notes.txt", None),
            ("/a", None),
            ("/", None),
            ("/a/../a/v.mp4", None),
            ("/a/%2e%2e/a/v.mp4", None),
            ("//a/v.mp4", None),
            ("/a/./v.mp4", None),
            ("/a/v.mp4%00.mp4", None),
            ("a/v.mp4", None),
            ("*", None),
        ] {
            assert_eq!(type_of(&shown, path).as_deref(), wanted, "{path}");
        }
        // A packaged manifest is handed out as it is; a ladder's own media are not hidden by a file.
        let length = |path: &str| shown.find(path, Instant::ZERO).unwrap().unwrap().length();
        assert_eq!(length("/b/manifest.mpd"), 6);
        assert!(length("/a/v0.mp4") > 25 * 500);
        assert_eq!(length("/a/v.mp4"), movie(500).len() as u64);
        assert!(shown.find("/full/x.mpd", Instant::ZERO).is_err());
        assert!(shown.find("/full/y.mpd", Instant::ZERO).is_err());
    }

    #[test]
    fn a_ladder_that_was_written_anew_is_read_anew() {
        let files = Arc::new(Files(Mutex::default()));
        let put = |path: &str, bytes: Vec<u8>| files.0.lock().unwrap().insert(path.to_owned(), bytes);
        let shown = Shown { library: files.clone(), kept: Arc::default() };
        let length = || {
            let found = shown.find("/v0/1.m4s", Instant::ZERO).unwrap();
            found.map(|segment| segment.length())
        };
        assert_eq!(length(), None);
        put("/content.json", described("v.mp4"));
        assert_eq!(length(), None);
        put("/v.mp4", movie(500));
        put("/w.mp4", movie(600));
        put("/content.json", described("w.mp4"));
        let before = length().unwrap();
        put("/content.json", [described("v.mp4"), b" ".to_vec()].concat());
        assert_eq!(length(), Some(before - 25 * 100));
    }

    #[test]
    fn its_settings_are_those_of_a_server_of_http() {
        let server = Server::of::<DashServerSettings>();
        let settings = server.preset("").unwrap();
        assert_eq!(settings, serde_json::to_value(HttpServerSettings::default()).unwrap());
        assert!(server.read(&serde_json::json!({"live": true})).is_err());
        assert!(server.open(settings, Some(Duration::from_millis(1))).is_err());
    }
}
