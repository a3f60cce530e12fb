//! A written workload resolves to the same workload: drawn from every key of the table.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use spindle_workload::{KEYS, Key, Kind, Level, Workload, preset_names, preset_text};

/// Keys of one table of a file, with their values as on the command line.
type Table = BTreeMap<&'static str, String>;

/// A file as tables.
#[derive(Debug, Clone)]
struct DrawnWorkload {
    head: Table,
    /// Without any, the streams are the file's.
    phases: Vec<Table>,
    /// For each phase, or for the whole file.
    streams: Vec<Vec<Table>>,
    sets: Vec<Table>,
}

const TREE: &str = "tree";

fn find(name: &str) -> &'static Key {
    KEYS.iter().find(|key| key.name == name).unwrap()
}

fn keys(levels: &'static [Level]) -> Vec<&'static Key> {
    let keys = KEYS.iter().filter(|key| levels.contains(&key.level));
    keys.collect()
}

/// A value of the key's kind.
fn value(key: &'static Key) -> BoxedStrategy<String> {
    let (least, most) = key.range.unwrap_or((0.0, 1e6));
    let size = || (1_u64..40, select(vec!["B", "KiB", "kB", "MiB"]));
    let size = move || size().prop_map(|(count, unit)| format!("{}{unit}", count * 512));
    let duration = || (1_u64..5000, select(vec!["us", "ms", "s", "m"]));
    let duration = duration().prop_map(|(count, unit)| format!("{count}{unit}"));
    let share = || {
        prop_oneof![
            (0_u32..=100).prop_map(|share| format!("{share}%")),
            (0_u32..=1000).prop_map(|share| format!("{}%", f64::from(share) / 10.0)),
            (0.0..=1.0).prop_map(|share: f64| share.to_string()),
        ]
    };
    let iops = || (1_u32..90_000).prop_map(|tenths| format!("{} IOPS", f64::from(tenths) / 7.0));
    let of_kind = match key.kind {
        Kind::Text => Just(key.example.to_owned()).boxed(),
        Kind::Flag => any::<bool>().prop_map(|flag| flag.to_string()).boxed(),
        Kind::Choice => select(key.choices).prop_map(str::to_owned).boxed(),
        Kind::Integer => {
            let (least, most) = (least as u64, most as u64);
            let near = least..=most.min(least + 40);
            prop_oneof![4 => near, 1 => least..=most]
                .prop_map(|number| number.to_string())
                .boxed()
        }
        Kind::Number => (least..=most).prop_map(|number| number.to_string()).boxed(),
        Kind::Fraction => share().boxed(),
        Kind::Size => size().boxed(),
        Kind::Sizes => sizes(size().boxed()),
        Kind::Duration => duration.boxed(),
        Kind::Seconds => prop_oneof![duration, (1_u32..900).prop_map(|s| s.to_string())].boxed(),
        Kind::Iops => iops().boxed(),
        Kind::Rate => prop_oneof![iops(), size().prop_map(|size| size + "/s")].boxed(),
        Kind::Region => {
            let end = prop_oneof![
                share().prop_filter("percent", |it| it.ends_with('%')),
                size()
            ];
            (0_u32..30, end)
                .prop_map(|(start, end)| format!("{start}%-{end}"))
                .boxed()
        }
        Kind::Priority => prop_oneof![
            (select(vec!["realtime", "best-effort"]), 0_u32..8)
                .prop_map(|(class, level)| format!("{class}:{level}")),
            Just("idle".to_owned())
        ]
        .boxed(),
        Kind::Content => prop_oneof![
            Just("zero".to_owned()),
            share().prop_map(|share| format!("compressible:{share}"))
        ]
        .boxed(),
    };
    prop_oneof![6 => of_kind, 2 => Just(key.example.to_owned()), 1 => Just(key.default.to_owned())]
        .boxed()
}

fn sizes(size: BoxedStrategy<String>) -> BoxedStrategy<String> {
    let weighted = prop::collection::vec((size.clone(), 1_u32..50), 1..4).prop_map(|choices| {
        let choices = choices
            .iter()
            .map(|(size, weight)| format!("{size}:{weight}"));
        choices.collect::<Vec<_>>().join(",")
    });
    let range = (size.clone(), size.clone()).prop_map(|(low, high)| format!("{low}-{high}"));
    let log_normal = (size.clone(), 1_u32..20).prop_map(|(mean, sigma)| {
        format!("log-normal:mean={mean},sigma={}", f64::from(sigma) / 8.0)
    });
    prop_oneof![3 => size, 1 => range, 1 => weighted, 1 => log_normal].boxed()
}

/// Some keys of some levels, and whatever they need of each other.
fn table(levels: &'static [Level], most: usize) -> impl Strategy<Value = Table> {
    subsequence(keys(levels), 0..=most)
        .prop_flat_map(|chosen| {
            let values: Vec<_> = chosen.iter().map(|key| value(key)).collect();
            (Just(chosen), values, any::<Index>())
        })
        .prop_map(|(chosen, values, which)| {
            let names = chosen.iter().map(|key| key.name);
            let mut table: Table = names.zip(values).collect();
            for key in chosen {
                meet(&mut table, key, which);
            }
            table
        })
}

/// Sets what a key needs in the same table, and what that needs.
fn meet(table: &mut Table, key: &'static Key, which: Index) {
    if key.needs.is_empty() {
        return;
    }
    let need = which.get(key.needs);
    let owner = find(need.key);
    if owner.level != key.level {
        return;
    }
    let fits = |value: &String| match need.values {
        [] => !["none", "false", "0%"].contains(&value.as_str()),
        values => values.contains(&value.as_str()),
    };
    if !table.get(owner.name).is_some_and(fits) {
        let value = need.values.first().unwrap_or(&owner.example);
        table.insert(owner.name, (*value).to_owned());
    }
    meet(table, owner, which);
}

fn drawn() -> impl Strategy<Value = DrawnWorkload> {
    let head = table(&[Level::Workload], 3);
    let common = table(&[Level::Stream], 3);
    let phase = (
        table(&[Level::Workload, Level::Phase], 3),
        table(&[Level::Stream], 2),
    );
    let streams = || prop::collection::vec(table(&[Level::Stream], 6), 1..4);
    let sets = prop::collection::vec(table(&[Level::Files], 4), 0..3);
    let phases = prop::collection::vec((phase, streams()), 0..3);
    let phases = prop_oneof![2 => Just(Vec::new()), 1 => phases];
    (head, prop::option::of(common), phases, streams(), sets).prop_map(assembled)
}

type Phases = Vec<((Table, Table), Vec<Table>)>;

fn assembled(
    (mut head, common, phases, streams, mut sets): (
        Table,
        Option<Table>,
        Phases,
        Vec<Table>,
        Vec<Table>,
    ),
) -> DrawnWorkload {
    let mut common = common.unwrap_or_default();
    common.retain(|name, _| !["name", "files", "operation"].contains(name));
    head.extend(common);
    let (mut phases, mut streams) = match phases.is_empty() {
        true => (Vec::new(), vec![streams]),
        false => phases.into_iter().unzip(),
    };
    let mut whole: Vec<Table> = Vec::new();
    for (index, (mut own, shared)) in phases.drain(..).enumerate() {
        own.extend(shared);
        for name in ["table", "operation", "files"] {
            own.remove(name);
        }
        own.insert("name", format!("p{index}"));
        whole.push(own);
    }
    let mut trees = false;
    let mut named = false;
    for load in &mut streams {
        let several = load.len() > 1 || !whole.is_empty();
        for (index, stream) in load.iter_mut().enumerate() {
            if several {
                stream.insert("name", format!("s{index}"));
            }
            if stream
                .get("operation")
                .is_some_and(|operation| operation != "none")
            {
                without_data(stream);
                stream.insert("files", TREE.to_owned());
                trees = true;
            } else {
                stream.remove("operation");
                stream.remove("order");
                let of_sets =
                    |name: &&str| find(name).needs.iter().any(|need| need.key == "nrfiles");
                named |= stream.keys().any(of_sets);
            }
        }
    }
    if named && sets.is_empty() {
        sets.push(Table::new());
    }
    for (index, set) in sets.iter_mut().enumerate() {
        set.remove("directories");
        let name = match index {
            0 => find("files").example.to_owned(),
            _ => format!("f{index}"),
        };
        set.insert("name", name);
    }
    if trees {
        let mut tree = sets.first().cloned().unwrap_or_default();
        tree.insert("name", TREE.to_owned());
        tree.insert("directories", "3".to_owned());
        tree.insert("nrfiles", "40".to_owned());
        tree.remove("fill");
        sets.push(tree);
    }
    DrawnWorkload {
        head,
        phases: whole,
        streams,
        sets,
    }
}

/// Takes out what means nothing beside `operation`.
fn without_data(stream: &mut Table) {
    let is_data = |key: &Key| key.data || key.needs.iter().any(|need| find(need.key).data);
    stream.retain(|name, _| !is_data(find(name)));
}

impl DrawnWorkload {
    fn text(&self) -> String {
        let mut text = lines(&self.head);
        for (index, streams) in self.streams.iter().enumerate() {
            let mut head = "stream";
            if let Some(phase) = self.phases.get(index) {
                head = "phase.stream";
                text += &format!("[[phase]]\n{}", lines(phase));
            }
            for stream in streams {
                text += &format!("[[{head}]]\n{}", lines(stream));
            }
        }
        for set in &self.sets {
            text += &format!("[[files]]\n{}", lines(set));
        }
        text
    }

    fn keys(&self) -> impl Iterator<Item = &'static str> {
        let tables = self.phases.iter().chain(self.streams.iter().flatten());
        let tables = tables.chain(&self.sets).chain([&self.head]);
        tables.flat_map(|table| table.keys().copied())
    }
}

