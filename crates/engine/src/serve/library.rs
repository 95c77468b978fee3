//! The folder that is served: files by URL path, read once and shared by all their viewers.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nix::dir::Dir;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, open, openat2};
use nix::sys::stat::Mode;
use streamgauge_systems::media::{Asset, Library, NamedFile, OpenError, StoredFile, mp4};

use crate::error::{EngineError, Result};

/// Suffixes of served names, in any case.
const SUFFIXES: [&str; 3] = ["mp4", "m4v", "mov"];

/// Names of a folder that are looked at.
const MOST_NAMES: usize = 1_000;

/// A folder, or one file of it.
pub struct Folder {
    root: OwnedFd,
    /// The file that is at every path.
    only: Option<PathBuf>,
    /// Most bytes of files in memory.
    limit: u64,
    shelf: Mutex<Shelf>,
}

/// Files read so far, by device and inode: names of one file share it.
#[derive(Default)]
struct Shelf {
    books: HashMap<(u64, u64), Book>,
    /// Counts openings, to identify the last used.
    openings: u64,
}

struct Book {
    stamp: Stamp,
    asset: std::result::Result<Arc<Asset>, OpenError>,
    bytes: u64,
    used: u64,
}

/// Changes when the file does.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Folder {
    /// Returns the folder at `path`, or the one file there, keeping at most `limit` bytes of files in memory.
    pub fn open(path: &Path, limit: u64) -> Result<Folder> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        // The file behind the given path is ours to serve, wherever a link to it may point.
        let file = path.canonicalize().ok().filter(|path| path.is_file());
        let (folder, only) = match &file {
            Some(file) => (file.parent().unwrap_or(path), file.file_name().map(PathBuf::from)),
            None => (path, None),
        };
        let root = open(folder, flags, Mode::empty()).map_err(|e| {
            EngineError::io("open the folder", &e.into())
                .at(path)
                .remedy("name a folder with .mp4, .m4v or .mov files")
                .code(3)
        })?;
        let folder = Folder { root, only, limit, shelf: Mutex::default() };
        folder.beneath(Path::new(".")).map_err(|e| {
            EngineError::io("open files beneath the folder", &e.into())
                .at(path)
                .remedy(
                    "openat2 is needed (Linux 5.6, and no seccomp filter against it), and the right to read",
                )
                .code(4)
        })?;
        Ok(folder)
    }

    /// Opens for reading, without ever leaving the folder: the kernel follows neither `..` nor symbolic links out of it.
    fn beneath(&self, path: &Path) -> nix::Result<File> {
        // Not blocking: opening a pipe would wait for its other end.
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let how = OpenHow::new()
            .flags(flags)
            .resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
        openat2(self.root.as_fd(), path, how).map(File::from)
    }

    /// Returns the file of a URL's path, its name and its metadata.
    fn locate(&self, path: &str) -> std::result::Result<(File, PathBuf, Metadata), OpenError> {
        let name = self.only.clone().or_else(|| relative(path)).ok_or(OpenError::NotFound)?;
        let (file, data) = self.regular(&name)?;
        let suffix = name.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        if !SUFFIXES.contains(&suffix.as_str()) {
            return Err(OpenError::Unsupported(format!("{} is not .mp4, .m4v or .mov", name.display())));
        }
        Ok((file, name, data))
    }

    /// Returns a file beneath the folder, of any name, and its metadata.
    fn regular(&self, name: &Path) -> std::result::Result<(File, Metadata), OpenError> {
        let file = self.beneath(name).map_err(not_opened)?;
        let data = file.metadata().map_err(|_| OpenError::NotFound)?;
        if !data.is_file() {
            return Err(OpenError::NotFound);
        }
        Ok((file, data))
    }

    fn find(&self, path: &str) -> std::result::Result<Arc<Asset>, OpenError> {
        let (file, name, data) = self.locate(path)?;
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.openings += 1;
        let (key, stamp, used) = ((data.dev(), data.ino()), Stamp::of(&data), shelf.openings);
        if let Some(book) = shelf.books.get_mut(&key).filter(|book| book.stamp == stamp) {
            book.used = used;
            return book.asset.clone();
        }
        shelf.books.remove(&key);
        if !shelf.make_room(data.len(), self.limit) {
            let bytes = data.len();
            return Err(OpenError::Failed(format!(
                "{bytes} bytes are more than may be in memory; raise --cache"
            )));
        }
        let asset = read(file, &name, data.len());
        let bytes = if asset.is_ok() { data.len() } else { 0 };
        shelf.books.insert(key, Book { stamp, asset: asset.clone(), bytes, used });
        asset
    }
}

