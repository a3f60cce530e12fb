//! Settings of the kernel that a trial of a campaign changes on this host: journalled, made, read back, and put back
//! when the session ends, however it ends.
//!
//! A *keeper* (this program again) waits for the end of the agent and puts back what that could not. If both are killed,
//! the next session or `spindle-agent restore` does it, or `spindle restore` where Spindle is installed. Which settings
//! there are is said by whoever gives the orders; which files may be written is decided here.
#![allow(clippy::disallowed_methods)] // Writes to files of the kernel that `is_allowed` names, and to nothing else.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::devices::{self, Device, Number, text_of};
use crate::failure::{Failure, reason};
use crate::journal::{self, Journal, Lock};

const SCHEDULER: &str = "scheduler";
const IOSCHED: &str = "iosched/";
/// Some settings change each other; after the second pass only a check is left.
const PASSES: usize = 3;
/// A dead agent's locks may end a little later than its pipe; a living one hears of its end after 6 s.
pub(crate) const PATIENCE: Duration = Duration::from_secs(8);
const LOOK: Duration = Duration::from_millis(20);
/// `min_free_kbytes` may take this part of the memory: with much more the kernel kills programs to get it.
const OF_MEMORY: u64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    Device,
    Vm,
    Raid,
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Scope::Device => "device",
            Scope::Vm => "vm",
            Scope::Raid => "raid",
        }
    }

    /// True for files that hold a setting and nothing else. A device has others, which delete or stop it.
    fn is_allowed(self, file: &str) -> bool {
        let parts: Vec<&str> = file.split('/').collect();
        let plain = parts
            .iter()
            .all(|part| !part.is_empty() && *part != "." && *part != "..");
        plain
            && match (self, parts.as_slice()) {
                (Scope::Vm | Scope::Raid, [_])
                | (
                    Scope::Device,
                    ["queue", _] | ["queue", "iosched", _] | ["bdi", _] | ["cache_type"],
                ) => true,
                (Scope::Device, ["device", name]) => {
                    ["queue_depth", "ncq_prio_enable", "timeout"].contains(name)
                }
                (Scope::Device, ["device", "scsi_disk", _, name]) => *name == "cache_type",
                (Scope::Device, ["md", name]) => [
                    "stripe_cache_size",
                    "preread_bypass_threshold",
                    "group_thread_cnt",
                    "skip_copy",
                    "rmw_level",
                    "sync_speed_min",
                    "sync_speed_max",
                    "safe_mode_delay",
                ]
                .contains(name),
                _ => false,
            }
    }
}

/// A setting that there may be, in the order in which several are written: those that move others come first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Knob {
    scope: Scope,
    name: String,
    /// Relative to the folder of its scope; the first that exists. `*` is any one name.
    files: Vec<String>,
    /// 0 here means that this other one is in force; the kernel writes this 0.
    #[serde(default)]
    zero_of: Option<String>,
    /// Others that the kernel resets as a side effect; put back at once.
    #[serde(default)]
    disturbs: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    scope: Scope,
    name: String,
    value: String,
}

/// A value after its change, or after its undo; the states are those of `spindle restore`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Item {
    pub(crate) knob: String,
    start: Option<String>,
    left_at: Option<String>,
    now: Option<String>,
    pub(crate) state: State,
    why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    Changed,
    Restored,
    Back,
    Conflict,
    Failed,
    Gone,
    Busy,
}

impl Item {
    /// One line for people.
    pub(crate) fn line(&self) -> String {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let (start, now) = (shown(&self.start), shown(&self.now));
        let knob = &self.knob;
        match self.state {
            State::Changed => format!("{knob}: {start} -> {now}"),
            State::Restored => format!("{knob}: {start} again"),
            State::Back => format!("{knob}: {start} already"),
            State::Conflict => format!(
                "{knob}: conflict: {now} now, it was {start} before; somebody else has changed it since, left alone"
            ),
            State::Failed => format!("{knob}: {now}, not {start} again: {}", self.why),
            State::Gone => format!("{knob}: gone, with its device; it was {start}"),
            State::Busy => format!("{knob}: left to a running spindle"),
        }
    }
}

type Values = BTreeMap<String, Option<String>>;