fn lines(table: &Table) -> String {
    let lines = table.iter().map(|(name, value)| {
        let bare = matches!(find(name).kind, Kind::Flag | Kind::Integer | Kind::Number);
        match bare && value != "none" {
            true => format!("{name} = {value}\n"),
            false => format!("{name} = '{value}'\n"),
        }
    });
    lines.collect()
}

fn parse(text: &str, options: &[(String, String)]) -> Result<Workload, String> {
    Workload::parse(text, "f.toml", "drawn", options).map_err(|error| error.to_string())
}

/// A preset or a drawn file, and options for all its streams.
fn with_options() -> impl Strategy<Value = (String, Vec<(String, String)>)> {
    let presets: Vec<&str> = preset_names().collect();
    let preset = select(presets).prop_map(|name| preset_text(name).unwrap().to_owned());
    let text = prop_oneof![1 => preset, 1 => drawn().prop_map(|drawn| drawn.text())];
    (
        text,
        table(&[Level::Workload, Level::Stream, Level::Files], 5),
    )
        .prop_map(|(text, table)| {
            let options = table.into_iter().filter(|(name, _)| find(name).option);
            (
                text,
                options
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect(),
            )
        })
}

proptest! {
    #![proptest_config(Config { cases: 400, max_global_rejects: 100_000, ..Config::default() })]

    #[test]
    fn a_workload_written_out_resolves_to_itself(drawn in drawn()) {
        let workload = parse(&drawn.text(), &[]);
        prop_assume!(workload.is_ok());
        let workload = workload.unwrap();
        let written = workload.to_toml();
        prop_assert_eq!(parse(&written, &[]), Ok(workload.clone()), "{}\n--- written\n{}", drawn.text(), written);
        prop_assert_eq!(workload.to_toml(), written);
    }

    #[test]
    fn options_that_were_given_are_found_again((text, options) in with_options()) {
        let workload = parse(&text, &options);
        prop_assume!(workload.is_ok() && parse(&text, &[]).is_ok());
        let workload = workload.unwrap();
        let found = workload.options(&text, &[]);
        // A file says what options cannot.
        let again = match found {
            Some(found) => parse(&text, &found),
            None => parse(&workload.to_toml(), &[]),
        };
        prop_assert_eq!(again, Ok(workload));
    }
}