impl Library for Folder {
    fn open(&self, path: &str) -> std::result::Result<Arc<Asset>, OpenError> {
        self.find(path)
    }

    fn file(&self, path: &str) -> std::result::Result<Arc<dyn StoredFile>, OpenError> {
        let (file, _, data) = self.locate(path)?;
        Ok(Arc::new(DiskFile::new(file, &data)))
    }

    fn plain(&self, path: &str) -> std::result::Result<Arc<dyn StoredFile>, OpenError> {
        // There is nothing beneath one file.
        let name = relative(path).filter(|_| self.only.is_none()).ok_or(OpenError::NotFound)?;
        let (file, data) = self.regular(&name)?;
        Ok(Arc::new(DiskFile::new(file, &data)))
    }

    fn alone(&self) -> std::result::Result<Option<NamedFile>, OpenError> {
        let Some(name) = &self.only else { return Ok(None) };
        let (file, data) = self.regular(name)?;
        Ok(Some((name.to_string_lossy().into_owned(), Arc::new(DiskFile::new(file, &data)))))
    }

    fn names(&self, path: &str) -> std::result::Result<Vec<String>, OpenError> {
        let name = relative(path).filter(|_| self.only.is_none()).ok_or(OpenError::NotFound)?;
        let folder = self.beneath(&name).map_err(not_opened)?;
        if !folder.metadata().is_ok_and(|data| data.is_dir()) {
            return Err(OpenError::NotFound);
        }
        let mut folder = Dir::from_fd(folder.into()).map_err(not_opened)?;
        // A name that is no text is in no URL either.
        let names = folder.iter().filter_map(|entry| {
            let name = entry.ok()?.file_name().to_str().ok()?.to_owned();
            (name != "." && name != "..").then_some(name)
        });
        let mut names: Vec<String> = names.take(MOST_NAMES + 1).collect();
        if names.len() > MOST_NAMES {
            // Which of them come first is by chance.
            return Err(OpenError::Unsupported(format!("a folder of more than {MOST_NAMES} names")));
        }
        names.sort();
        Ok(names)
    }
}

/// Returns why something beneath the folder cannot be opened.
fn not_opened(errno: nix::Error) -> OpenError {
    match errno {
        // It may exist: room to open it is missing.
        nix::Error::EMFILE | nix::Error::ENFILE | nix::Error::ENOMEM => {
            OpenError::Failed(errno.desc().into())
        }
        _ => OpenError::NotFound,
    }
}

/// A file that is read from the disk, a piece at a time.
struct DiskFile {
    file: File,
    length: u64,
    version: String,
}

impl DiskFile {
    fn new(file: File, data: &Metadata) -> Self {
        let Stamp { size, modified, changed } = Stamp::of(data);
        let version = format!("{size:x}-{:x}-{:x}-{:x}-{:x}", modified.0, modified.1, changed.0, changed.1);
        DiskFile { file, length: size, version }
    }
}

impl StoredFile for DiskFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn read(&self, first: u64, most: u64) -> std::result::Result<Vec<u8>, String> {
        let mut bytes = vec![0; usize::try_from(most).map_err(|e| e.to_string())?];
        let read = self.file.read_at(&mut bytes, first).map_err(|e| e.to_string())?;
        bytes.truncate(read);
        Ok(bytes)
    }
}

