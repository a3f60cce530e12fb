//! The journal of changed settings, and the locks of places: the same files as `spindle knobs` has on a host
//! (`python/spindle/knobs/journal.py`, `locks.py`), so that either undoes what the other left.
//!
//! A line is `CRC32 JSON`. The agent reads only journals whose first line has its own key `agent`.
#![allow(clippy::disallowed_methods)] // Files of its own, in a folder that nobody else can write to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::devices::text_of;
use crate::document::Host;
use crate::failure::{Failure, reason};

/// Format of the lines, as Python's.
const VERSION: u64 = 1;
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// Folder of journals and locks: one for the machine, as there is one kernel.
fn folder() -> PathBuf {
    let named = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute());
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_else(|| "/".into()));
    match named {
        Some(path) => path.join("spindle/knobs"),
        None if own_number() == Some(0) => PathBuf::from("/var/lib/spindle/knobs"),
        None => home().join(".local/state/spindle/knobs"),
    }
}

/// The user of this process: its folder in /proc has the effective one.
fn own_number() -> Option<u32> {
    fs::metadata("/proc/self").ok().map(|found| found.uid())
}

/// The folder, private whatever the umask; its content is written to the kernel.
fn made_folder() -> Result<PathBuf, Failure> {
    let place = folder();
    let made = fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&place);
    made.map_err(|error| cannot_keep(&place, &error))?;
    match distrusted(&place) {
        None => Ok(place),
        Some(why) => Err(Failure::refused(format!(
            "{why}; {} keeps the journal of changes, nothing was changed",
            place.display()
        ))),
    }
}

fn cannot_keep(place: &Path, error: &io::Error) -> Failure {
    Failure::refused(format!(
        "{}: the journal of changes cannot be kept: {}; nothing was changed, set XDG_STATE_HOME to a folder of yours",
        place.display(),
        reason(error)
    ))
}

/// Why somebody else could put a file into this folder; `None`: nobody can.
fn distrusted(place: &Path) -> Option<String> {
    let Ok(real) = fs::canonicalize(place) else {
        return Some(format!("{}: is not there", place.display()));
    };
    let own = own_number();
    real.ancestors().find_map(|path| {
        let found = fs::symlink_metadata(path).ok()?;
        let is_last = path == real;
        let is_ours = Some(found.uid()) == own || (!is_last && found.uid() == 0);
        let is_open = found.mode() & OTHERS_WRITE != 0 && (is_last || found.mode() & STICKY == 0);
        (!is_ours || is_open).then(|| {
            format!(
                "{}: others may write to it; change its owner to yourself (chown, chmod go-w)",
                path.display()
            )
        })
    })
}

/// A file of its own that is obeyed: ordinary, with one name, not writable for others.
fn is_own(file: &File) -> bool {
    file.metadata().is_ok_and(|found| {
        found.is_file()
            && Some(found.uid()) == own_number()
            && found.mode() & OTHERS_WRITE == 0
            && found.nlink() == 1
    })
}

pub(crate) fn boot() -> String {
    text_of(Path::new("/proc/sys/kernel/random/boot_id")).unwrap_or_default()
}

fn now_s() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |time| time.as_secs())
}

const COMMAND: &str = "spindle-agent session";

/// The lock of a place; it ends with its holder.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// `None`: another process has it.
    pub(crate) fn take(name: &str) -> Result<Option<Lock>, Failure> {
        let path = made_folder()?.join(format!("{name}.lock"));
        let opened = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path);
        let mut file = opened.map_err(|error| cannot_keep(&path, &error))?;
        if file.try_lock().is_err() {
            return Ok(None);
        }
        let said = json!({"pid": std::process::id(), "command": COMMAND, "since": now_s()});
        // Only for people: a lock without a name is a lock.
        drop(file.set_len(0));
        drop(file.write_all(said.to_string().as_bytes()));
        Ok(Some(Lock { _file: file }))
    }
}

/// A journal that this process has locked.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    changes: u64,
}

impl Journal {
    /// A new one, on the disk. `known` stays with it, for an undo by another process.
    pub(crate) fn begin(known: &Value) -> Result<Journal, Failure> {
        let place = made_folder()?;
        Journal::make(&place, known).map_err(|error| cannot_keep(&place, &error))
    }

