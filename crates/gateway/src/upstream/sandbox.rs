//! What a program may reach that is started in a sandbox, as a configuration says it.
//!
//! What is not named here is not there: the sandbox is built from nothing (`bubblewrap`), and not by taking away. Paths
//! and sizes are read once; what cannot hold together is not a value of these types.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};

use crate::common::settings::{FieldError, Scalar, scalar_or_members};

/// Bytes of memory that a process in a sandbox has, unless the file says something else.
const MEMORY: u64 = 1 << 30;
/// The least of them: below it no interpreter starts.
const LEAST_MEMORY: u64 = 16 << 20;
/// The most of them.
const MOST_MEMORY: u64 = 1 << 40;

/// Processes and threads of a sandbox, unless the file says something else: a launcher, a runtime with its threads, and
/// some more.
const PROCESSES: u32 = 128;
/// The fewest and the most of them.
const PROCESS_BOUNDS: std::ops::RangeInclusive<u32> = 8..=65_536;

/// Paths that a file may list under `read` and `write`, together.
const MOST_PATHS: usize = 256;

/// Folders that every sandbox makes anew, so that nothing of the machine's own can be shown in them.
const MADE_ANEW: [&str; 3] = ["/proc", "/dev", "/sys"];

/// A number of bytes, above 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSize(NonZeroU64);

impl ByteSize {
    /// The units that a size is written in, the largest first.
    const UNITS: [(&'static str, u32); 3] = [("GiB", 30), ("MiB", 20), ("KiB", 10)];

    /// The number of bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0.get()
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, shift) = Self::UNITS.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, shift)))?;
        let digits = number.trim_end();
        let plain = (1..=10).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = digits.parse().ok().filter(|_| plain && number.len() - digits.len() <= 1)?;
        NonZeroU64::new(number.checked_mul(1 << shift)?).map(Self)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes();
        match Self::UNITS.iter().find(|(_, shift)| bytes.trailing_zeros() >= *shift) {
            Some((unit, shift)) => write!(formatter, "{} {unit}", bytes >> shift),
            None => write!(formatter, "{bytes} bytes"),
        }
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| serde::de::Error::custom("a size is a whole number with KiB, MiB or GiB, e.g. 512MiB"))
    }
}

/// The field `sandbox`: whether there is one, or what it lets through.
#[derive(Debug, Clone)]
pub(crate) enum SandboxEntry {
    /// Yes, as the file says for all servers, or nothing is let through; or no.
    Switch(bool),
    /// This is let through.
    Section(SandboxSection),
}

impl<'de> Deserialize<'de> for SandboxEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let switch = |scalar: Scalar<'_>| match scalar {
            Scalar::Switch(on) => Some(Self::Switch(on)),
            Scalar::Text(_) => None,
        };
        scalar_or_members(deserializer, "true, false, or what the sandbox lets through", switch, Self::Section)
    }
}

/// What a sandbox lets through, as a file says it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SandboxSection {
    network: bool,
    read: Vec<String>,
    write: Vec<String>,
    folder: Option<String>,
    memory: Option<ByteSize>,
    processes: Option<u32>,
}

/// Whether what runs in a sandbox reaches the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// It has a loopback of its own, and nothing else.
    None,
    /// It has the network of the machine, with what listens on it.
    OfTheMachine,
}

/// Whether a path may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// It may be read.
    Read,
    /// It may be read and changed.
    Write,
}

/// The folder in which a program works and that it takes for its home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Home {
    /// One in memory, which is gone when the program ends.
    Temporary,
    /// One of the machine, which stays. Nobody else has it.
    Kept(PathBuf),
}

/// What a program may reach that is started in a sandbox, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    /// Whether it reaches the network.
    pub network: Network,
    /// Absolute paths of the machine that it sees, at the same place, in an order in which a folder comes before what is in
    /// it: what is said of a path within another holds there.
    pub paths: BTreeMap<PathBuf, Right>,
    /// Its home and working folder.
    pub home: Home,
    /// Bytes of private memory that each of its processes may have.
    pub memory: ByteSize,
    /// Its processes and threads, at most.
    pub processes: u32,
    /// The folder of the configuration, which is not shown as part of the program's own files.
    pub configuration: PathBuf,
}

/// Where a field of a sandbox stands, and what its paths begin at.
pub(crate) struct Surroundings<'s> {
    /// The field, e.g. `upstreams.git.sandbox`.
    pub(crate) place: &'s str,
    /// The folder of the configuration.
    pub(crate) folder: &'s Path,
    /// Replaces `${env:NAME}` in the text of the field of that name.
    pub(crate) expand: &'s dyn Fn(&str, &str) -> Result<String, FieldError>,
}