/// The files of one scope: a disk's, or the machine's.
#[derive(Debug)]
struct Place {
    scope: Scope,
    label: String,
    folder: PathBuf,
    identity: Option<Identity>,
    knobs: Vec<Knob>,
}

/// As `DeviceIdentity` of Python's knobs.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Identity {
    name: String,
    number: String,
    diskseq: Option<u64>,
    lasting: Option<String>,
    size_bytes: u64,
}

impl Identity {
    fn of(disk: &Device) -> Identity {
        let number = |file: &str| disk.text(file).and_then(|text| text.parse::<u64>().ok());
        let text = |file: &str| disk.text(file).map(|text| text.trim().to_owned());
        let named = [
            ("serial", "serial"),
            ("serial", "device/serial"),
            ("dm", "dm/uuid"),
            ("md", "md/uuid"),
            ("file", "loop/backing_file"),
        ];
        let lasting = ["wwid", "device/wwid"]
            .iter()
            .find_map(|file| text(file).filter(|text| !text.is_empty()));
        let lasting = lasting.or_else(|| {
            named.iter().find_map(|(kind, file)| {
                let found = text(file).filter(|text| !text.is_empty())?;
                Some(format!("{kind}:{found}"))
            })
        });
        Identity {
            name: disk.name(),
            number: disk.number.to_string(),
            diskseq: number("diskseq"),
            lasting,
            size_bytes: number("size").unwrap_or(0) * 512,
        }
    }
}

impl Place {
    fn new(scope: Scope, disk: Option<&Device>, known: &[Knob]) -> Place {
        let (label, folder) = match (scope, disk) {
            (Scope::Device, Some(disk)) => (disk.name(), disk.folder.clone()),
            (Scope::Raid, _) => ("raid".to_owned(), PathBuf::from("/proc/sys/dev/raid")),
            _ => ("vm".to_owned(), PathBuf::from("/proc/sys/vm")),
        };
        Place {
            scope,
            label,
            folder,
            identity: disk.filter(|_| scope == Scope::Device).map(Identity::of),
            knobs: known
                .iter()
                .filter(|knob| knob.scope == scope)
                .cloned()
                .collect(),
        }
    }

    fn key(&self) -> String {
        match &self.identity {
            None => self.label.clone(),
            Some(found) => {
                let sequence = found
                    .diskseq
                    .map_or("None".to_owned(), |number| number.to_string());
                format!("{}/{sequence}", found.number)
            }
        }
    }

    fn lock(&self) -> String {
        match &self.identity {
            None => self.scope.name().to_owned(),
            Some(found) => format!("device-{}", found.number),
        }
    }

    fn described(&self) -> Value {
        json!({"scope": self.scope, "label": self.label, "device": self.identity})
    }

    fn address(&self, name: &str) -> String {
        format!("{}.{name}", self.label)
    }

    /// The file of a setting, if there is one and it may be written.
    fn path(&self, name: &str) -> Option<PathBuf> {
        let own;
        let files: &[String] = match self.knobs.iter().find(|knob| knob.name == name) {
            Some(knob) => &knob.files,
            None if self.scope == Scope::Device && name.starts_with(IOSCHED) => {
                own = [format!("queue/{name}")];
                &own
            }
            None => return None,
        };
        let allowed = files.iter().filter(|file| self.scope.is_allowed(file));
        allowed
            .filter_map(|file| found(&self.folder, Path::new(file)))
            .next()
    }

    fn value(&self, name: &str) -> Option<String> {
        value_in(&text_of(&self.path(name)?)?)
    }

    /// One write(2) as sysfs and procfs require; never makes a file.
    fn write(&self, name: &str, value: &str) -> io::Result<()> {
        let path = self.path(name).ok_or(io::ErrorKind::NotFound)?;
        let mut file = OpenOptions::new()
            .write(true)
            .truncate(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)?;
        file.write_all(format!("{value}\n").as_bytes())
    }

    /// Every setting that can be read and written, the parameters of the elevator too.
    fn snapshot(&self) -> Values {
        let mut names: Vec<String> = self.knobs.iter().map(|knob| knob.name.clone()).collect();
        if self.scope == Scope::Device {
            let entries = fs::read_dir(self.folder.join("queue/iosched"));
            for entry in entries.into_iter().flatten().flatten() {
                names.push(format!("{IOSCHED}{}", entry.file_name().to_string_lossy()));
            }
        }
        let mut values = Values::new();
        for name in names {
            if self.path(&name).is_some_and(|path| is_writable(&path)) {
                values.insert(name.clone(), self.value(&name));
            }
        }
        values
    }

