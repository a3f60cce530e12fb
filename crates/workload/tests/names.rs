//! Operations on names: every name once per pass, in any order, by all workers together.

use proptest::prelude::*;
use spindle_workload::{Each, NameStream, Names, Op, Order, Request, Size, Stream, Tree, Workload};

fn stream(workers: u32, names: &Names) -> Stream {
    let workload = Workload::parse("", "test.toml", "test", &[]).expect("defaults");
    let mut stream = workload.streams.into_iter().next().expect("one stream");
    (stream.workers, stream.names) = (workers, Some(names.clone()));
    stream
}

fn names(operation: Op, order: Order, files: u64, directories: u64) -> Names {
    Names {
        operation,
        order,
        passes: Some(1),
        tree: Tree {
            name: "files".to_owned(),
            files,
            directories,
            size: None,
            each: Each::Stream,
        },
    }
}

fn open(stream: &Stream, worker: u32, seed: u64) -> NameStream {
    let names = stream.names.as_ref().expect("names");
    NameStream::new(stream, names, 0, worker, seed).expect("valid")
}

fn taken(mut requests: NameStream) -> Vec<u64> {
    std::iter::from_fn(|| requests.next_request())
        .map(|request: Request| request.offset)
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_workers_together_take_each_name_as_often_as_there_are_passes(
        files in 0_u64..3000,
        directories in 1_u64..40,
        workers in 1_u32..20,
        passes in 1_u32..4,
        own in any::<bool>(),
        random in any::<bool>(),
        on_directories in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let operation = if on_directories { Op::Readdir } else { Op::Stat };
        let order = if random { Order::Random } else { Order::Sequential };
        let mut names = names(operation, order, files, directories);
        names.passes = Some(passes);
        names.tree.each = if own { Each::Worker } else { Each::Stream };
        let stream = stream(workers, &names);
        let each = if on_directories { directories } else { files };
        let all = if own { each * u64::from(workers) } else { each };
        prop_assert_eq!(names.count(workers), all);

        let mut seen = vec![0_u32; all as usize];
        for worker in 0..workers {
            let part = names.part(workers, worker);
            if own {
                prop_assert_eq!(part.end - part.start, each);
            }
            for (index, number) in taken(open(&stream, worker, seed)).into_iter().enumerate() {
                prop_assert!(part.contains(&number));
                if !random {
                    prop_assert_eq!(number, part.start + index as u64 % (part.end - part.start));
                }
                seen[number as usize] += 1;
            }
        }
        prop_assert!(seen.iter().all(|&times| times == passes));
    }

    #[test]
    fn every_file_lies_in_a_directory_there_is(
        files in 1_u64..5000,
        directories in 1_u64..100,
        workers in 1_u32..9,
    ) {
        let tree = names(Op::Stat, Order::Sequential, files, directories).tree;
        let in_each = tree.files_in_each(workers);
        prop_assert!((tree.all_files(workers) - 1) / in_each < tree.all_directories(workers));
    }
}

#[test]
fn the_random_order_is_another_for_each_pass_worker_and_seed_and_the_same_again() {
    let mut names = names(Op::Stat, Order::Random, 2000, 10);
    names.passes = Some(2);
    let stream = stream(2, &names);
    let first = taken(open(&stream, 0, 7));
    assert_eq!(first, taken(open(&stream, 0, 7)));
    assert_ne!(first, taken(open(&stream, 0, 8)));
    assert_ne!(first[..1000], first[1000..], "passes");
    let second: Vec<u64> = taken(open(&stream, 1, 7))
        .iter()
        .map(|number| number - 1000)
        .collect();
    assert_ne!(first, second, "workers");
    // No visible order: as many rises as falls.
    let rises = first[..1000]
        .windows(2)
        .filter(|pair| pair[0] < pair[1])
        .count();
    assert!((400..600).contains(&rises), "{rises} of 999 are rises");
}

#[test]
fn without_a_number_of_passes_it_does_not_end() {
    let mut names = names(Op::Open, Order::Random, 10, 1);
    names.passes = None;
    let mut requests = open(&stream(1, &names), 0, 1);
    assert!((0..100_000).all(|_| requests.next_request().is_some()));

    // But a worker without names has nothing to begin with.
    names.tree.files = 0;
    assert_eq!(open(&stream(1, &names), 0, 1).next_request(), None);
}

#[test]
fn only_new_files_have_a_length_and_only_changes_are_synced() {
    let mut create = names(Op::Create, Order::Sequential, 1000, 1);
    create.tree.size = Some(Size::Range {
        min: 1000,
        max: 3000,
        step: 1,
    });
    for operation in [Op::Create, Op::Stat, Op::Unlink] {
        create.operation = operation;
        let mut stream = stream(1, &create);
        stream.sync.fsync_every = 10;
        let mut requests = open(&stream, 0, 1);
        let all: Vec<Request> = std::iter::from_fn(|| requests.next_request()).collect();
        let synced = all.iter().filter(|request| request.fsync_after).count();
        let bytes: u64 = all.iter().map(|request| u64::from(request.len)).sum();
        match operation {
            Op::Create => {
                assert_eq!(synced, 100);
                assert!((1_900_000..2_100_000).contains(&bytes), "{bytes}");
                assert!(
                    all.iter()
                        .all(|request| (1000..=3000).contains(&request.len))
                );
            }
            Op::Unlink => assert_eq!((synced, bytes), (100, 0)),
            _ => assert_eq!((synced, bytes), (0, 0)),
        }
    }
}