impl Stamp {
    fn of(data: &std::fs::Metadata) -> Stamp {
        Stamp {
            size: data.len(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }
}

impl Shelf {
    /// Drops files without viewers, longest unused first, until `bytes` more fit; returns false if they never
    /// do.
    fn make_room(&mut self, bytes: u64, limit: u64) -> bool {
        loop {
            let held: u64 = self.books.values().map(|book| book.bytes).sum();
            if held.saturating_add(bytes) <= limit {
                return true;
            }
            let idle = |book: &Book| book.asset.as_ref().is_ok_and(|asset| Arc::strong_count(asset) == 1);
            let oldest = self.books.iter().filter(|(_, book)| idle(book)).min_by_key(|(_, book)| book.used);
            let Some(key) = oldest.map(|(&key, _)| key) else { return false };
            self.books.remove(&key);
        }
    }
}

/// Returns the path beneath the folder that a URL's path means; `None` for one that tries to leave.
fn relative(path: &str) -> Option<PathBuf> {
    let mut name = PathBuf::new();
    for part in Path::new(path.trim_start_matches('/')).components() {
        match part {
            Component::Normal(part) => name.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!name.as_os_str().is_empty() && !path.contains('\0')).then_some(name)
}

// A file in memory, not mapped: one that another program cuts short while it is mapped kills its readers (SIGBUS).
fn read(file: File, name: &Path, size: u64) -> std::result::Result<Arc<Asset>, OpenError> {
    let mut bytes = Vec::with_capacity(size as usize);
    file.take(size).read_to_end(&mut bytes).map_err(|e| OpenError::Failed(e.to_string()))?;
    let asset = mp4::read(&name.to_string_lossy(), Arc::new(bytes));
    asset.map(Arc::new).map_err(|why| OpenError::Unsupported(why.to_string()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use nix::sys::resource::{Resource, getrlimit, setrlimit};

    use super::*;

    #[test]
    fn paths_stay_beneath() {
        for (path, expected) in [
            ("/a.mp4", Some("a.mp4")),
            ("a.mp4", Some("a.mp4")),
            ("//b/./c//d.mp4", Some("b/c/d.mp4")),
            ("/b/..mp4", Some("b/..mp4")),
            ("/../a.mp4", None),
            ("/b/../../a.mp4", None),
            ("/b/../a.mp4", None),
            ("/b/..", None),
            ("..", None),
            ("/", None),
            ("", None),
            (".", None),
            ("/a\0.mp4", None),
        ] {
            assert_eq!(relative(path), expected.map(PathBuf::from), "{path:?}");
        }
    }
    #[test]
    fn any_file_of_a_folder_is_plain_and_none_beside_it() {
        let path = std::env::temp_dir().join(format!("streamgauge-plain-{}", std::process::id()));
        std::fs::create_dir_all(path.join("a")).unwrap();
        std::fs::write(path.join("a/content.json"), b"{}").unwrap();
        std::fs::write(path.join("film.mp4"), b"no film").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", path.join("out.mpd")).unwrap();
        let length = |folder: &Folder, path: &str| folder.plain(path).map(|file| file.length());
        let folder = Folder::open(&path, 1 << 20).unwrap();
        let found =
            ["/a/content.json", "/a", "/a/../film.mp4", "/out.mpd", "/b"].map(|path| length(&folder, path));
        let alone = Folder::open(&path.join("film.mp4"), 1 << 20).unwrap();
        let of_one = ["/film.mp4", "/a/content.json"].map(|path| length(&alone, path));
        let suffix = folder.file("/a/content.json").err();
        let names = ["/a", "/a/../a", "/film.mp4", "/b", "/"].map(|path| folder.names(path).ok());
        let only = alone.alone().map(|only| only.map(|(name, file)| (name, file.length())));
        let (many, inside) = (folder.alone().map(|only| only.is_none()), alone.names("/a").err());
        std::fs::remove_dir_all(&path).unwrap();
        let none = || Err(OpenError::NotFound);
        assert_eq!(found, [Ok(2), none(), none(), none(), none()]);
        assert_eq!(of_one, [none(), none()]);
        assert_eq!(names, [Some(vec!["content.json".to_owned()]), None, None, None, None]);
        assert_eq!((only, many), (Ok(Some(("film.mp4".into(), 7))), Ok(true)));
        assert_eq!(inside, Some(OpenError::NotFound));
        assert!(matches!(suffix, Some(OpenError::Unsupported(_))));
    }

    /// Set for the process that has no descriptor left.
    const ALONE: &str = "STREAMGAUGE_TEST_WITHOUT_DESCRIPTORS";

    #[test]
    fn a_file_that_no_descriptor_is_left_for_failed_and_is_not_missing() {
        const NAME: &str =
            "serve::library::tests::a_file_that_no_descriptor_is_left_for_failed_and_is_not_missing";
        if std::env::var_os(ALONE).is_none() {
            // The limit is the process's, and other tests open files.
            let own = std::env::current_exe().unwrap();
            let done = Command::new(own).args(["--exact", NAME]).env(ALONE, "1").output().unwrap();
            let said = String::from_utf8_lossy(&done.stdout);
            assert!(done.status.success() && said.contains("1 passed"), "{said}");
            return;
        }
        let path = std::env::temp_dir().join(format!("streamgauge-descriptors-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("a.mp4"), b"no film").unwrap();
        let folder = Folder::open(&path, 1 << 20).unwrap();
        let before = folder.file("/a.mp4").map(|file| file.length());
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, 0, hard).unwrap();
        let (file, asset) = (folder.file("/a.mp4").err(), folder.open("/a.mp4").err());
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
        let (missing, after) = (folder.file("/b.mp4").err(), folder.file("/a.mp4").map(|file| file.length()));
        std::fs::remove_dir_all(&path).unwrap();
        let failed = Some(OpenError::Failed(nix::Error::EMFILE.desc().into()));
        assert_eq!((file, asset), (failed.clone(), failed));
        assert_eq!((before, missing, after), (Ok(7), Some(OpenError::NotFound), Ok(7)));
    }
}
