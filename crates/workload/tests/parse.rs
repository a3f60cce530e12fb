//! Workload files: texts that are read, texts that are refused, and the messages.

use spindle_workload::{
    Arrival, Content, KEYS, Kind, Level, Pattern, Peak, Place, Priority, PriorityClass, RateLimit,
    RequestStream, Size, Spacing, SteadyMetric, SteadyRule, Workload, preset_names, preset_text,
    workload_keys,
};

fn parse(text: &str) -> Workload {
    Workload::parse(text, "f.toml", "test", &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn error(text: &str) -> String {
    Workload::parse(text, "f.toml", "test", &[])
        .expect_err(text)
        .to_string()
}

fn options(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

fn with(text: &str, pairs: &[(&str, &str)]) -> Result<Workload, String> {
    Workload::parse(text, "f.toml", "test", &options(pairs)).map_err(|error| error.to_string())
}

const TWO: &str = "
size = '8KiB'
workers = 3

[[stream]]
name = 'reader'
pattern = 'sequential'
size = '1MiB'

[[stream]]
name = 'log'
write_fraction = 1
";

#[test]
fn an_empty_file_is_one_uniform_stream_of_direct_4_kib_reads_for_a_minute() {
    let workload = parse("");
    assert_eq!(workload.name, "test");
    assert_eq!(workload.table, "streams");
    assert_eq!((workload.seed, workload.ramp_ns), (1, 0));
    assert_eq!(workload.end.time_ns, Some(60_000_000_000));
    let [stream] = &workload.streams[..] else {
        panic!("one stream")
    };
    assert_eq!(stream.name, "main");
    assert_eq!(stream.size, Size::Fixed { bytes: 4096 });
    assert_eq!(stream.pattern, Pattern::Uniform);
    assert_eq!(
        (stream.workers, stream.depth, stream.align_bytes),
        (1, 1, 0)
    );
    assert!(stream.direct);
    assert_eq!(stream.arrival, Arrival::Closed);
    assert_eq!(stream.region.end, Place::Fraction { fraction: 1.0 });
}

#[test]
fn each_key_is_read_into_its_field() {
    let workload = parse(
        "
        about = 'all keys'
        table = 'per-second'
        seconds = '2m'
        bytes = '1GiB'
        requests = 5000
        until_steady = true
        ramp = '5s'
        seed = 18446744073709551615

        [[stream]]
        name = 'a'
        pattern = 'hot-set'
        hot_space = '5%'
        hot_access = 0.95
        size = '4KiB-64KiB:step=4KiB'
        align = '4KiB'
        region = '10%-2GiB'
        write_fraction = '50%'
        trim_fraction = 0.25
        zero_fraction = 0.25
        content = 'compressible:40%'
        direct = false
        fsync_every = 8
        dsync = true
        end_fsync = true
        workers = 4
        depth = 0x10
        rate_limit = '10 MB/s'
        think = '10ms'
        think_spread = 'exponential'
        priority = 'idle'
        start_delay = '1.5s'
        stop_after = 30
        stop_bytes = '1 MB'
        stop_requests = 77

        [[stream]]
        name = 'b'
        rate = '500 IOPS'
        spacing = 'poisson'
        priority = 'realtime:0'
        fsync_fraction = 0.5
        ",
    );
    assert_eq!(workload.about, "all keys");
    assert_eq!(workload.table, "per-second");
    assert_eq!(workload.end.time_ns, Some(120_000_000_000));
    assert_eq!(
        (workload.end.bytes, workload.end.requests),
        (Some(1 << 30), Some(5000))
    );
    assert!(workload.end.steady);
    assert_eq!((workload.ramp_ns, workload.seed), (5_000_000_000, u64::MAX));
    let a = &workload.streams[0];
    assert_eq!(
        a.pattern,
        Pattern::HotSet {
            space: 0.05,
            access: 0.95
        }
    );
    assert_eq!(
        a.size,
        Size::Range {
            min: 4096,
            max: 65_536,
            step: 4096
        }
    );
    assert_eq!(a.align_bytes, 4096);
    assert_eq!(a.region.offset, Place::Fraction { fraction: 0.1 });
    assert_eq!(a.region.end, Place::Bytes { bytes: 2 << 30 });
    assert_eq!((a.mix.write, a.mix.trim, a.mix.zero), (0.5, 0.25, 0.25));
    assert_eq!(a.content, Content::Compressible { ratio: 0.4 });
    assert!(!a.direct && a.sync.dsync && a.sync.end_fsync);
    assert_eq!((a.sync.fsync_every, a.workers, a.depth), (8, 4, 16));
    assert_eq!(a.rate_limit, Some(RateLimit::Bytes { bytes_per_s: 1e7 }));
    let think = a.think.unwrap();
    assert_eq!((think.mean_ns, think.exponential), (10_000_000, true));
    assert_eq!(
        a.priority,
        Some(Priority {
            class: PriorityClass::Idle,
            level: 0
        })
    );
    assert_eq!(a.start_delay_ns, 1_500_000_000);
    assert_eq!(
        (a.end.time_ns, a.end.bytes, a.end.requests),
        (Some(30_000_000_000), Some(1_000_000), Some(77))
    );
    let b = &workload.streams[1];
    assert_eq!(
        b.arrival,
        Arrival::Open {
            rate_iops: 500.0,
            spacing: Spacing::Poisson
        }
    );
    assert_eq!(
        b.priority,
        Some(Priority {
            class: PriorityClass::Realtime,
            level: 0
        })
    );
    assert_eq!(b.sync.fsync_fraction, 0.5);
}

#[test]
fn each_pattern_and_size_is_read() {
    let pattern = |text: &str| parse(text).streams[0].pattern.clone();
    assert_eq!(pattern("pattern = 'sequential'"), Pattern::Sequential);
    assert_eq!(
        pattern("pattern = 'zipf'"),
        Pattern::Zipf {
            theta: 0.99,
            peak: Peak::ANYWHERE
        }
    );
    assert_eq!(
        pattern("pattern = 'zipf'\nzipf_theta = 1.2"),
        Pattern::Zipf {
            theta: 1.2,
            peak: Peak::ANYWHERE
        }
    );
    assert_eq!(
        pattern("pattern = 'strided'\nstride = '256KiB'"),
        Pattern::Strided {
            stride_bytes: 262_144
        }
    );
    assert_eq!(
        pattern("pattern = 'strided'\nsize = '8KiB'\nstride = '17x'"),
        Pattern::Strided {
            stride_bytes: 17 * 8192
        }
    );
    assert_eq!(
        pattern("pattern = 'runs'\nrun_length = 9"),
        Pattern::Runs {
            mean_requests: 9.0,
            fixed: false,
            repeat: false
        }
    );
    let size = |text: &str| parse(&format!("size = {text}")).streams[0].size.clone();
    assert_eq!(size("512"), Size::Fixed { bytes: 512 });
    assert_eq!(
        size("'4KiB-64KiB'"),
        Size::Range {
            min: 4096,
            max: 65_536,
            step: 0
        }
    );
    assert_eq!(
        size("'4KiB:70, 64KiB:30'"),
        Size::Weighted {
            choices: vec![(4096, 0.7), (65_536, 0.3)]
        }
    );
    assert_eq!(
        size("'log-normal:mean=26KiB,sigma=1.5,min=1KiB,max=512KiB,step=1KiB'"),
        Size::LogNormal {
            mean: 26_624.0,
            sigma: 1.5,
            min: 1024,
            max: 524_288,
            step: 1024
        }
    );
    assert_eq!(
        size("'log-normal:mean=26KiB'"),
        Size::LogNormal {
            mean: 26_624.0,
            sigma: 1.0,
            min: 512,
            max: 851_968,
            step: 0
        }
    );
}

#[test]
fn the_head_of_a_file_holds_for_all_streams_unless_they_say_otherwise() {
    let workload = parse(TWO);
    let [reader, log] = &workload.streams[..] else {
        panic!("two streams")
    };
    assert_eq!(
        (reader.size.clone(), log.size.clone()),
        (Size::Fixed { bytes: 1 << 20 }, Size::Fixed { bytes: 8192 })
    );
    assert_eq!((reader.workers, log.workers), (3, 3));
}

#[test]
fn options_go_before_the_file_and_those_of_one_stream_before_those_of_all() {
    let workload = with(
        TWO,
        &[
            ("log.size", "2KiB"),
            ("size", "64KiB"),
            ("reader.depth", "7"),
            ("seconds", "10"),
            ("write-fraction", "0"),
        ],
    )
    .unwrap();
    let [reader, log] = &workload.streams[..] else {
        panic!("two streams")
    };
    assert_eq!(reader.size, Size::Fixed { bytes: 65_536 });
    assert_eq!(log.size, Size::Fixed { bytes: 2048 });
    assert_eq!((reader.depth, log.depth), (7, 1));
    assert_eq!(log.mix.write, 0.0);
    assert_eq!(workload.end.time_ns, Some(10_000_000_000));
}

#[test]
fn the_last_of_two_equal_options_holds() {
    assert_eq!(
        with("", &[("depth", "2"), ("depth", "3")]).unwrap().streams[0].depth,
        3
    );
}

#[test]
fn an_option_for_another_pattern_overrules_the_old_one_s_parameters() {
    let zipf = "pattern = 'zipf'\nzipf_theta = 1.2";
    assert_eq!(
        with(zipf, &[("pattern", "uniform")]).unwrap().streams[0].pattern,
        Pattern::Uniform
    );
    assert_eq!(
        with("", &[("zipf_theta", "1.2")]).unwrap_err(),
        "`zipf_theta=`: only means something with pattern = \"zipf\""
    );
}

#[test]
fn none_takes_an_option_out_of_force() {
    let limited = "rate_limit = '10 MB/s'\nthink = '1ms'\npriority = 'idle'\nalign = 512";
    let stream = &with(
        limited,
        &[
            ("rate_limit", "none"),
            ("think", "none"),
            ("priority", "none"),
            ("align", "none"),
            ("rate", "100"),
        ],
    )
    .unwrap()
    .streams[0];
    assert_eq!(
        (
            stream.rate_limit,
            stream.think,
            stream.priority,
            stream.align_bytes
        ),
        (None, None, None, 0)
    );
    assert_eq!(
        stream.arrival,
        Arrival::Open {
            rate_iops: 100.0,
            spacing: Spacing::Constant
        }
    );
}

#[test]
fn another_end_takes_the_place_of_the_default_minute() {
    let end = |text: &str| parse(text).end;
    assert_eq!(end("bytes = '1GiB'").time_ns, None);
    assert_eq!(end("requests = 10").time_ns, None);
    assert_eq!(end("until_steady = true").time_ns, Some(600_000_000_000));
    assert_eq!(end("until_steady = true\nseconds = 'none'").time_ns, None);
    let patient = end("until_steady = true\nsteady_window = '5m'");
    assert_eq!(patient.time_ns, Some(3_000_000_000_000));
    assert_eq!(
        end("bytes = '1GiB'\nseconds = 5").time_ns,
        Some(5_000_000_000)
    );
    assert_eq!(
        error("seconds = 'none'"),
        "f.toml:1: seconds: nothing ends the run; set seconds, bytes, requests, until_steady or stop_passes"
    );
}

#[test]
fn what_is_steady_can_be_said() {
    let rule = |text: &str| parse(text).end.steady_rule;
    assert_eq!(rule(""), None);
    assert_eq!(rule("until_steady = true"), Some(SteadyRule::default()));
    let asked = rule(
        "until_steady = true\nsteady_metric = 'latency'\nsteady_window = '30s'\nsteady_range = '5%'\n\
         steady_slope = 0.02\nsteady_drift = 'none'",
    );
    let expected = SteadyRule {
        metric: SteadyMetric::Latency,
        window_ns: 30_000_000_000,
        range: 0.05,
        slope: 0.02,
        drift_per_minute: None,
    };
    assert_eq!(asked, Some(expected));
    assert_eq!(
        error("steady_window = '30s'"),
        "f.toml:1: steady_window: only means something with until_steady"
    );
    assert_eq!(
        error("until_steady = true\nsteady_window = '1s'"),
        "f.toml:2: steady_window: must be 3s to 24h"
    );
    assert_eq!(
        error("until_steady = true\nsteady_drift = '0%'"),
        "f.toml:2: steady_drift: must be above 0%"
    );
}

#[test]
fn errors_name_place_key_and_what_is_allowed() {
    for (text, message) in [
        (
            "\n\nsise = 4",
            "f.toml:3: unknown key `sise`; did you mean `size`?",
        ),
        (
            "[[stream]]\nname = 'x'\nwrites = 0.2",
            "f.toml:3: unknown key `writes` in [stream \"x\"]; did you mean `write_fraction`?",
        ),
        (
            "[[stream]]\nname = 'x'\n\nseed = 2",
            "f.toml:4: seed in [stream \"x\"]: belongs to the whole workload; write it before the first [[stream]]",
        ),
        (
            "[[stream]]\n[[stream]]",
            "f.toml:1: missing key `name` in [[stream]] number 1",
        ),
        (
            "[[stream]]\nname = 'a'\n[[stream]]\nname = 'a'",
            "f.toml:4: name in [[stream]] number 2: there are two streams `a`",
        ),
        (
            "name = 'q'\n[[stream]]\nname = 'a'\n[[stream]]\nname = 'b'",
            "f.toml:1: name: each of several streams needs a name of its own",
        ),
        (
            "name = 'a b'",
            "f.toml:1: name: `a b` is not 1 to 32 letters, digits, - or _",
        ),
        (
            "[stream]\nname = 'a'",
            "f.toml:1: stream: expected tables, each headed [[stream]], found a table",
        ),
        (
            "size = '64k'",
            "f.toml:1: size: `64k` could mean powers of 1000 or 1024; write kB or KiB",
        ),
        (
            "size = 0",
            "f.toml:1: size: `0` is not a request size from 1 byte to 1GiB",
        ),
        (
            "size = '2GiB'",
            "f.toml:1: size: `2GiB` is not a request size from 1 byte to 1GiB",
        ),
        (
            "size = true",
            "f.toml:1: size: expected a size such as \"64KiB\", found true",
        ),
        (
            "size = '64KiB-4KiB'",
            "f.toml:1: size: the smallest size 64KiB is above the largest 4KiB",
        ),
        (
            "size = '4KiB-64KiB:stop=1'",
            "f.toml:1: size: unknown parameter `stop`; did you mean `step`?",
        ),
        (
            "size = '4KiB-64KiB:step=7KiB'",
            "f.toml:1: size: the step 7KiB does not lead from 4KiB to 64KiB",
        ),
        (
            "size = '4KiB:0'",
            "f.toml:1: size: the weight `0` is not a positive number",
        ),
        (
            "size = '4KiB:1,8KiB'",
            "f.toml:1: size: each size of a list needs a weight: 4KiB:70,64KiB:30",
        ),
        (
            "size = 'log-normal'",
            "f.toml:1: size: write log-normal:mean=26KiB, and if need be sigma=1, min=1KiB, max=512KiB, step=512",
        ),
        (
            "size = 'log-normal:mean=1MiB,max=512KiB'",
            "f.toml:1: size: the mean 1MiB must be between the smallest size 512B and the largest 512KiB",
        ),
        (
            "size = 5000\nalign = 4096",
            "f.toml:2: align: neither of size 5kB and align 4KiB is a multiple of the other",
        ),
        ("align = 0", "f.toml:1: align: must be above 0, or none"),
        (
            "write_fraction = 20",
            "f.toml:1: write_fraction: `20` is outside 0% to 100%; write 20% or 0.2",
        ),
        (
            "write_fraction = -0.1",
            "f.toml:1: write_fraction: `-0.1` is outside 0% to 100%; write 20% or 0.2",
        ),
        (
            "write_fraction = nan",
            "f.toml:1: write_fraction: `nan` is not a fraction such as 20% or 0.2",
        ),
        (
            "write_fraction = 0.7\ntrim_fraction = 0.5",
            "f.toml:2: trim_fraction: writes, trims, zeroes and rewrites come to 120%, above 100%",
        ),
        (
            "region = '10%-10%'",
            "f.toml:1: region: `10%-10%` is empty: its end must be after its start",
        ),
        (
            "region = '2GiB-1GiB'",
            "f.toml:1: region: `2GiB-1GiB` is empty: its end must be after its start",
        ),
        (
            "workers = 0",
            "f.toml:1: workers: expected a whole number from 1 to 65536, found 0",
        ),
        (
            "workers = '4'",
            "f.toml:1: workers: expected a whole number from 1 to 65536, found \"4\"",
        ),
        (
            "workers = 1.5",
            "f.toml:1: workers: expected a whole number from 1 to 65536, found 1.5",
        ),
        (
            "workers = 300\ndepth = 300",
            "f.toml:2: depth: workers x depth of all streams come to 90000; at most 65536 requests can be outstanding",
        ),
        (
            "pattern = 'random'",
            "f.toml:1: pattern: `random` is none of sequential, uniform, shuffled, zipf, pareto, normal, hot-set, zoned, strided, runs, backward",
        ),
        (
            "pattern = 'sequental'",
            "f.toml:1: pattern: `sequental` is none of sequential, uniform, shuffled, zipf, pareto, normal, hot-set, zoned, strided, runs, backward; \
             did you mean `sequential`?",
        ),
        (
            "pattern = 'zipf'\nzipf_theta = 0",
            "f.toml:2: zipf_theta: expected a number from 0.01 to 10, found 0",
        ),
        (
            "stride = '1MiB'",
            "f.toml:1: stride: only means something with pattern = \"strided\"",
        ),
        (
            "pattern = 'strided'\nsize = '64KiB'\nstride = '100KiB'",
            "f.toml:3: stride: must be a positive multiple of the alignment, 64KiB",
        ),
        (
            "pattern = 'strided'\nsize = '4KiB-64KiB'\nstride = '17x'",
            "f.toml:3: stride: counts requests, whose sizes vary; give it in bytes",
        ),
        (
            "pattern = 'strided'\nstride = '0x'",
            "f.toml:2: stride: must be a positive multiple of the alignment, 4KiB",
        ),
        (
            "pattern = 'hot-set'\nhot_space = 0",
            "f.toml:2: hot_space: must be above 0% and below 100%",
        ),
        (
            "rate = '10 IOPS'\nthink = '1ms'",
            "f.toml:2: think: `rate` (open loop) and `think` (closed loop) exclude each other; \
             leave one out or set it to none",
        ),
        (
            "rate = '10 IOPS'\nrate_limit = '5 MB/s'",
            "f.toml:2: rate_limit: `rate` (open loop) and `rate_limit` (closed loop) exclude each other; \
             leave one out or set it to none",
        ),
        (
            "rate = '10 MB/s'",
            "f.toml:1: rate: must be in requests per second, such as 500 IOPS",
        ),
        (
            "spacing = 'poisson'",
            "f.toml:1: spacing: only means something with `rate` or `worker_rate`",
        ),
        (
            "think_spread = 'exponential'",
            "f.toml:1: think_spread: only means something with `think`",
        ),
        (
            "fsync_every = 1\nfsync_fraction = 0.1",
            "f.toml:2: fsync_fraction: `fsync_every` and `fsync_fraction` exclude each other; set one of them to 0",
        ),
        (
            "priority = 'high'",
            "f.toml:1: priority: `high` is none of realtime, best-effort, idle",
        ),
        (
            "priority = 'best-effort:8'",
            "f.toml:1: priority: the level `8` is not 0 (highest) to 7",
        ),
        (
            "priority = 'idle:1'",
            "f.toml:1: priority: idle has no levels",
        ),
        (
            "content = 'text'",
            "f.toml:1: content: `text` is none of random, zero, compressible:50%",
        ),
        (
            "content = 'compressible:2'",
            "f.toml:1: content: `2` is outside 0% to 100%; write 20% or 0.2",
        ),
        (
            "ramp = 5",
            "f.toml:1: ramp: `5` lacks a unit; use ns, us, ms, s, m, h or d",
        ),
        ("seconds = 0", "f.toml:1: seconds: must be above 0, or none"),
        ("seconds = -3", "f.toml:1: seconds: `-3` is negative"),
        (
            "seed = -1",
            "f.toml:1: seed: expected a whole number, not negative, found -1",
        ),
        ("checksum = true", "f.toml:1: unknown key `checksum`"),
        (
            "size = 4\nsize = 5",
            "f.toml:2: not valid TOML: duplicate key",
        ),
        (
            "\nsize = ",
            "f.toml:2: not valid TOML: string values must be quoted, expected literal string",
        ),
    ] {
        let got = error(text);
        if text.starts_with("checksum") {
            assert!(got.starts_with(message), "{got}");
        } else {
            assert_eq!(got, message);
        }
    }
}

#[test]
fn errors_of_options_name_the_option() {
    for (pairs, message) in [
        (
            ("size", "64k"),
            "`size=`: `64k` could mean powers of 1000 or 1024; write kB or KiB",
        ),
        (("sise", "4KiB"), "unknown key `sise`; did you mean `size`?"),
        (
            ("lag.size", "4KiB"),
            "`lag.size=`: unknown stream `lag`; did you mean `log`?",
        ),
        (
            ("log.seed", "4"),
            "`log.seed=`: belongs to the whole workload; write seed",
        ),
        (("name", "x"), "name: can only be set in a file"),
        (
            ("direct", "yes"),
            "`direct=`: expected true or false, found `yes`",
        ),
        (
            ("workers", "many"),
            "`workers=`: expected a whole number from 1 to 65536, found `many`",
        ),
    ] {
        assert_eq!(with(TWO, &[pairs]).unwrap_err(), message);
    }
}

#[test]
fn a_stream_that_would_begin_after_the_end_is_refused() {
    let late = "seconds = 2\nramp = '1s'\nstart_delay = '3s'";
    assert_eq!(
        error(late),
        "f.toml:3: start_delay: the run, ramp included, ends before the stream would begin; lengthen seconds"
    );
    assert!(with("seconds = 2\nramp = '1s'\nstart_delay = '2999ms'", &[]).is_ok());
    assert!(with("seconds = 'none'\nbytes = '1GiB'\nstart_delay = '3s'", &[]).is_ok());
}

#[test]
fn what_does_not_fit_the_whole_is_refused() {
    let mut many = String::new();
    for index in 0..65 {
        many += &format!("[[stream]]\nname = 's{index}'\n");
    }
    assert!(error(&many).contains("65 streams are too many; at most 64 can run"));
    let long = format!("about = '{}'", "x".repeat(2 << 20));
    assert!(error(&long).contains("at most 1048576 are read"));
    let deep = format!("size = {}{}", "[".repeat(10_000), "]".repeat(10_000));
    assert!(
        error(&deep).starts_with("f.toml:1: not valid TOML: "),
        "{}",
        error(&deep)
    );
    let dotted = format!("{}a = 1", "a.".repeat(10_000));
    assert!(
        error(&dotted).starts_with("f.toml:1: "),
        "{}",
        error(&dotted)
    );
}

#[test]
fn the_user_s_own_text_cannot_break_a_message() {
    for text in [
        "\"a\\nb\\u001b[2J\" = 1".to_owned(),
        format!("\"{}\" = 1", "k".repeat(5000)),
        "size = \"\\n\\n\\u202e\"".to_owned(),
        "[[stream]]\nname = \"\\u0007\"".to_owned(),
        "pattern = \"\"\"\n\n\nx\"\"\"".to_owned(),
    ] {
        let message = error(&text);
        assert!(
            !message.chars().any(|c| c.is_control() || c == '\u{202e}'),
            "{message:?}"
        );
        assert!(message.len() < 1000, "{message}");
    }
    let source = Workload::parse("x = 1", "a\nb\x1b.toml", "x", &[])
        .unwrap_err()
        .to_string();
    assert!(source.starts_with("a?b?.toml:1: "), "{source}");
}

#[test]
fn every_preset_is_valid_and_runs_on_a_device_with_either_block_size() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalogue/presets");
    let files = std::fs::read_dir(folder).expect("a folder").count();
    assert_eq!(preset_names().count(), files);
    for name in preset_names() {
        let workload = Workload::parse(preset_text(name).unwrap(), name, name, &[]).unwrap();
        assert!(!workload.about.is_empty());
        let loads = workload.loads();
        let streams = loads.flat_map(|load| load.streams.iter().enumerate());
        for (index, stream) in streams {
            for block in [1, 512, 4096] {
                RequestStream::new(stream, index, stream.workers - 1, 1, 1 << 30, block)
                    .unwrap_or_else(|error| panic!("{name}, block {block}: {error}"));
            }
        }
    }
}

#[test]
fn presets_are_what_the_tools_they_stand_for_do() {
    let preset = |name: &str| Workload::parse(preset_text(name).unwrap(), name, name, &[]).unwrap();
    let randomio = preset("randomio");
    let stream = &randomio.streams[0];
    assert_eq!(randomio.table, "randomio");
    assert_eq!(
        (stream.mix.write, stream.sync.fsync_fraction, stream.depth),
        (0.2, 0.1, 1)
    );
    assert!(stream.direct);
    assert_eq!(preset("seeker").table, "seeker");
    let hdparm = preset("hdparm");
    assert_eq!(hdparm.end.time_ns, Some(3_000_000_000));
    assert!(!hdparm.streams[0].direct);
    assert!(preset("sdd-write").streams[0].sync.end_fsync);
    let oltp = preset("oltp").streams.remove(0);
    assert_eq!(oltp.mix.write, 0.1);
    assert_eq!(
        oltp.size,
        Size::LogNormal {
            mean: 26_624.0,
            sigma: 1.0,
            min: 1024,
            max: 524_288,
            step: 0
        }
    );
    let mixed = preset("mixed");
    assert_eq!(mixed.streams.len(), 2);
    assert!(mixed.streams.iter().all(|stream| stream.priority.is_some()));
    assert_ne!(mixed.streams[0].priority, mixed.streams[1].priority);
}

#[test]
fn an_unknown_preset_names_the_nearest() {
    assert_eq!(
        preset_text("randomoi").unwrap_err().to_string(),
        "unknown preset `randomoi`; did you mean `randomio`?"
    );
    assert!(
        preset_text("zzz")
            .unwrap_err()
            .to_string()
            .contains("known: randomio, seeker")
    );
}

#[test]
fn every_default_and_example_of_the_key_table_is_valid() {
    for key in KEYS {
        let owner = match key.name {
            "zipf_theta" => "pattern = 'zipf'\n",
            "hot_space" | "hot_access" => "pattern = 'hot-set'\n",
            "stride" => "pattern = 'strided'\n",
            "run_length" | "run_fixed" | "run_repeat" => "pattern = 'runs'\n",
            "pareto_share" => "pattern = 'pareto'\n",
            "deviation" | "center" | "scattered" => "pattern = 'normal'\n",
            "zones" | "write_zones" => "pattern = 'zoned'\n",
            "trim_first" => "write_fraction = 1.0\n",
            "think_every" | "think_work" => "think = '10ms'\n",
            "think_spin" => "think = '10ms'\nthink_every = 4\n",
            "spacing" => "rate = 10\n",
            "think_spread" => "think = '1ms'\n",
            name if name.starts_with("steady_") => "until_steady = true\n",
            "window_bytes" | "window_skip" => "window = '256MiB'\n",
            "dedupe_set" => "dedupe = '30%'\n",
            "mapped" => "direct = false\n",
            "fsync_between" => "fsync_every = 4\n",
            "order" => "operation = 'stat'\n",
            "directories" => "operation = 'stat'\n[[files]]\nnrfiles = 5000\n",
            "files" => "[[files]]\nname = 'small'\n[[stream]]\n",
            _ if key.level == Level::Files => "[[files]]\n",
            _ if key.level == Level::Phase => "[[phase]]\nname = 'a'\n",
            _ => "",
        };
        let behind = match key.name {
            "file_service_type" | "file_requests" | "operation" | "order" => "\n[[files]]\n",
            _ => "",
        };
        for text in [key.default, key.example] {
            let bare = match key.kind {
                Kind::Flag | Kind::Integer | Kind::Number => text != "none",
                _ => false,
            };
            let quoted = if bare {
                text.to_owned()
            } else {
                format!("'{text}'")
            };
            parse(&format!("{owner}{} = {quoted}{behind}", key.name));
            if key.option {
                with(&format!("{owner}{behind}"), &[(key.name, text)]).unwrap();
            }
        }
        assert!(!key.help.is_empty() && !key.help.contains('\n'));
        assert_eq!(
            key.choices.is_empty(),
            key.kind != Kind::Choice,
            "{}",
            key.name
        );
    }
}

#[test]
fn keys_are_listed_as_json() {
    let json: serde_json::Value = serde_json::from_str(&workload_keys().unwrap()).unwrap();
    let keys = json.as_array().unwrap();
    assert_eq!(keys.len(), KEYS.len());
    let pattern = keys.iter().find(|key| key["name"] == "pattern").unwrap();
    assert_eq!(pattern["level"], "stream");
    assert_eq!(pattern["kind"], "choice");
    assert_eq!(pattern["choices"][1], "uniform");
    let direct = keys.iter().find(|key| key["name"] == "direct").unwrap();
    assert_eq!(direct["opposite"], "buffered");
}

const PHASES: &str = "
size = '8KiB'
seconds = 10
workers = 2

[[phase]]
name = 'fill'
write_fraction = 1
bytes = '1GiB'
seconds = 'none'

[[phase]]
name = 'serve'
about = 'both at once'
drop_caches = false
workers = 3

[[phase.stream]]
name = 'reader'
size = '64KiB'

[[phase.stream]]
name = 'log'
write_fraction = 1
workers = 4
";

#[test]
fn each_phase_is_an_ordinary_workload_that_inherits_from_the_head_and_from_its_own_head() {
    let workload = parse(PHASES);
    assert!(workload.streams.is_empty());
    let [fill, serve] = &workload.phases[..] else {
        panic!("two phases")
    };
    assert_eq!((fill.load.name.as_str(), fill.drop_caches), ("fill", true));
    assert_eq!(fill.load.end.bytes, Some(1 << 30));
    assert_eq!(fill.load.end.time_ns, None);
    assert!(fill.load.phases.is_empty());
    let main = &fill.load.streams[0];
    assert_eq!(
        (main.name.as_str(), main.workers, main.mix.write),
        ("main", 2, 1.0)
    );
    assert_eq!(
        (serve.load.about.as_str(), serve.drop_caches),
        ("both at once", false)
    );
    assert_eq!(serve.load.end.time_ns, Some(10_000_000_000));
    let [reader, log] = &serve.load.streams[..] else {
        panic!("two streams")
    };
    assert_eq!(
        (reader.workers, &reader.size),
        (3, &Size::Fixed { bytes: 65_536 })
    );
    assert_eq!((log.workers, &log.size), (4, &Size::Fixed { bytes: 8192 }));
    assert_eq!(workload.loads().count(), 2);
    assert_eq!(parse("").loads().count(), 1);
}

#[test]
fn passes_end_the_run_where_every_stream_has_some() {
    assert_eq!(parse("stop_passes = 2").streams[0].passes, Some(2.0));
    assert_eq!(parse("stop_passes = 2").end.time_ns, None);
    let one_of_two = "[[stream]]\nname = 'a'\nstop_passes = 1\n[[stream]]\nname = 'b'";
    assert_eq!(parse(one_of_two).end.time_ns, Some(60_000_000_000));
    assert_eq!(
        parse("stop_passes = 1\nseconds = 5").end.time_ns,
        Some(5_000_000_000)
    );
    assert_eq!(
        error("write_fraction = 0.6\nrewrite_fraction = 0.6"),
        "f.toml:2: rewrite_fraction: writes, trims, zeroes and rewrites come to 120%, above 100%"
    );
}

#[test]
fn options_are_for_all_phases_for_one_or_for_one_stream_and_the_closer_one_wins() {
    let sizes = |pairs: &[(&str, &str)]| -> Vec<Size> {
        let workload = with(PHASES, pairs).unwrap();
        let streams = workload
            .phases
            .iter()
            .flat_map(|phase| phase.load.streams.clone());
        streams.map(|stream| stream.size).collect()
    };
    let fixed = |kib: [u32; 3]| kib.map(|kib| Size::Fixed { bytes: kib << 10 }).to_vec();
    assert_eq!(sizes(&[("size", "1KiB")]), fixed([1, 1, 1]));
    assert_eq!(sizes(&[("serve.size", "1KiB")]), fixed([8, 1, 1]));
    assert_eq!(sizes(&[("serve.log.size", "1KiB")]), fixed([8, 64, 1]));
    assert_eq!(sizes(&[("log.size", "1KiB")]), fixed([8, 64, 1]));
    // In whatever order they are given.
    let all = [
        ("serve.log.size", "3KiB"),
        ("serve.size", "2KiB"),
        ("size", "1KiB"),
    ];
    assert_eq!(sizes(&all), fixed([1, 2, 3]));
    let seconds = with(PHASES, &[("serve.seconds", "3"), ("seconds", "2")]).unwrap();
    let times: Vec<_> = seconds
        .phases
        .iter()
        .map(|phase| phase.load.end.time_ns)
        .collect();
    assert_eq!(times, [Some(2_000_000_000), Some(3_000_000_000)]);
}

#[test]
fn a_phase_that_is_repeated_has_a_name_for_each_time() {
    let workload = parse("[[phase]]\nname = 'read'\nrepeat = 2\n[[phase]]\nname = 'write'");
    let names: Vec<_> = workload
        .phases
        .iter()
        .map(|phase| phase.load.name.as_str())
        .collect();
    assert_eq!(names, ["read-1", "read-2", "write"]);
    assert_eq!(
        error("[[phase]]\nname = 'a'\nrepeat = 2\n[[phase]]\nname = 'a-2'"),
        "f.toml:4: there are two phases `a-2`"
    );
}

#[test]
fn mistakes_in_phases_are_reported_with_their_place() {
    let resolved = [
        (
            "[[phase]]",
            "f.toml:1: missing key `name` in [[phase]] number 1",
        ),
        (
            "[[phase]]\nname = 'a'\n[[phase]]\nname = 'a'",
            "f.toml:3: there are two phases `a`",
        ),
        (
            "[[stream]]\n[[phase]]\nname = 'a'",
            "f.toml:1: stream: streams and phases exclude each other; write each [[stream]] as [[phase.stream]] \
             behind its [[phase]]",
        ),
        (
            "name = 'x'\n[[phase]]\nname = 'a'",
            "f.toml:1: name: names a stream or a phase; write it behind its [[phase]] or [[phase.stream]]",
        ),
        (
            "[[phase]]\nname = 'a'\ntable = 'seeker'",
            "f.toml:3: table in [phase \"a\"]: belongs to the whole workload; write it before the first [[phase]]",
        ),
        (
            "drop_caches = true",
            "f.toml:1: drop_caches: belongs to a phase; write it behind its [[phase]]",
        ),
        (
            "[[phase]]\nname = 'a'\n[[phase.stream]]\nrepeat = 2",
            "f.toml:4: repeat in [[stream]] number 1: belongs to a phase; write it behind its [[phase]]",
        ),
        (
            "[[phase]]\nname = 'a'\nsise = '4KiB'",
            "f.toml:3: unknown key `sise` in [phase \"a\"]; did you mean `size`?",
        ),
        (
            "phase = 3",
            "f.toml:1: phase: expected tables, each headed [[phase]], found 3",
        ),
        (
            "phase = []",
            "f.toml:1: no phase is in it; write at least one [[phase]], or [[stream]]",
        ),
    ];
    for (text, wanted) in resolved {
        assert_eq!(error(text), wanted, "{text}");
    }
    let refused = |option: &str| with(PHASES, &[(option, "1")]).unwrap_err();
    assert_eq!(
        refused("sevre.workers"),
        "`sevre.workers=`: unknown phase `sevre`; did you mean `serve`?"
    );
    assert_eq!(
        refused("serve.lag.workers"),
        "`serve.lag.workers=`: unknown stream `lag`; did you mean `log`?"
    );
    assert_eq!(
        refused("serve.log.seconds"),
        "`serve.log.seconds=`: belongs to the whole phase; write serve.seconds"
    );
    assert_eq!(
        refused("serve.repeat"),
        "`serve.repeat=`: can only be set in a file"
    );
}

#[test]
fn the_documentation_lists_each_key_and_preset() {
    let page = include_str!("../../../docs/reference/workload.md");
    for key in KEYS {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `{}` |", key.name)));
        let row = row.unwrap_or_else(|| panic!("docs/reference/workload.md lacks `{}`", key.name));
        assert!(
            row.contains(&format!("`{}`", key.default)) || key.default.is_empty(),
            "default in: {row}"
        );
        for choice in key.choices {
            assert!(
                page.contains(&format!("`{choice}`")),
                "docs/reference/workload.md lacks `{choice}`"
            );
        }
    }
    for name in preset_names() {
        assert!(
            page.contains(&format!("| `{name}` |")),
            "docs/reference/workload.md lacks preset `{name}`"
        );
    }
}

/// Each ```toml block of the documentation is a valid file.
#[test]
fn examples_in_the_documentation_are_valid() {
    for page in [
        include_str!("../../../docs/reference/workload.md"),
        include_str!("../../../docs/reference/phases.md"),
    ] {
        let blocks: Vec<&str> = page
            .split("```toml\n")
            .skip(1)
            .filter_map(|rest| rest.split("```").next())
            .collect();
        assert!(!blocks.is_empty());
        for block in blocks {
            parse(block);
        }
    }
}