    /// Names in the order in which they are written: as ordered, then the others.
    fn in_order(&self, values: &Values) -> Vec<String> {
        let named = self.knobs.iter().map(|knob| knob.name.clone());
        let mut names: Vec<String> = named.filter(|name| values.contains_key(name)).collect();
        for name in values.keys() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// Writes a value back; 0 of a pair is written by the other one of it.
    fn put(&self, name: &str, value: &str, all: &Values) -> io::Result<()> {
        let knob = self.knobs.iter().find(|knob| knob.name == name);
        let partner = knob
            .and_then(|knob| knob.zero_of.clone())
            .filter(|_| value == "0");
        let Some(partner) = partner else {
            return self.write(name, value);
        };
        let other = all.get(&partner).cloned().flatten();
        if other.is_some_and(|value| value != "0") {
            return Ok(());
        }
        if name.ends_with("bytes") {
            // Both are 0. Some kernels accept a ratio as new only if it differs.
            self.write(&partner, "1")?;
            return self.write(&partner, "0");
        }
        self.write(name, value)
    }
}

fn is_writable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o222 != 0)
        && OpenOptions::new().write(true).open(path).is_ok()
}

/// The file at a relative path whose components may be `*`; the first by name.
fn found(folder: &Path, file: &Path) -> Option<PathBuf> {
    let mut here = folder.to_owned();
    for part in file.components() {
        let Component::Normal(part) = part else {
            return None;
        };
        if part == "*" {
            let entries = fs::read_dir(&here).ok()?.flatten();
            here = entries.map(|entry| entry.path()).min()?;
        } else {
            here.push(part);
        }
    }
    here.is_file().then_some(here)
}

/// The value in what the kernel prints: `none [bfq]`, `1000 (system)`, or the text itself.
fn value_in(text: &str) -> Option<String> {
    let text = text.trim();
    if let Some((_, rest)) = text.split_once('[')
        && let Some((chosen, _)) = rest.split_once(']')
    {
        return Some(chosen.to_owned());
    }
    let plain = text.strip_suffix(" (local)").unwrap_or(text);
    let plain = if text.ends_with(" (system)") {
        "system"
    } else {
        plain
    };
    (!plain.is_empty()).then(|| plain.to_owned())
}

/// Settings that are changed until this is undone or dropped.
#[derive(Debug)]
pub(crate) struct Changed {
    journal: Option<Journal>,
    places: Vec<Place>,
    /// After the journal: they end later.
    _locks: Vec<Lock>,
    _keeper: Keeper,
}

impl Changed {
    /// Makes all changes, or leaves none. Returns them, after what had to be put back first, as an agent had left it.
    pub(crate) fn make(
        target: &str,
        wanted: &[Wanted],
        known: &[Knob],
    ) -> Result<(Changed, Vec<Item>), Failure> {
        for knob in known {
            if let Some(file) = knob.files.iter().find(|file| !knob.scope.is_allowed(file)) {
                return Err(Failure::refused(format!(
                    "{file}: is no setting that this agent writes"
                )));
            }
        }
        let places = places_of(target, wanted, known)?;
        let (locks, mut leftovers) = locked(&places)?;
        let place_of = |one: &Wanted| {
            places
                .iter()
                .position(|place| place.scope == one.scope)
                .unwrap_or(0)
        };
        for one in wanted {
            check(&places[place_of(one)], one, wanted)?;
        }
        let firsts: Vec<Values> = places.iter().map(Place::snapshot).collect();
        let keeper = Keeper::start()?;
        let mut changed = Changed {
            journal: Some(Journal::begin(&json!({"known": known}))?),
            places,
            _locks: locks,
            _keeper: keeper,
        };
        match changed.make_all(wanted, &place_of_scopes(&changed.places), &firsts) {
            Ok(items) => {
                leftovers.extend(items);
                Ok((changed, leftovers))
            }
            Err(failure) => {
                let stuck = changed
                    .undo()
                    .into_iter()
                    .find(|item| item.state == State::Failed);
                Err(match stuck {
                    None => failure,
                    Some(item) => Failure::failed(format!("{failure}; {}", item.line())),
                })
            }
        }
    }

