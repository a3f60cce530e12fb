//! The keys of streams that work on names, and of their trees.

use spindle_workload::{Each, Op, Order, Size, Workload, preset_text};

fn parse(text: &str, options: &[(&str, &str)]) -> Result<Workload, String> {
    let options: Vec<(String, String)> = options
        .iter()
        .map(|&(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    Workload::parse(text, "w.toml", "w", &options).map_err(|error| error.to_string())
}

const TREE: &str = "operation = 'create'\n[[files]]\nnrfiles = 1000\ndirectories = 10\n";

fn refused(text: &str, options: &[(&str, &str)], says: &str) {
    let error = parse(text, options).expect_err(text);
    assert!(error.contains(says), "{error}\n--- {text}");
    assert!(!error.contains('\n'), "{error}");
}

#[test]
fn a_stream_of_names_has_its_tree_and_ends_by_itself() {
    let workload = parse(TREE, &[]).expect("valid");
    assert_eq!(workload.end.time_ns, None);
    assert!(
        workload.filesets.is_empty(),
        "nobody fills a tree with data"
    );
    let names = workload.streams[0].names.as_ref().expect("names");
    assert_eq!(
        (names.operation, names.order, names.passes),
        (Op::Create, Order::Sequential, Some(1))
    );
    let tree = &names.tree;
    assert_eq!(
        (tree.name.as_str(), tree.files, tree.directories),
        ("files", 1000, 10)
    );
    assert_eq!((tree.size.as_ref(), tree.each), (None, Each::Stream));
}

#[test]
fn options_say_how_many_names_there_are_and_how_large_the_files() {
    let options = [
        ("nrfiles", "5000"),
        ("directories", "7"),
        ("filesize", "4KiB-16KiB"),
        ("workers", "3"),
    ];
    let workload = parse(TREE, &options).expect("valid");
    let names = workload.streams[0].names.as_ref().expect("names");
    assert_eq!((names.tree.files, names.tree.directories), (5000, 7));
    assert!(matches!(
        names.tree.size,
        Some(Size::Range {
            min: 4096,
            max: 16384,
            ..
        })
    ));
    for (text, size) in [
        ("0", None),
        ("auto", None),
        ("1KiB", Some(Size::Fixed { bytes: 1024 })),
    ] {
        let workload = parse(TREE, &[("filesize", text)]).expect("valid");
        assert_eq!(
            workload.streams[0].names.as_ref().expect("names").tree.size,
            size
        );
    }
}

#[test]
fn passes_are_one_unless_the_operation_can_be_repeated() {
    let stat = TREE.replace("create", "stat");
    let passes = |text: &str, options: &[(&str, &str)]| {
        let workload = parse(text, options).expect("valid");
        (
            workload.streams[0].names.as_ref().expect("names").passes,
            workload.end.time_ns,
        )
    };
    assert_eq!(passes(&stat, &[("stop_passes", "3")]), (Some(3), None));
    assert_eq!(
        passes(&stat, &[("stop_passes", "none")]),
        (None, Some(60_000_000_000))
    );
    assert_eq!(
        passes(&stat, &[("seconds", "5")]),
        (Some(1), Some(5_000_000_000))
    );
    refused(TREE, &[("stop_passes", "2")], "must be 1");
    refused(TREE, &[("stop_passes", "none")], "must be 1");
}

#[test]
fn what_is_about_data_is_an_error_beside_an_operation() {
    refused(&format!("size = '64KiB'\n{TREE}"), &[], "size");
    refused(
        &format!("write_fraction = 1\n{TREE}"),
        &[],
        "only means something for data",
    );
    refused(TREE, &[("size", "64KiB")], "`size=`");
    refused(TREE, &[("direct", "true")], "only means something for data");
    refused("order = 'random'", &[], "`operation`");
    refused(
        "[[files]]\nnrfiles = 2\ndirectories = 2\nfilesize = '1MiB'",
        &[],
        "operation",
    );
}

#[test]
fn a_tree_that_cannot_be_is_refused() {
    refused("operation = 'create'", &[], "[[files]]");
    refused(TREE, &[("directories", "1001")], "more than the 1000 files");
    refused(TREE, &[("nrfiles", "0")], "nrfiles");
    refused(TREE, &[("filesize", "2GiB")], "1GiB");
    refused(TREE, &[("ramp", "1s")], "ramp");
    refused(&TREE.replace("create", "copy"), &[], "copy");
    let other = "[[files]]\nnrfiles = 9\n[[stream]]\noperation = 'stat'\nfiles = 'other'\n";
    refused(other, &[], "other");
}

#[test]
fn a_tree_is_not_shared_by_those_who_would_disturb_each_other() {
    let two = |first: &str, second: &str| {
        format!(
            "[[files]]\nnrfiles = 10\n[[stream]]\nname = 'a'\n{first}\n[[stream]]\nname = 'b'\n{second}\n"
        )
    };
    parse(&two("operation = 'stat'", "operation = 'open'"), &[]).expect("both look");
    refused(
        &two("operation = 'stat'", "operation = 'unlink'"),
        &[],
        "same tree",
    );
    refused(
        &two("operation = 'stat'", "size = '4KiB'"),
        &[],
        "tree for operations",
    );
    let apart = "[[files]]\nname = 'tree'\nnrfiles = 10\n[[files]]\nname = 'data'\nfilesize = '1MiB'\n\
                 [[stream]]\nname = 'a'\noperation = 'create'\nfiles = 'tree'\n\
                 [[stream]]\nname = 'b'\nsize = '4KiB'\nfiles = 'data'\n";
    let workload =
        parse(apart, &[("size", "8KiB")]).expect("an option for those that it means something to");
    assert_eq!(workload.filesets.len(), 1);
    assert_eq!(workload.streams[1].size, Size::Fixed { bytes: 8192 });
    // The stream of data ends the run, not the names.
    assert_eq!(workload.end.time_ns, Some(60_000_000_000));
}

#[test]
fn the_preset_goes_through_every_operation() {
    let text = preset_text("metadata").expect("preset");
    let workload = parse(
        text,
        &[("nrfiles", "10"), ("directories", "2"), ("workers", "2")],
    )
    .expect("valid");
    let done: Vec<Op> = workload
        .loads()
        .map(|load| load.streams[0].names.as_ref().expect("names").operation)
        .collect();
    for operation in [
        Op::Mkdir,
        Op::Create,
        Op::Stat,
        Op::Open,
        Op::Readdir,
        Op::Rename,
        Op::Unlink,
        Op::Rmdir,
    ] {
        assert!(done.contains(&operation), "{operation:?}");
    }
    assert!(workload.loads().all(|load| load.streams[0].workers == 2));
    assert!(workload.loads().all(|load| load.end.time_ns.is_none()));
}

#[test]
fn what_must_be_there_first_can_be_made_by_a_load_of_its_own() {
    let text = TREE.replace("create", "stat").replace(
        "operation",
        "workers = 4\nrate = 100\nstop_requests = 5\noperation",
    );
    let workload = parse(&text, &[]).expect("valid");
    let made = workload.only_names(0, Op::Mkdir).expect("names");
    let stream = &made.streams[0];
    assert_eq!(stream.names.as_ref().expect("names").operation, Op::Mkdir);
    assert_eq!(
        (stream.workers, stream.end.requests, made.end.time_ns),
        (4, None, None)
    );
    assert_eq!(Op::on_names("mkdir"), Some(Op::Mkdir));
    assert_eq!((Op::on_names("read"), Op::on_names("none")), (None, None));
    assert!(
        parse("", &[])
            .expect("data")
            .only_names(0, Op::Mkdir)
            .is_none()
    );
}
