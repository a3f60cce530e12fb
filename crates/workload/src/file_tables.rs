//! Reads the tables `[[files]]`, and chooses the table that a stream uses.

use spindle_config::{ConfigError, Place, Problem, Table, Value};

use crate::key_texts::KeyTexts;
use crate::keys::{self, Key, Level};
use crate::parse::{unknown, valid_name};
use crate::settings::{Layer, Settings};
use crate::sizes::{file_sizes, write_files};
use crate::spec::{Each, FileSet, Stream, StreamFiles, Workload};
use crate::trees;

/// Most sets of files of a workload.
const MAX_FILESETS: usize = 64;
/// Most files of a workload.
const MAX_FILES: u64 = 1 << 20;
/// Name of the set of files that options alone describe.
pub(crate) const UNNAMED_SET: &str = "files";

/// Name and settings of a set.
pub(crate) type SetOfFile = (String, Settings);

/// The tables `[[files]]`.
pub(crate) fn read(head: &mut Table) -> Result<Vec<SetOfFile>, ConfigError> {
    let Some(value) = head.take(keys::FILES_TABLE) else {
        return Ok(Vec::new());
    };
    let place = value.place().clone();
    let mut filesets: Vec<SetOfFile> = Vec::new();
    let tables = value.into_tables()?;
    if tables.len() > MAX_FILESETS {
        let what = format!(
            "{} sets of files are too many; a workload has at most {MAX_FILESETS}",
            tables.len()
        );
        return Err(ConfigError::new(place, Problem::Other { what }));
    }
    let only = tables.len() == 1;
    for mut table in tables {
        let name = match table.take(keys::NAME.name) {
            Some(value) => {
                let name = valid_name(&value)?;
                if filesets.iter().any(|(other, _)| *other == name) {
                    return Err(value.error(format!("there are two sets of files `{name}`")));
                }
                table.describe(format!("[files \"{name}\"]"));
                name
            }
            None if only => UNNAMED_SET.to_owned(),
            None => return Err(table.missing(keys::NAME.name)),
        };
        let mut settings = Settings::new(table.place().clone());
        settings.take(&mut table, Level::Files, Layer::Stream);
        table.finish()?;
        filesets.push((name, settings));
    }
    Ok(filesets)
}

/// The set that a stream uses, and its order of files.
pub(crate) fn of_stream(
    settings: &Settings,
    filesets: &[SetOfFile],
) -> Result<Option<StreamFiles>, ConfigError> {
    let holds = !filesets.is_empty();
    for key in [&keys::FILES, &keys::FILE_SERVICE_TYPE, &keys::FILE_REQUESTS] {
        settings.only_with(key, [&keys::FILES], holds, "sets of files: [[files]]")?;
    }
    let Some((first, _)) = filesets.first() else {
        return Ok(None);
    };
    let set = match settings.optional(&keys::FILES) {
        None => first.clone(),
        Some(value) => {
            let name = value.text()?;
            let known = filesets.iter().map(|(name, _)| name.as_str());
            if !known.clone().any(|other| other == name) {
                return Err(unknown(value.place().clone(), "set of files", name, known));
            }
            name.to_owned()
        }
    };
    Ok(Some(StreamFiles {
        set,
        service: settings
            .value(&keys::FILE_SERVICE_TYPE)
            .choice(keys::SERVICES)?,
        requests: settings.integer(&keys::FILE_REQUESTS)? as u32,
    }))
}

pub(crate) fn write_use(files: &StreamFiles, first: Option<&str>, said: &mut KeyTexts) {
    said.put_or(&keys::FILES, &files.set, first == Some(&files.set));
    said.choice(&keys::FILE_SERVICE_TYPE, keys::SERVICES, &files.service);
    said.put(&keys::FILE_REQUESTS, files.requests);
}

/// The keys of a set.
pub(crate) fn write(set: &FileSet) -> KeyTexts {
    let mut said = KeyTexts::default();
    said.put_or(&keys::NAME, &set.name, false);
    said.put(&keys::NRFILES, set.nrfiles);
    said.put(&keys::FILESIZE, write_files(&set.filesize));
    said.choice(&keys::EACH, keys::EACHES, &set.each);
    said.put(&keys::FILL, set.fill);
    said
}

/// The sets as the streams use them, those of all phases.
pub(crate) fn resolve(
    filesets: &[SetOfFile],
    workload: &Workload,
) -> Result<Vec<FileSet>, ConfigError> {
    let mut resolved = Vec::with_capacity(filesets.len());
    let mut all = 0;
    for (name, settings) in filesets {
        if trees::is_tree(name, workload) {
            trees::check_only_tree(name, settings, workload)?;
            continue;
        }
        let tree_only = "streams with `operation`";
        settings.only_with(&keys::DIRECTORIES, [&keys::DIRECTORIES], false, tree_only)?;
        let uses = |stream: &&Stream| {
            stream
                .files
                .as_ref()
                .is_some_and(|files| files.set == *name)
        };
        let workers = workload
            .loads()
            .flat_map(|load| &load.streams)
            .filter(uses)
            .map(|stream| stream.workers);
        let count = settings.value(&keys::NRFILES);
        let nrfiles = count.integer(1..=MAX_FILES)?;
        let each = settings.value(&keys::EACH).choice(keys::EACHES)?;
        let files = match each {
            Each::Stream => nrfiles,
            Each::Worker => nrfiles * u64::from(workers.max().unwrap_or(1)),
        };
        all += files;
        if all > MAX_FILES {
            return Err(count.error(format!(
                "the sets come to {all} files; a workload has at most {MAX_FILES}"
            )));
        }
        resolved.push(FileSet {
            name: name.clone(),
            nrfiles: nrfiles as u32,
            each,
            files: files as u32,
            filesize: file_sizes(&settings.value(&keys::FILESIZE))?,
            fill: settings.value(&keys::FILL).flag()?,
        });
    }
    Ok(resolved)
}

/// Applies an option: to all sets of data files (`directories`: to all trees; to all sets, where there are no data files), or
/// to the one that `owner` names; without any set, it makes one.
pub(crate) fn apply(
    filesets: &mut Vec<SetOfFile>,
    trees: &[String],
    key: &'static Key,
    owner: Option<&str>,
    value: Value,
    place: &Place,
) -> Result<(), ConfigError> {
    let Some(owner) = owner else {
        if filesets.is_empty() {
            filesets.push((UNNAMED_SET.to_owned(), Settings::new(place.clone())));
        }
        let for_trees = key.name == keys::DIRECTORIES.name;
        let meant = |name: &String| trees.contains(name) == for_trees;
        let any = filesets.iter().any(|(name, _)| meant(name));
        for (_, settings) in filesets.iter_mut().filter(|(name, _)| !any || meant(name)) {
            settings.set(key, Layer::Option, value.clone());
        }
        return Ok(());
    };
    let known: Vec<&str> = filesets.iter().map(|(name, _)| name.as_str()).collect();
    let Some(index) = known.iter().position(|name| *name == owner) else {
        return Err(unknown(
            place.clone(),
            "set of files",
            owner,
            known.iter().copied(),
        ));
    };
    filesets[index].1.set(key, Layer::StreamOption, value);
    Ok(())
}