    fn make_all(
        &mut self,
        wanted: &[Wanted],
        at: &dyn Fn(Scope) -> usize,
        firsts: &[Values],
    ) -> Result<Vec<Item>, Failure> {
        for (number, one) in wanted.iter().enumerate() {
            self.one(at(one.scope), one, &wanted[number + 1..])?;
        }
        // A value that a later change moved is set again; two that move each other never settle.
        for _ in 0..PASSES - 1 {
            for one in wanted {
                if !is_in_force(&self.places[at(one.scope)], one) {
                    self.one(at(one.scope), one, &[])?;
                }
            }
        }
        let mut items = Vec::new();
        for one in wanted {
            let place = &self.places[at(one.scope)];
            let now = place.value(&one.name);
            if !is_in_force(place, one) {
                return Err(Failure::failed(format!(
                    "{}: {} is in force, not {}: the kernel adjusted the value; everything is as it was",
                    place.address(&one.name),
                    now.unwrap_or_else(|| "-".to_owned()),
                    one.value
                )));
            }
            items.push(Item {
                knob: place.address(&one.name),
                start: firsts[at(one.scope)].get(&one.name).cloned().flatten(),
                left_at: now.clone(),
                now,
                state: State::Changed,
                why: String::new(),
            });
        }
        Ok(items)
    }

    /// One change: on the disk before it is made.
    fn one(&mut self, at: usize, wanted: &Wanted, to_come: &[Wanted]) -> Result<(), Failure> {
        let place = &self.places[at];
        let address = place.address(&wanted.name);
        let before = place.snapshot();
        match before.get(&wanted.name) {
            Some(Some(now)) if *now == wanted.value => return Ok(()),
            Some(Some(_)) => {}
            _ => return Err(missing(place, wanted)),
        }
        let Some(journal) = self.journal.as_mut() else {
            return Ok(());
        };
        let id = journal
            .intent(json!({
                "place": place.described(), "key": place.key(), "knob": wanted.name, "wanted": wanted.value,
                "before": before,
            }))
            .map_err(|error| Failure::refused(format!("the journal of changes cannot be written: {}", reason(&error))))?;
        let written = place.write(&wanted.name, &wanted.value);
        let knob = place.knobs.iter().find(|knob| knob.name == wanted.name);
        for name in knob.into_iter().flat_map(|knob| &knob.disturbs) {
            let comes = to_come
                .iter()
                .any(|other| other.scope == wanted.scope && other.name == *name);
            if let Some(Some(value)) = before.get(name)
                && !comes
                && place.value(name).as_ref() != Some(value)
            {
                drop(place.write(name, value)); // then it is put back at the end
            }
        }
        let mut after: Values = before.keys().map(|name| (name.clone(), None)).collect();
        after.extend(place.snapshot());
        let now = after.get(&wanted.name).cloned().flatten();
        journal.note(&json!({"kind": "made", "id": id, "after": after}));
        match written {
            Err(error) => Err(Failure::refused(format!(
                "{address}={}: the kernel refuses it: {}; everything is as it was",
                wanted.value,
                reason(&error)
            ))),
            Ok(()) if now == before[&wanted.name] => Err(Failure::refused(format!(
                "{address}={}: the kernel ignored it; everything is as it was",
                wanted.value
            ))),
            Ok(()) => Ok(()),
        }
    }

    /// Puts everything back.
    pub(crate) fn undo(mut self) -> Vec<Item> {
        let Some(journal) = self.journal.take() else {
            return Vec::new();
        };
        undo(journal, &|_| true)
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        if let Some(journal) = self.journal.take() {
            undo(journal, &|_| true);
        }
    }
}

