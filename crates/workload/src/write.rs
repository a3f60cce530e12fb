//! Writes a resolved workload as people write it: as a file, or as options to another file.

use crate::file_tables::{self, UNNAMED_SET};
use crate::key_texts::{Entry, KeyTexts, quoted};
use crate::keys::{self, Key};
use crate::parse::File;
use crate::phases;
use crate::run_keys;
use crate::spec::{Phase, Tree, Workload};
use crate::stream_keys;
use crate::trees;

impl Workload {
    /// The workload file that resolves to this workload: defaults are left out, and values common to all streams (or all
    /// phases) is written once, before them.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let sets = sets(self);
        let first = sets.first().map(|(name, _)| name.as_str());
        let mut head = run_keys::write(self).needed();
        let tables = if self.phases.is_empty() {
            let mut load = Load::new(self, first, false);
            head.append(&mut load.common);
            load.tables("stream")
        } else {
            write_phases(self, first, &mut head)
        };
        let several = sets.len() > 1;
        let sets = sets.into_iter().map(|(name, said)| {
            let mut entries = said.needed();
            entries.retain(|entry| several || name != UNNAMED_SET || entry.key.name != "name");
            table("files", &entries)
        });
        lines(&head) + &tables + &sets.collect::<String>()
    }

    /// The fewest options that make this of the workload file `text`; `None` if options cannot express it. Keys in `free`
    /// may be anything.
    #[must_use]
    pub fn options(&self, text: &str, free: &[&str]) -> Option<Vec<(String, String)>> {
        let parse = |options: &[(String, String)]| {
            Workload::parse(text, &self.name, &self.name, options).ok()
        };
        let wanted = parts(self);
        let fits = |options: &[(String, String)]| {
            parse(options)
                .is_some_and(|found| found == *self || alike(&parts(&found), &wanted, free))
        };
        let owners = phases::owners(&File::read(text, &self.name).ok()?.phases);
        let mut options = differences(&parts(&parse(&[])?), &wanted, &owners, free);
        if !fits(&options) {
            return None;
        }
        for index in (0..options.len()).rev() {
            let option = options.remove(index);
            if !fits(&options) {
                options.insert(index, option);
            }
        }
        Some(options)
    }
}

/// Sets of files and trees by their names; the first is the one that streams use if they name none.
fn sets(workload: &Workload) -> Vec<(String, KeyTexts)> {
    let mut trees: Vec<(String, KeyTexts)> = Vec::new();
    for tree in all_trees(workload) {
        if !trees.iter().any(|(name, _)| *name == tree.name) {
            trees.push((tree.name.clone(), trees::write_set(tree)));
        }
    }
    let data = workload.filesets.iter();
    let mut sets: Vec<(String, KeyTexts)> = data
        .map(|set| (set.name.clone(), file_tables::write(set)))
        .collect();
    let streams = workload
        .loads()
        .map(|load| load.streams.len())
        .sum::<usize>();
    let at = if all_trees(workload).count() * 2 > streams {
        0
    } else {
        sets.len()
    };
    sets.splice(at..at, trees);
    sets
}

fn all_trees(workload: &Workload) -> impl Iterator<Item = &Tree> {
    let streams = workload.loads().flat_map(|load| &load.streams);
    streams.filter_map(|stream| stream.names.as_ref().map(|names| &names.tree))
}

/// The streams of a load as tables.
struct Load {
    /// KeyTexts once for all streams.
    common: Vec<Entry>,
    streams: Vec<Vec<Entry>>,
}

impl Load {
    fn new(load: &Workload, first: Option<&str>, in_phase: bool) -> Load {
        let streams = load.streams.iter();
        let mut streams: Vec<Vec<Entry>> = streams
            .map(|stream| stream_keys::write(stream, load, first))
            .map(|said| said.named(load.streams.len() > 1).needed())
            .collect();
        // The head's `files` are the sets, and the name of a phase is not that of its stream.
        let (files, name) = (keys::FILES.name, keys::NAME.name);
        let of_table = if in_phase { name } else { files };
        let common = match &mut streams[..] {
            [only] if !only.iter().any(|entry| entry.key.name == of_table) => streams.remove(0),
            _ => take_common(&mut streams, &KeyTexts::default()),
        };
        Load { common, streams }
    }