#[test]
fn every_key_of_the_table_is_drawn() {
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for _ in 0..3000 {
        let drawn = drawn().new_tree(&mut runner).unwrap().current();
        if parse(&drawn.text(), &[]).is_ok() {
            drawn
                .keys()
                .for_each(|name| *seen.entry(name).or_default() += 1);
        }
    }
    for key in KEYS {
        let count = seen.get(key.name).copied().unwrap_or(0);
        assert!(count >= 5, "{}: in {count} of 3000 drawn files", key.name);
    }
}

#[test]
fn presets_are_written_out_and_need_no_options() {
    for name in preset_names() {
        let text = preset_text(name).unwrap();
        let workload = Workload::parse(text, name, name, &[]).unwrap();
        let written = workload.to_toml();
        let again = Workload::parse(&written, name, name, &[]).unwrap();
        assert_eq!(again, workload, "{written}");
        assert_eq!(workload.options(text, &[]), Some(Vec::new()));
    }
}

#[test]
fn what_is_written_is_short_and_has_units() {
    let text = "
        seconds = 120
        seed = 1
        direct = true
        [[stream]]
        name = 'reader'
        size = '4096:7,65536:3'
        pattern = 'zipf'
        zipf_theta = 0.99
        rate = 500
        dsync = true
        [[stream]]
        name = 'log'
        write_fraction = 1
        size = 1048576
        dsync = true
        think = '1500us'
        [[files]]
        nrfiles = 3
        filesize = 1073741824
    ";
    let written = r#"seconds = "2m"
dsync = true

[[stream]]
name = "reader"
pattern = "zipf"
size = "4KiB:70,64KiB:30"
rate = "500 IOPS"

[[stream]]
name = "log"
size = "1MiB"
write_fraction = "100%"
think = "1500us"

[[files]]
nrfiles = 3
filesize = "1GiB"
"#;
    assert_eq!(parse(text, &[]).unwrap().to_toml(), written);
}