/// The locks of all places. An agent that is just ending has time to do so, and what it left is put back.
fn locked(places: &[Place]) -> Result<(Vec<Lock>, Vec<Item>), Failure> {
    let begun = Instant::now();
    let mut items = restore(Duration::ZERO);
    let mut locks = Vec::new();
    for place in places {
        let lock = loop {
            match Lock::take(&place.lock())? {
                Some(lock) => break lock,
                None if begun.elapsed() < PATIENCE => std::thread::sleep(LOOK),
                None => {
                    return Err(Failure::refused(format!(
                        "{}: another spindle is changing it; nothing was changed, wait until it has ended",
                        place.label
                    )));
                }
            }
        };
        locks.push(lock);
    }
    let is_ours = |place: &Place| places.iter().any(|one| one.lock() == place.lock());
    let is_left = |records: &Vec<Value>| {
        stories(records)
            .iter()
            .any(|(key, _)| places.iter().any(|place| place.key() == *key))
    };
    loop {
        let (left, living) = journal::left();
        for journal in left.into_iter().rev() {
            items.extend(undo(journal, &is_ours));
        }
        // A dead agent's locks end before its journal does.
        if !living.iter().any(is_left) || begun.elapsed() >= PATIENCE {
            break;
        }
        std::thread::sleep(LOOK);
    }
    items.retain(|item| item.state != State::Busy);
    Ok((locks, items))
}

fn place_of_scopes(places: &[Place]) -> impl Fn(Scope) -> usize + use<> {
    let scopes: Vec<Scope> = places.iter().map(|place| place.scope).collect();
    move |scope| scopes.iter().position(|&one| one == scope).unwrap_or(0)
}

fn is_in_force(place: &Place, wanted: &Wanted) -> bool {
    // -1 asks for the default, whatever its value.
    wanted.value == "-1" || place.value(&wanted.name).as_ref() == Some(&wanted.value)
}

fn places_of(target: &str, wanted: &[Wanted], known: &[Knob]) -> Result<Vec<Place>, Failure> {
    let mut places: Vec<Place> = Vec::new();
    for one in wanted {
        if places.iter().any(|place| place.scope == one.scope) {
            continue;
        }
        let disk = match one.scope {
            Scope::Device => {
                let path = Path::new(target);
                let beside = path.parent().filter(|_| !path.exists());
                let device = devices::under(beside.unwrap_or(path)).ok_or_else(|| {
                    Failure::usage(format!(
                        "{}: {target} is on no block device that has settings",
                        one.name
                    ))
                })?;
                Some(device.whole())
            }
            _ => None,
        };
        places.push(Place::new(one.scope, disk.as_ref(), known));
    }
    Ok(places)
}

/// Refuses all that can be refused before a change.
fn check(place: &Place, wanted: &Wanted, all: &[Wanted]) -> Result<(), Failure> {
    let address = format!("{}={}", place.address(&wanted.name), wanted.value);
    let Some(path) = place.path(&wanted.name) else {
        let comes = all
            .iter()
            .any(|one| one.scope == Scope::Device && one.name == SCHEDULER);
        if wanted.name.starts_with(IOSCHED) && comes {
            return Ok(());
        }
        return Err(missing(place, wanted));
    };
    if !is_writable(&path) {
        return Err(Failure::refused(format!(
            "{address}: {} cannot be written to; log in as root, nothing was changed",
            path.display()
        )));
    }
    if place.value(&wanted.name).is_none() {
        return Err(Failure::refused(format!(
            "{address}: {} cannot be read, so it could not be undone; nothing was changed",
            path.display()
        )));
    }
    if wanted.scope == Scope::Vm && wanted.name == "min_free_kbytes" {
        let text = text_of(Path::new("/proc/meminfo")).unwrap_or_default();
        let total = text.lines().find_map(|line| {
            let rest = line.strip_prefix("MemTotal:")?;
            rest.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        });
        if let (Some(total), Ok(value)) = (total, wanted.value.parse::<u64>())
            && value > total / OF_MEMORY
        {
            return Err(Failure::refused(format!(
                "{address}: more than a tenth of the memory ({} KiB) would leave programs without; nothing was changed",
                total / OF_MEMORY
            )));
        }
    }
    Ok(())
}

fn missing(place: &Place, wanted: &Wanted) -> Failure {
    let force = place
        .value(SCHEDULER)
        .filter(|_| wanted.name.starts_with(IOSCHED));
    let why = match force {
        Some(scheduler) => format!("the scheduler `{scheduler}` has no such parameter"),
        None => format!("{} has no `{}`", place.label, wanted.name),
    };
    Failure::usage(format!(
        "{}={}: {why}; nothing was changed",
        place.address(&wanted.name),
        wanted.value
    ))
}