    fn tables(&self, head: &str) -> String {
        self.streams
            .iter()
            .map(|stream| table(head, stream))
            .collect()
    }
}

/// Takes out the common entries of several lists, if no other list has another value, and if further up it would not mean
/// something else: `above` are the keys that are said there already.
fn take_common(lists: &mut [Vec<Entry>], above: &KeyTexts) -> Vec<Entry> {
    let own = [&keys::NAME, &keys::FILES, &keys::ABOUT, &keys::DROP_CACHES];
    let has = |list: &[Entry], entry: &Entry| list.iter().any(|theirs| theirs.is(entry));
    let mut common: Vec<Entry> = Vec::new();
    for entry in lists.iter().flatten() {
        let with = lists.iter().filter(|list| has(list, entry)).count();
        let fits = |list: &Vec<Entry>| has(list, entry) || (entry.key.data && is_on_names(list));
        let may = with > 1
            && !own.iter().any(|key| key.name == entry.key.name)
            && above.text(entry.key).is_none();
        if may && lists.iter().all(fits) && !has(&common, entry) {
            common.push(entry.clone());
        }
    }
    for list in lists {
        list.retain(|entry| !has(&common, entry));
    }
    common
}

/// True if keys about data, written further up, would have no effect here.
fn is_on_names(list: &[Entry]) -> bool {
    list.iter()
        .any(|entry| entry.key.name == keys::OPERATION.name)
}

/// The tables of phases; what is common to all goes to the head.
fn write_phases(workload: &Workload, first: Option<&str>, head: &mut Vec<Entry>) -> String {
    let groups = repetitions(&workload.phases);
    let mut loads: Vec<Load> = groups
        .iter()
        .map(|group| Load::new(&group.phase.load, first, true))
        .collect();
    let own = groups.iter().zip(&mut loads).map(|(group, load)| {
        let mut own = write_phase(group.phase, workload).needed();
        own.append(&mut load.common);
        own
    });
    let mut own: Vec<Vec<Entry>> = own.collect();
    head.append(&mut take_common(&mut own, &run_keys::write(workload)));
    let tables = groups
        .iter()
        .zip(own)
        .zip(&loads)
        .map(|((group, own), load)| {
            let mut text = format!("\n[[phase]]\nname = {}\n", quoted(group.name));
            if group.times > 1 {
                text += &format!("{} = {}\n", keys::REPEAT.name, group.times);
            }
            text + &lines(&own) + &load.tables("phase.stream")
        });
    tables.collect()
}

/// A phase's own keys, beside those of the workload that it is part of.
fn write_phase(phase: &Phase, workload: &Workload) -> KeyTexts {
    let mut said = run_keys::write(&phase.load);
    let mut whole = run_keys::write(workload);
    whole.forget(&keys::ABOUT);
    whole.forget(&keys::TABLE);
    said.inherit(&whole);
    said.put(&keys::DROP_CACHES, phase.drop_caches);
    said
}

/// A phase and its number of repetitions.
struct Group<'a> {
    name: &'a str,
    times: usize,
    phase: &'a Phase,
}

/// Phases NAME-1, NAME-2 ... that are alike are one that is repeated.
fn repetitions(phases: &[Phase]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut rest = phases;
    while let Some(phase) = rest.first() {
        let name = phase.load.name.as_str();
        let base = name.strip_suffix("-1").filter(|base| {
            !base.is_empty() && !phases.iter().any(|other| other.load.name == *base)
        });
        let times = base.map_or(1, |base| {
            let again = rest.iter().enumerate().take_while(|(index, other)| {
                other.load.name == format!("{base}-{}", index + 1) && repeats(phase, other)
            });
            again.count()
        });
        let name = base.filter(|_| times > 1).unwrap_or(name);
        groups.push(Group { name, times, phase });
        rest = &rest[times..];
    }
    groups
}

fn repeats(phase: &Phase, other: &Phase) -> bool {
    let mut renamed = other.clone();
    renamed.load.name.clone_from(&phase.load.name);
    renamed == *phase
}

fn table(head: &str, entries: &[Entry]) -> String {
    format!("\n[[{head}]]\n{}", lines(entries))
}

fn lines(entries: &[Entry]) -> String {
    entries.iter().map(Entry::line).collect()
}