impl SandboxEntry {
    /// Checks what the file says for all servers.
    ///
    /// # Errors
    /// It names a folder, which one server alone may have.
    pub(crate) fn check_default(&self) -> Result<(), FieldError> {
        match self {
            Self::Section(SandboxSection { folder: Some(_), .. }) => {
                let reason = "is for one server; name it under `sandbox` of the upstream";
                Err(FieldError::new("sandbox.folder", reason))
            }
            _ => Ok(()),
        }
    }

    /// The sandbox of a server whose own entry is `own`, where the file says `default` for all; `None` where it has none.
    ///
    /// # Errors
    /// A path or a limit cannot be used.
    pub(crate) fn resolved(
        own: Option<&Self>,
        default: Option<&Self>,
        surroundings: &Surroundings<'_>,
    ) -> Result<Option<Sandbox>, FieldError> {
        let nothing = SandboxSection::default();
        let section = match (own, default) {
            (Some(Self::Switch(false)), _) | (None, None | Some(Self::Switch(false))) => return Ok(None),
            (Some(Self::Section(section)), _) | (None | Some(Self::Switch(true)), Some(Self::Section(section))) => {
                section
            }
            (Some(Self::Switch(true)), None | Some(Self::Switch(_))) | (None, Some(Self::Switch(true))) => &nothing,
        };
        section.checked(surroundings).map(Some)
    }
}

impl SandboxSection {
    fn checked(&self, surroundings: &Surroundings<'_>) -> Result<Sandbox, FieldError> {
        let Surroundings { place, folder, expand } = surroundings;
        let wrong = |field: &str, reason: String| FieldError::new(format!("{place}.{field}"), reason);
        let configuration = absolute(folder).map_err(|reason| wrong("folder", reason))?;
        let path = |field: &str, text: &str| {
            let text = expand(field, text)?;
            let path = absolute(&configuration.join(&text)).map_err(|reason| wrong(field, reason))?;
            match text.is_empty() {
                true => Err(wrong(field, "the path is empty".to_owned())),
                false => may_be_shown(path).map_err(|reason| wrong(field, reason)),
            }
        };
        if self.read.len() + self.write.len() > MOST_PATHS {
            return Err(wrong("read", format!("with `write` there are more than {MOST_PATHS} paths; name folders")));
        }
        let mut paths = BTreeMap::new();
        for (field, texts, right) in [("read", &self.read, Right::Read), ("write", &self.write, Right::Write)] {
            for text in texts {
                let path = path(field, text)?;
                if let Some(other) = paths.insert(path, right).filter(|other| *other != right) {
                    let other = if other == Right::Read { "read" } else { "write" };
                    return Err(wrong(
                        field,
                        format!("`{text}` is also listed under `{other}`; what may be written may be read"),
                    ));
                }
            }
        }
        let home = match &self.folder {
            None => Home::Temporary,
            Some(text) => Home::Kept(path("folder", text)?),
        };
        let memory = self.memory.or(NonZeroU64::new(MEMORY).map(ByteSize));
        let memory = memory.filter(|memory| (LEAST_MEMORY..=MOST_MEMORY).contains(&memory.bytes()));
        let memory = memory.ok_or_else(|| wrong("memory", "must be from 16MiB to 1024GiB".to_owned()))?;
        let processes = self.processes.unwrap_or(PROCESSES);
        if !PROCESS_BOUNDS.contains(&processes) {
            let reason =
                format!("is {processes}; it must be from {} to {}", PROCESS_BOUNDS.start(), PROCESS_BOUNDS.end());
            return Err(wrong("processes", reason));
        }
        let network = if self.network { Network::OfTheMachine } else { Network::None };
        Ok(Sandbox { network, paths, home, memory, processes, configuration })
    }
}

/// The same path from the root, without `.` and `..`, which are taken as they are written.
fn absolute(path: &Path) -> Result<PathBuf, String> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let path = std::path::absolute(path).map_err(|error| format!("{} cannot be used: {error}", path.display()))?;
    Ok(plain(&path))
}

/// A path without `.` and `..`.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

fn may_be_shown(path: PathBuf) -> Result<PathBuf, String> {
    if path.parent().is_none() {
        return Err("the root would show everything; name what the server needs".to_owned());
    }
    match MADE_ANEW.iter().find(|made| path.starts_with(made)) {
        Some(made) => Err(format!("{} cannot be shown: every sandbox has a {made} of its own", path.display())),
        None => Ok(path),
    }
}