/// The changes of one place, as a journal has them.
struct Story {
    place: Value,
    start: Values,
    /// The last values that were read back; `None`: a change of unknown outcome came last.
    left: Option<Values>,
    /// Settings that were asked for, in their order.
    asked: Vec<String>,
    /// Values that an undo was about to write when it was killed.
    planned: Values,
}

fn stories(records: &[Value]) -> Vec<(String, Story)> {
    let mut found: Vec<(String, Story)> = Vec::new();
    let mut ids: BTreeMap<u64, usize> = BTreeMap::new();
    for record in records {
        let key = record["key"].as_str().unwrap_or_default();
        let at = found.iter().position(|(one, _)| one == key);
        match record["kind"].as_str() {
            Some("intent") => {
                let before = values_of(&record["before"]);
                let at = at.unwrap_or_else(|| {
                    let story = Story {
                        place: record["place"].clone(),
                        start: before.clone(),
                        left: None,
                        asked: Vec::new(),
                        planned: Values::new(),
                    };
                    found.push((key.to_owned(), story));
                    found.len() - 1
                });
                let name = record["knob"].as_str().unwrap_or_default().to_owned();
                if !found[at].1.asked.contains(&name) {
                    found[at].1.asked.push(name);
                }
                found[at].1.left = None;
                ids.insert(record["id"].as_u64().unwrap_or(0), at);
            }
            Some("made") => {
                if let Some(&at) = record["id"].as_u64().and_then(|id| ids.get(&id)) {
                    found[at].1.left = Some(values_of(&record["after"]));
                }
            }
            Some("plan") => {
                if let Some(at) = at {
                    found[at].1.planned = values_of(&record["values"]);
                }
            }
            Some("undone") => found.retain(|(one, _)| one != key),
            _ => {}
        }
    }
    found
}

fn values_of(record: &Value) -> Values {
    serde_json::from_value(record.clone()).unwrap_or_default()
}

/// Undoes a journal and removes it, unless something is left to do. `may`: takes the lock of a place.
fn undo(mut journal: Journal, may: &dyn Fn(&Place) -> bool) -> Vec<Item> {
    let records = journal.records();
    let Some(first) = records.first() else {
        journal.discard(); // its maker died before any change
        return Vec::new();
    };
    if first["boot"] != json!(journal::boot()) {
        journal.discard(); // the values are the boot's
        return Vec::new();
    }
    let known: Vec<Knob> =
        serde_json::from_value(first["agent"]["known"].clone()).unwrap_or_default();
    let mut items = Vec::new();
    let mut is_done = true;
    for (key, story) in stories(&records).into_iter().rev() {
        let found = match again(&story.place, &known) {
            None => without_place(&story, State::Gone),
            Some(place) if !may(&place) => without_place(&story, State::Busy),
            Some(place) => put_back(&place, &key, &story, &mut journal),
        };
        let is_left = |item: &Item| [State::Failed, State::Busy].contains(&item.state);
        if found.iter().any(is_left) {
            is_done = false;
        } else {
            journal.note(&json!({"kind": "undone", "key": key}));
        }
        items.extend(found);
    }
    if is_done {
        journal.discard();
    }
    items
}

/// The place that a journal names; `None`: its device is gone, or another one has its number.
fn again(place: &Value, known: &[Knob]) -> Option<Place> {
    let scope: Scope = serde_json::from_value(place["scope"].clone()).ok()?;
    if scope != Scope::Device {
        return Some(Place::new(scope, None, known));
    }
    let then: Identity = serde_json::from_value(place["device"].clone()).ok()?;
    let disk = Device::of(Number::parse(&then.number)?)?;
    let now = Identity::of(&disk);
    let same = match (then.diskseq, now.diskseq) {
        (Some(then), Some(now)) => then == now,
        _ => then.lasting == now.lasting,
    };
    same.then(|| Place::new(scope, Some(&disk), known))
}