/// The part of a workload that keys belong to.
#[derive(Debug, Clone, PartialEq)]
enum Owner {
    /// The whole workload, where it has phases.
    Head,
    /// A load, by its number.
    Load(usize),
    /// A stream of a load.
    Stream(usize, String),
    /// A set of files.
    Set(String),
}

/// All keys of a workload, defaults included.
fn parts(workload: &Workload) -> Vec<(Owner, KeyTexts)> {
    let sets = sets(workload);
    let first = sets.first().map(|(name, _)| name.as_str());
    let mut parts = Vec::new();
    if !workload.phases.is_empty() {
        parts.push((Owner::Head, run_keys::write(workload)));
    }
    for (index, load) in workload.loads().enumerate() {
        let run = match workload.phases.get(index) {
            None => run_keys::write(load),
            Some(phase) => write_phase(phase, workload),
        };
        parts.push((Owner::Load(index), run));
        parts.extend(load.streams.iter().map(|stream| {
            let owner = Owner::Stream(index, stream.name.clone());
            (owner, stream_keys::write(stream, load, first))
        }));
    }
    parts.extend(
        sets.into_iter()
            .map(|(name, said)| (Owner::Set(name), said)),
    );
    parts
}

fn alike(found: &[(Owner, KeyTexts)], wanted: &[(Owner, KeyTexts)], free: &[&str]) -> bool {
    let said = |said: &KeyTexts| -> Vec<(&'static str, String)> {
        let entries = said.all().iter();
        let bound = entries.filter(|entry| !free.contains(&entry.key.name));
        bound
            .map(|entry| (entry.key.name, entry.text.clone()))
            .collect()
    };
    found.len() == wanted.len()
        && found
            .iter()
            .zip(wanted)
            .all(|(ours, theirs)| ours.0 == theirs.0 && said(&ours.1) == said(&theirs.1))
}

/// Options for each key that has not the wanted value, as general as possible.
fn differences(
    usual: &[(Owner, KeyTexts)],
    wanted: &[(Owner, KeyTexts)],
    phases: &[String],
    free: &[&str],
) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (owner, said) in wanted {
        let before = usual.iter().find(|(other, _)| other == owner);
        for entry in said.all() {
            let Entry { key, text, .. } = entry;
            let as_before = before.is_some_and(|(_, before)| before.says(entry));
            if as_before || !key.option || free.contains(&key.name) {
                continue;
            }
            let option = (path(owner, key, text, wanted, phases), text.clone());
            if !found.contains(&option) {
                found.push(option);
            }
        }
    }
    found
}

/// `key`, or `phase.stream.key` with as much in front of it as is needed.
fn path(
    owner: &Owner,
    key: &Key,
    text: &str,
    all: &[(Owner, KeyTexts)],
    phases: &[String],
) -> String {
    let in_each = |fits: &dyn Fn(&Owner) -> bool| {
        let mut those = all.iter().filter(|(other, _)| fits(other));
        // The head of phases has no end of its own; options about data leave streams on names alone.
        those.all(|(other, said)| match said.text(key) {
            None => *other == Owner::Head || said.text(&keys::OPERATION) != Some(keys::NONE),
            Some(theirs) => theirs == text,
        })
    };
    let same_level = |other: &Owner| match owner {
        Owner::Head | Owner::Load(_) => matches!(other, Owner::Head | Owner::Load(_)),
        Owner::Stream(..) => matches!(other, Owner::Stream(..)),
        Owner::Set(_) => matches!(other, Owner::Set(_)),
    };
    let phase = |load: &usize| phases.get(*load);
    let name = key.name;
    // An option for all sets is one for the sets of data files.
    let several_sets = all
        .iter()
        .filter(|(other, _)| matches!(other, Owner::Set(_)))
        .count()
        > 1;
    if in_each(&same_level) && !(several_sets && matches!(owner, Owner::Set(_))) {
        return name.to_owned();
    }
    match owner {
        Owner::Head => name.to_owned(),
        Owner::Load(load) => phase(load).map_or(name.to_owned(), |phase| format!("{phase}.{name}")),
        Owner::Set(set) => format!("{set}.{name}"),
        Owner::Stream(load, stream) => match phase(load) {
            None => format!("{stream}.{name}"),
            Some(phase) if in_each(&|other| matches!(other, Owner::Stream(l, _) if l == load)) => {
                format!("{phase}.{name}")
            }
            Some(phase) => format!("{phase}.{stream}.{name}"),
        },
    }
}