    fn make(place: &Path, known: &Value) -> io::Result<Journal> {
        let numbering = OpenOptions::new()
            .append(true)
            .create(true)
            .open(place.join("numbering.lock"))?;
        numbering.lock()?;
        let last = paths(place).iter().filter_map(|path| number_of(path)).max();
        let path = place.join(format!("{:010}.journal", last.unwrap_or(0) + 1));
        let draft = path.with_extension("new");
        drop(fs::remove_file(&draft)); // left by a process that died here with the numbering lock
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        file.lock()?; // before the name that an undo looks for
        fs::rename(&draft, &path)?;
        let mut made = Journal {
            path,
            file,
            changes: 0,
        };
        let begun = made
            .append(&json!({
                "kind": "begin", "version": VERSION, "session": "campaign", "boot": boot(),
                "host": Host::this().name, "pid": std::process::id(), "command": COMMAND, "time": now_s(),
                "agent": known,
            }))
            .and_then(|()| made.file.sync_all())
            .and_then(|()| File::open(place)?.sync_all());
        if begun.is_err() {
            made.discard();
            return Err(begun.expect_err("just seen"));
        }
        Ok(made)
    }

    /// A change that is about to be made; on the disk on return. Returns its number.
    pub(crate) fn intent(&mut self, mut change: Value) -> io::Result<u64> {
        self.changes += 1;
        change["kind"] = json!("intent");
        change["id"] = json!(self.changes);
        self.append(&change)?;
        self.file.sync_all()?;
        Ok(self.changes)
    }

    /// A fact that is known afterwards. Not synced: after a power loss the values are the boot's. A full disk must not prevent
    /// an undo.
    pub(crate) fn note(&mut self, record: &Value) {
        drop(self.append(record));
    }

    fn append(&mut self, record: &Value) -> io::Result<()> {
        let data = record.to_string();
        self.file.seek(SeekFrom::End(0))?;
        self.file
            .write_all(format!("{:08x} {data}\n", crc32(data.as_bytes())).as_bytes())
    }

    /// Its records; a torn or damaged line is left out.
    pub(crate) fn records(&mut self) -> Vec<Value> {
        let mut content = Vec::new();
        let read = self.file.seek(SeekFrom::Start(0));
        if read
            .and_then(|_| self.file.read_to_end(&mut content))
            .is_err()
        {
            return Vec::new();
        }
        content
            .split(|&byte| byte == b'\n')
            .filter_map(record_of)
            .collect()
    }

    /// Nothing is left to undo.
    pub(crate) fn discard(self) {
        drop(fs::remove_file(&self.path));
    }
}

fn record_of(line: &[u8]) -> Option<Value> {
    let (sum, data) = (line.get(..8)?, line.get(9..)?);
    let sum = u32::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    (sum == crc32(data))
        .then(|| serde_json::from_slice(data).ok())
        .flatten()
}

fn number_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?.strip_suffix(".journal")?;
    (name.len() == 10).then(|| name.parse().ok()).flatten()
}

fn paths(place: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| number_of(path).is_some());
    found.sort();
    found
}

/// Journals of agents that have ended, oldest first, and the records of those that live.
pub(crate) fn left() -> (Vec<Journal>, Vec<Vec<Value>>) {
    let place = folder();
    if distrusted(&place).is_some() {
        return (Vec::new(), Vec::new()); // also where there is none
    }
    let looking = OpenOptions::new()
        .append(true)
        .create(true)
        .open(place.join("restore.lock"));
    let Ok(looking) = looking else {
        return (Vec::new(), Vec::new());
    };
    drop(looking.lock()); // two at a time would each take the other for a living maker
    let (mut found, mut living) = (Vec::new(), Vec::new());
    for path in paths(&place) {
        let opened = OpenOptions::new()
            .read(true)
            .append(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&path);
        let Some(file) = opened.ok().filter(is_own) else {
            continue;
        };
        let is_free = file.try_lock().is_ok();
        let mut journal = Journal {
            path,
            file,
            changes: 0,
        };
        let records = journal.records();
        let is_agents = records
            .first()
            .is_some_and(|first| first["version"] == VERSION && first.get("agent").is_some());
        if is_agents && is_free {
            found.push(journal);
        } else if is_agents {
            living.push(records);
        }
    }
    (found, living)
}

/// That of zlib, which the other side writes.
fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_zlib() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn a_torn_or_changed_line_is_no_record() {
        let data = r#"{"kind":"made","id":1}"#;
        let line = format!("{:08x} {data}", crc32(data.as_bytes()));
        assert_eq!(
            record_of(line.as_bytes()),
            Some(json!({"kind": "made", "id": 1}))
        );
        assert_eq!(record_of(&line.as_bytes()[..line.len() - 1]), None);
        assert_eq!(record_of(line.replace("made", "mode").as_bytes()), None);
        assert_eq!(record_of(b""), None);
    }
}