fn put_back(place: &Place, key: &str, story: &Story, journal: &mut Journal) -> Vec<Item> {
    let now = place.snapshot();
    let changed = |name: &str| is_ours(name, &now, story) && now.get(name) != story.start.get(name);
    let replaced = story.asked.iter().any(|name| name == SCHEDULER) && changed(SCHEDULER);
    let foreign = story.asked.iter().any(|name| name == SCHEDULER)
        && now.get(SCHEDULER) != story.start.get(SCHEDULER)
        && !is_ours(SCHEDULER, &now, story);
    let order = place.in_order(&story.start);
    let targets: Values = order
        .iter()
        .filter(|name| !(foreign && name.starts_with(IOSCHED)))
        .filter(|name| story.start[*name].is_some())
        .filter(|name| match now.get(*name) {
            Some(_) => changed(name) || now.get(*name) == story.start.get(*name),
            None => replaced && name.starts_with(IOSCHED), // it comes back with its elevator
        })
        .map(|name| (name.clone(), story.start[name].clone()))
        .collect();
    journal.note(&json!({"kind": "plan", "key": key, "values": targets, "foreign": []}));
    let mut troubles: BTreeMap<String, String> = BTreeMap::new();
    for _ in 0..PASSES {
        for name in order.iter().filter(|name| targets.contains_key(*name)) {
            // The scheduler, written earlier in this pass, may have removed or corrected it.
            let (Some(is), Some(Some(to))) = (place.value(name), targets.get(name)) else {
                continue;
            };
            troubles.remove(name);
            if is != *to
                && let Err(error) = place.put(name, to, &targets)
            {
                troubles.insert(name.clone(), reason(&error));
            }
        }
    }
    let mut items = Vec::new();
    for name in &order {
        let (before, after) = (now.get(name).cloned().flatten(), place.value(name));
        let start = story.start[name].clone();
        let was_asked = story.asked.contains(name);
        let (state, why) = match targets.get(name) {
            Some(to) if after.is_some() && after != *to => {
                let why = troubles.get(name).cloned();
                (
                    State::Failed,
                    why.unwrap_or_else(|| "the kernel set another value".to_owned()),
                )
            }
            Some(to) if before != *to => (State::Restored, String::new()),
            Some(_) => (State::Back, String::new()),
            None if was_asked && after.is_none() => (State::Gone, String::new()),
            None => (State::Conflict, String::new()),
        };
        if was_asked || state == State::Failed {
            items.push(Item {
                knob: place.address(name),
                start,
                left_at: story
                    .left
                    .as_ref()
                    .and_then(|left| left.get(name).cloned().flatten()),
                now: after,
                state,
                why,
            });
        }
    }
    items
}

/// True if a value is one that the agent, or its undo, left.
fn is_ours(name: &str, now: &Values, story: &Story) -> bool {
    let is = now.get(name);
    match &story.left {
        None => true, // killed between a change and its reading
        Some(left) => {
            is == left.get(name) || is == story.start.get(name) || story.planned.contains_key(name)
        }
    }
}

fn without_place(story: &Story, state: State) -> Vec<Item> {
    let label = story.place["label"].as_str().unwrap_or_default();
    let items = story.asked.iter().map(|name| Item {
        knob: format!("{label}.{name}"),
        start: story.start.get(name).cloned().flatten(),
        left_at: story
            .left
            .as_ref()
            .and_then(|left| left.get(name).cloned().flatten()),
        now: None,
        state,
        why: String::new(),
    });
    items.collect()
}

/// Puts back what agents that have ended left. `patience`: for one that is just ending.
pub(crate) fn restore(patience: Duration) -> Vec<Item> {
    let begun = Instant::now();
    let mut items: Vec<Item> = Vec::new();
    loop {
        items.retain(|item| item.state != State::Busy);
        let (left, living) = journal::left();
        for journal in left.into_iter().rev() {
            let held = std::cell::RefCell::new(Vec::new());
            items.extend(undo(journal, &|place| match Lock::take(&place.lock()) {
                Ok(Some(lock)) => {
                    held.borrow_mut().push(lock);
                    true
                }
                _ => false,
            }));
        }
        let is_busy = items.iter().any(|item| item.state == State::Busy);
        if (living.is_empty() && !is_busy) || begun.elapsed() >= patience {
            return items;
        }
        std::thread::sleep(LOOK);
    }
}

/// `spindle-agent restore`.
pub(crate) fn restore_all() -> Result<u8, Failure> {
    let items = restore(PATIENCE);
    let lines: Vec<String> = items.iter().map(|item| item.line() + "\n").collect();
    let text = if lines.is_empty() {
        "nothing to put back\n".to_owned()
    } else {
        lines.concat()
    };
    crate::output::print(&text)?;
    let is_bad = |item: &Item| [State::Failed, State::Busy, State::Conflict].contains(&item.state);
    Ok(u8::from(items.iter().any(is_bad)))
}