#[test]
fn options_for_sets_name_them_where_one_becomes_a_tree() {
    let text = "[[files]]\nname = 'small'\n[[files]]\nname = 'f1'\n";
    let options = [("nrfiles", "5"), ("operation", "create")];
    let options = options.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let workload = parse(text, &options).unwrap();
    let found = workload.options(text, &[]).unwrap();
    assert_eq!(parse(text, &found), Ok(workload), "{found:?}");
}

#[test]
fn what_all_phases_say_of_themselves_is_not_said_of_the_whole() {
    for key in ["ramp = '5s'", "seed = 7", "seconds = 9"] {
        let phases = ["p0", "p1"].map(|name| format!("[[phase]]\nname = '{name}'\n{key}\n"));
        let workload = parse(&phases.concat(), &[]).unwrap();
        let written = workload.to_toml();
        assert_eq!(parse(&written, &[]), Ok(workload), "{written}");
    }
}

#[test]
fn zones_of_writes_are_of_the_zoned_pattern_only() {
    let text = "pattern = 'zoned'\nwrite_zones = '10%:90,90%:10'\n[[stream]]\npattern = 'sequential'\nwindow = '1MiB'";
    let workload = parse(text, &[]).unwrap();
    assert_eq!(workload.streams[0].separate_writes, None);
    assert_eq!(parse(&workload.to_toml(), &[]), Ok(workload));
}