/// What a server may reach on the machine of the gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reach {
    /// It runs elsewhere.
    Remote,
    /// What the user may reach that the gateway runs as.
    User,
    /// It is not a program: the gateway reads what is at this path, and changes nothing.
    Read {
        /// The folder or file.
        path: PathBuf,
    },
    /// What a sandbox lets through, with the folders of the system for reading.
    Sandbox {
        /// Whether it has the network of the machine.
        network: bool,
        /// What it may read.
        read: Vec<PathBuf>,
        /// What it may also change.
        write: Vec<PathBuf>,
        /// Its home and working folder; a temporary one when `None`.
        folder: Option<PathBuf>,
        /// Bytes of private memory of each of its processes.
        memory_bytes: u64,
        /// Its processes and threads, at most.
        processes: u32,
    },
}

impl Sandbox {
    /// What it lets through, with these files of the program itself.
    #[must_use]
    pub fn reach(&self, own: &[PathBuf]) -> Reach {
        let with =
            |right: Right| self.paths.iter().filter(move |(_, own)| **own == right).map(|(path, _)| path.clone());
        Reach::Sandbox {
            network: self.network == Network::OfTheMachine,
            read: own.iter().cloned().chain(with(Right::Read)).collect(),
            write: with(Right::Write).collect(),
            folder: match &self.home {
                Home::Temporary => None,
                Home::Kept(path) => Some(path.clone()),
            },
            memory_bytes: self.memory.bytes(),
            processes: self.processes,
        }
    }

    /// Whether what is at `path` can be seen in it, beside the folders of the system and the program's own files.
    #[must_use]
    pub fn shows(&self, path: &Path) -> bool {
        let kept = match &self.home {
            Home::Temporary => None,
            Home::Kept(home) => Some(home),
        };
        self.paths.keys().chain(kept).any(|shown| path.starts_with(shown))
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed =
            |paths: &[PathBuf]| paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ");
        match self {
            Self::Remote => formatter.write_str("not of this machine"),
            Self::User => formatter.write_str("not in a sandbox: it may do whatever the gateway's user may"),
            Self::Read { path } => write!(formatter, "no program: it reads {} and changes nothing", path.display()),
            Self::Sandbox { network, read, write, folder, memory_bytes, processes } => {
                write!(formatter, "in a sandbox: {}", if *network { "the network" } else { "no network" })?;
                write!(formatter, "; reads the system")?;
                if !read.is_empty() {
                    write!(formatter, ", {}", listed(read))?;
                }
                if !write.is_empty() {
                    write!(formatter, "; writes {}", listed(write))?;
                }
                match folder {
                    Some(folder) => write!(formatter, "; home {}", folder.display())?,
                    None => write!(formatter, "; home in memory")?,
                }
                if let Some(bytes) = NonZeroU64::new(*memory_bytes) {
                    write!(formatter, "; {} a process", ByteSize(bytes))?;
                }
                write!(formatter, ", {processes} processes")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("512MiB", 512 << 20), ("1 GiB", 1 << 30), ("16KiB", 16 << 10)] {
            assert_eq!(ByteSize::parse(text).unwrap().bytes(), bytes, "{text}");
        }
        for text in
            ["", "5", "MiB", "0MiB", "-1MiB", "1.5GiB", "1MB", "1  MiB", "99999999999GiB", "+5MiB", "9999999999GiB "]
        {
            assert_eq!(ByteSize::parse(text), None, "{text}");
        }
        let shown =
            [512 << 20, 3 << 30, 1536 << 20, 1000].map(|bytes| ByteSize(NonZeroU64::new(bytes).unwrap()).to_string());
        assert_eq!(shown, ["512 MiB", "3 GiB", "1536 MiB", "1000 bytes"]);
    }

    #[test]
    fn a_path_is_what_is_written() {
        for (path, expected) in [("/a/./b/../c", "/a/c"), ("/..", "/"), ("/a/", "/a")] {
            assert_eq!(absolute(Path::new(path)).unwrap(), Path::new(expected), "{path}");
        }
        for path in ["/", "/proc/1", "/dev", "/sys/fs"] {
            assert!(may_be_shown(PathBuf::from(path)).is_err(), "{path}");
        }
        assert!(may_be_shown(PathBuf::from("/device")).is_ok());
    }
}
