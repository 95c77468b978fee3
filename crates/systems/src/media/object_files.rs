//! Objects of files: one file, or a folder of several that are encodings of one clip.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::object::{Object, Shelf};
use super::{Library, NamedFile, OpenError};

/// Files that are larger together are not read into memory.
const MOST_BYTES: u64 = 512 << 20;

/// A kind of files.
pub trait Format: Send + Sync + 'static {
    /// The files' properties of an encoding.
    type Said: Send + Sync + 'static;

    /// Endings of the names of files, and of folders with several encodings.
    const ENDINGS: &'static [&'static str];

    /// Encodings that an object has at most.
    const MOST_ENCODINGS: usize;

    /// Returns the object `name` of `files`, each with its name; the list may be empty.
    ///
    /// # Errors
    ///
    /// The fault, with the file's name.
    fn object_of(name: &str, files: &[(String, Vec<u8>)]) -> Result<Object<Self::Said>, String>;

    /// Returns those that this process has read.
    fn read() -> &'static Mutex<ReadObjects<Self::Said>>;
}

/// Objects that have been read.
pub struct ReadObjects<P> {
    /// By the places of their files, and their versions: all players of one share it.
    played: BTreeMap<(String, String), Weak<Object<P>>>,
    /// The last one that was read, even without players: a client with its description will play it.
    last: Option<Arc<Object<P>>>,
}

impl<P> Default for ReadObjects<P> {
    fn default() -> Self {
        ReadObjects { played: BTreeMap::new(), last: None }
    }
}

/// The files of a format in a library, and its folders with names that end as theirs: the files in one are
/// encodings of one clip.
pub struct Files<F> {
    library: Arc<dyn Library>,
    of: PhantomData<F>,
}

fn is_named<F: Format>(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    F::ENDINGS.iter().any(|ending| lower.ends_with(ending))
}

impl<F: Format> Files<F> {
    /// Returns those of `library`.
    pub fn of(library: Arc<dyn Library>) -> Self {
        Files { library, of: PhantomData }
    }

    /// Returns the files of the object at `path`: one, or those of a folder; and where they are, the same for
    /// every path that leads there.
    fn files(&self, path: &str) -> Result<(String, Vec<NamedFile>), OpenError> {
        let unnamed = |name: &str| {
            OpenError::Unsupported(format!("{name} ends with none of {}", F::ENDINGS.join(", ")))
        };
        if let Some((name, file)) = self.library.alone()? {
            return if is_named::<F>(&name) {
                Ok((name.clone(), vec![(name, file)]))
            } else {
                Err(unnamed(&name))
            };
        }
        let steps: Vec<_> = path.split('/').filter(|step| !step.is_empty() && *step != ".").collect();
        let place = steps.join("/");
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
        let names = match self.library.names(path) {
            Ok(names) if is_named::<F>(name) => names,
            Ok(_) | Err(OpenError::NotFound) => {
                let file = self.library.plain(path)?;
                return if is_named::<F>(name) {
                    Ok((place, vec![(name.into(), file)]))
                } else {
                    Err(unnamed(name))
                };
            }
            Err(error) => return Err(error),
        };
        let folder = path.trim_end_matches('/');
        let encodings = names.into_iter().filter(|name| is_named::<F>(name)).take(F::MOST_ENCODINGS + 1);
        let files = encodings.map(|name| {
            let file = self.library.plain(&format!("{folder}/{name}"))?;
            Ok((name, file))
        });
        Ok((place, files.collect::<Result<_, OpenError>>()?))
    }
}

impl<F: Format> Shelf<F::Said> for Files<F> {
    fn open(&self, path: &str) -> Result<Arc<Object<F::Said>>, OpenError> {
        let (place, files) = self.files(path)?;
        let bytes: u64 = files.iter().map(|(_, file)| file.length()).sum();
        if bytes > MOST_BYTES {
            return Err(OpenError::Unsupported(format!("{bytes} bytes; {MOST_BYTES} are read at most")));
        }
        let versions: Vec<_> =
            files.iter().map(|(name, file)| format!("{name} {}", file.version())).collect();
        let key = (place, versions.join("/"));
        let mut objects = F::read().lock().unwrap_or_else(PoisonError::into_inner);
        objects.played.retain(|_, object| object.strong_count() > 0);
        if let Some(object) = objects.played.get(&key).and_then(Weak::upgrade) {
            self.library.plays(path);
            return Ok(object);
        }
        // A request for one does not keep two in memory.
        objects.last = None;
        let mut read = Vec::new();
        for (name, file) in files {
            read.push((name, file.read(0, file.length()).map_err(OpenError::Failed)?));
        }
        let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
        let object = Arc::new(F::object_of(name, &read).map_err(OpenError::Unsupported)?);
        objects.played.insert(key, Arc::downgrade(&object));
        objects.last = Some(object.clone());
        self.library.plays(path);
        Ok(object)
    }
}