/// A process that outlives the agent, and puts back what that could not.
#[derive(Debug)]
struct Keeper {
    child: Child,
    /// Its end is the agent's.
    pipe: Option<ChildStdin>,
}

impl Keeper {
    fn start() -> Result<Keeper, Failure> {
        let mut child = Command::new("/proc/self/exe")
            .arg0("spindle-agent")
            .arg("keep")
            .stdin(Stdio::piped())
            .stdout(Stdio::null()) // ssh would wait for its end
            .stderr(Stdio::null())
            .current_dir("/")
            .process_group(0)
            .spawn()
            .map_err(|error| {
                let why = reason(&error);
                Failure::failed(format!(
                    "no keeper of the settings can be started: {why}; nothing was changed"
                ))
            })?;
        let pipe = child.stdin.take();
        Ok(Keeper { child, pipe })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.child.kill()); // what it waits for is done
        drop(self.pipe.take());
        drop(self.child.wait());
    }
}

/// `spindle-agent keep`: waits for the end of standard input.
pub(crate) fn keep() -> Result<u8, Failure> {
    let mut rest = [0; 64];
    let mut input = io::stdin().lock();
    while input.read(&mut rest).is_ok_and(|length| length > 0) {}
    restore(Duration::from_secs(2));
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_hold_settings_are_written() {
        for file in [
            "queue/scheduler",
            "queue/iosched/quantum",
            "device/queue_depth",
            "md/rmw_level",
            "bdi/max_ratio",
        ] {
            assert!(Scope::Device.is_allowed(file), "{file}");
        }
        for file in [
            "device/delete",
            "device/state",
            "md/array_state",
            "md/sync_action",
            "uevent",
            "queue/../device/delete",
            "queue",
            "queue//scheduler",
            "/dev/sda",
            "",
            "ro",
            "make-it-fail",
            "queue/iosched/../../device/delete",
        ] {
            assert!(!Scope::Device.is_allowed(file), "{file}");
        }
        assert!(Scope::Vm.is_allowed("swappiness"));
        assert!(!Scope::Vm.is_allowed("../kernel/sysrq"));
    }

    #[test]
    fn a_value_is_read_as_the_kernel_marks_it() {
        let read = |text| value_in(text).unwrap_or_default();
        assert_eq!(read("none [mq-deadline] bfq\n"), "mq-deadline");
        assert_eq!(read("200000 (system)\n"), "system");
        assert_eq!(read("1000 (local)\n"), "1000");
        assert_eq!(read("write back\n"), "write back");
        assert_eq!(value_in("\n"), None);
    }

    fn record(kind: &str, id: u64, values: &Value) -> Value {
        let name = if kind == "intent" { "before" } else { "after" };
        let mut record =
            json!({"kind": kind, "id": id, "key": "7:0/1", "knob": "scheduler", "wanted": "bfq"});
        record[name] = values.clone();
        record
    }

    #[test]
    fn the_first_value_is_the_one_to_put_back_and_the_last_one_is_ours() {
        let first = json!({"scheduler": "none", "nr_requests": "128"});
        let second = json!({"scheduler": "bfq", "nr_requests": "64"});
        let third = json!({"scheduler": "kyber", "nr_requests": "256"});
        let records = [
            json!({"kind": "begin"}),
            record("intent", 1, &first),
            record("made", 1, &second),
            record("intent", 2, &second),
            record("made", 2, &third),
        ];
        let found = stories(&records);
        assert_eq!(found.len(), 1);
        let story = &found[0].1;
        assert_eq!(story.start, values_of(&first));
        assert_eq!(story.asked, ["scheduler"]);
        assert!(is_ours("scheduler", &values_of(&third), story));
        assert!(!is_ours("scheduler", &values_of(&second), story));
        let torn = stories(&records[..4]);
        assert!(
            is_ours("scheduler", &values_of(&third), &torn[0].1),
            "its outcome is not known"
        );
        let undone = [&records[..], &[json!({"kind": "undone", "key": "7:0/1"})]].concat();
        assert!(stories(&undone).is_empty());
    }
}
