//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use spindle_config::units;

use crate::failure::Failure;

pub(crate) const HELP: &str = "\
usage: spindle-agent run --workload FILE --target PATH --output FILE [options]
       spindle-agent session
       spindle-agent restore
       spindle-agent durability --header FILE --target PATH [options]
       spindle-agent check --journal FILE --target PATH
       spindle-agent --version

Run a workload on a target without Python. `spindle show`, `compare` and `report` read the file that it writes.

  --workload FILE     a workload file, the name of a preset, or - for standard input
  --target PATH       a block device, a file, or null:SIZE; with --create a folder or a new name
  --output FILE       where the result goes, a new file; - for standard output
  --set KEY=VALUE     change a key of the workload; several may follow, and it may be given again
  --create SIZE       make a test file of this size; it is gone at the end
  --settle TIME       time between the making of the test file and the load: the system ends what the file has left  [default: 0s]
  --erase PATH        agree to lose the data of this block device, the target named again
  --erase-content     agree although the device is not empty at both ends
  --erase-stacked     agree although the device is built of other devices
  --engine NAME       auto, io_uring or pread  [default: auto]
  --timestamps HOW    request or batch  [default: request]
  --tolerate-errors   count I/O errors and go on
  --interval TIME     length of an interval of the series  [default: 1s]
  --cpu-per-request TIME  each completion keeps its worker busy this long more: for virtual time, where CPU time costs nothing
  --cpus LIST         pin the workers to these CPUs in turn, as 0,2,3

A session takes its orders from standard input, a line of JSON each, and reports on standard output: `spindle fleet` uses it.
`restore` puts back settings of the kernel that sessions changed and could not put back, as they were killed.

The writers and the check of `spindle durability`, which makes the header; standard output is the journal, or the findings:

  --header FILE       the run and its plan
  --target PATH       a block device, or with --create a new file, which stays
  --seconds N         end after this time
  --buffered          through the page cache
  --create, --erase, --erase-content, --erase-stacked   as above
  --journal FILE      the journal to check the target against

Reading is the default: without --create or --erase nothing is written.
Exit status: 0 fine, 1 the run failed, 2 usage, 3 refused for safety, 128 + N ended by signal N.
";

/// The name of the standard streams.
pub(crate) const STANDARD: &str = "-";

/// A command line.
#[derive(Debug)]
pub(crate) enum Command {
    Run(Box<Options>),
    Session,
    Restore,
    /// Wait for the end of standard input, then restore.
    Keep,
    Durability(Box<WriterOptions>),
    Check(CheckOptions),
    Version,
    Help,
}

/// One run.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) workload: String,
    pub(crate) target: String,
    pub(crate) output: String,
    pub(crate) overrides: Vec<(String, String)>,
    /// Size of the test file to be made, bytes.
    pub(crate) create: Option<u64>,
    /// Time between the making of the test file and the load.
    pub(crate) settle: Duration,
    pub(crate) consent: Consent,
    pub(crate) engine: spindle_engine::Options,
}

/// The writers of a durability test.
#[derive(Debug, Default)]
pub(crate) struct WriterOptions {
    pub(crate) header: String,
    pub(crate) target: String,
    /// Size of the file to be made, bytes.
    pub(crate) create: Option<u64>,
    pub(crate) consent: Consent,
    pub(crate) is_buffered: bool,
    pub(crate) seconds: Option<f64>,
}

/// The check after a crash.
#[derive(Debug, Default)]
pub(crate) struct CheckOptions {
    pub(crate) journal: String,
    pub(crate) target: String,
}

/// Data that may be lost.
#[derive(Debug, Default)]
pub(crate) struct Consent {
    /// The device, named again.
    pub(crate) erase: Option<PathBuf>,
    /// It may be other than empty.
    pub(crate) content: bool,
    /// It may be built of other devices.
    pub(crate) stacked: bool,
}

pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Command, Failure> {
    let words: Vec<String> = arguments
        .map(|word| {
            word.into_string().map_err(|word| {
                Failure::usage(format!("{}: is not UTF-8 text", word.to_string_lossy()))
            })
        })
        .collect::<Result<_, _>>()?;
    let mut words = Words(words.into_iter().peekable());
    match words.0.next().as_deref() {
        Some("run") => run(words),
        Some("session") => alone(words, Command::Session),
        Some("restore") => alone(words, Command::Restore),
        Some("keep") => alone(words, Command::Keep),
        Some("durability") => durability(words),
        Some("check") => check(words),
        Some("--version") => Ok(Command::Version),
        Some("--help" | "-h") => Ok(Command::Help),
        Some(other) => Err(Failure::usage(format!(
            "{other}: unknown; write `spindle-agent run --workload FILE --target PATH --output FILE`"
        ))),
        None => Err(Failure::usage(
            "nothing is asked for; see `spindle-agent --help`",
        )),
    }
}

struct Words(std::iter::Peekable<std::vec::IntoIter<String>>);

impl Words {
    /// The value of an option, in the same word after `=` or in the next one.
    fn value(&mut self, option: &str, inside: Option<&str>) -> Result<String, Failure> {
        let found = inside.map(str::to_owned).or_else(|| self.0.next());
        found
            .filter(|value| !value.is_empty())
            .ok_or_else(|| Failure::usage(format!("{option}: its value is missing")))
    }

    /// Further values of `--set`.
    fn next_setting(&mut self) -> Option<String> {
        self.0
            .next_if(|word| !word.starts_with('-') && word.contains('='))
    }
}

/// The options of a run, as words without `run`.
pub(crate) fn of_run(words: Vec<String>) -> Result<Box<Options>, Failure> {
    match run(Words(words.into_iter().peekable()))? {
        Command::Run(options) => Ok(options),
        _ => Err(Failure::usage("a run was expected")),
    }
}

fn run(mut words: Words) -> Result<Command, Failure> {
    let mut asked = Options::default();
    while let Some(word) = words.0.next() {
        let (option, inside) = split(&word);
        match option {
            "--workload" => asked.workload = words.value(option, inside)?,
            "--target" => asked.target = words.value(option, inside)?,
            "--output" => asked.output = words.value(option, inside)?,
            "--set" => {
                let first = words.value(option, inside)?;
                asked.overrides.push(setting(&first)?);
                while let Some(further) = words.next_setting() {
                    asked.overrides.push(setting(&further)?);
                }
            }
            "--create" => {
                let size = words.value(option, inside)?;
                asked.create = Some(size_of(option, &size)?);
            }
            "--settle" => {
                let settle_ns = duration(option, &words.value(option, inside)?)?;
                asked.settle = Duration::from_nanos(settle_ns);
            }
            "--erase" => asked.consent.erase = Some(words.value(option, inside)?.into()),
            "--engine" => {
                asked.engine.engine = words
                    .value(option, inside)?
                    .parse()
                    .map_err(|error| Failure::usage(format!("--{error}")))?;
            }
            "--timestamps" => {
                asked.engine.timestamps = words
                    .value(option, inside)?
                    .parse()
                    .map_err(|error| Failure::usage(format!("--{error}")))?;
            }
            "--interval" => {
                let interval_ns = duration(option, &words.value(option, inside)?)?;
                if interval_ns == 0 {
                    return Err(Failure::usage(format!("{option}: must be above 0")));
                }
                asked.engine.interval_ns = interval_ns;
            }
            "--cpu-per-request" => {
                asked.engine.cpu_per_request_ns = duration(option, &words.value(option, inside)?)?;
            }
            "--cpus" => asked.engine.cpus = cpus(&words.value(option, inside)?)?,
            "--erase-content" if inside.is_none() => asked.consent.content = true,
            "--erase-stacked" if inside.is_none() => asked.consent.stacked = true,
            "--tolerate-errors" if inside.is_none() => asked.engine.tolerate_errors = true,
            "--help" | "-h" => return Ok(Command::Help),
            _ => return Err(unknown(&word)),
        }
    }
    require(&[
        ("--workload", &asked.workload),
        ("--target", &asked.target),
        ("--output", &asked.output),
    ])?;
    Ok(Command::Run(Box::new(asked)))
}

/// A command without options.
fn alone(mut words: Words, command: Command) -> Result<Command, Failure> {
    match words.0.next() {
        None => Ok(command),
        Some(word) => Err(unknown(&word)),
    }
}

fn durability(mut words: Words) -> Result<Command, Failure> {
    let mut asked = WriterOptions::default();
    while let Some(word) = words.0.next() {
        let (option, inside) = split(&word);
        match option {
            "--header" => asked.header = words.value(option, inside)?,
            "--target" => asked.target = words.value(option, inside)?,
            "--create" => {
                let size = words.value(option, inside)?;
                asked.create = Some(size_of(option, &size)?);
            }
            "--erase" => asked.consent.erase = Some(words.value(option, inside)?.into()),
            "--seconds" => asked.seconds = Some(seconds(option, &words.value(option, inside)?)?),
            "--erase-content" if inside.is_none() => asked.consent.content = true,
            "--erase-stacked" if inside.is_none() => asked.consent.stacked = true,
            "--buffered" if inside.is_none() => asked.is_buffered = true,
            _ => return Err(unknown(&word)),
        }
    }
    require(&[("--header", &asked.header), ("--target", &asked.target)])?;
    Ok(Command::Durability(Box::new(asked)))
}

fn check(mut words: Words) -> Result<Command, Failure> {
    let mut asked = CheckOptions::default();
    while let Some(word) = words.0.next() {
        let (option, inside) = split(&word);
        match option {
            "--journal" => asked.journal = words.value(option, inside)?,
            "--target" => asked.target = words.value(option, inside)?,
            _ => return Err(unknown(&word)),
        }
    }
    require(&[("--journal", &asked.journal), ("--target", &asked.target)])?;
    Ok(Command::Check(asked))
}

/// An option and its value, if that is in the same word.
fn split(word: &str) -> (&str, Option<&str>) {
    match word.split_once('=') {
        Some((option, value)) if option.starts_with("--") => (option, Some(value)),
        _ => (word, None),
    }
}

fn unknown(word: &str) -> Failure {
    Failure::usage(format!(
        "{word}: no such option; see `spindle-agent --help`"
    ))
}

fn require(options: &[(&str, &String)]) -> Result<(), Failure> {
    match options.iter().find(|(_, value)| value.is_empty()) {
        Some((option, _)) => Err(Failure::usage(format!("{option} is missing"))),
        None => Ok(()),
    }
}

fn seconds(option: &str, text: &str) -> Result<f64, Failure> {
    let found = text
        .parse()
        .ok()
        .filter(|value| (1e-3..1e9).contains(value));
    found.ok_or_else(|| Failure::usage(format!("{option} {text}: write seconds, as 0.5")))
}

fn setting(text: &str) -> Result<(String, String), Failure> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(Failure::usage(format!(
            "--set {text}: write KEY=VALUE, for example size=64KiB"
        ))),
    }
}

/// A size above 0, bytes. `name`: where it was given.
pub(crate) fn size_of(name: &str, text: &str) -> Result<u64, Failure> {
    match units::parse_size(text) {
        Ok(0) => Err(Failure::usage(format!("{name}: the size must be above 0"))),
        Ok(size) => Ok(size),
        Err(error) => Err(Failure::usage(format!("{name}: {error}"))),
    }
}

fn duration(option: &str, text: &str) -> Result<u64, Failure> {
    units::parse_duration(text).map_err(|error| Failure::usage(format!("{option}: {error}")))
}

fn cpus(text: &str) -> Result<Vec<usize>, Failure> {
    let numbers = text.split(',').map(|number| number.trim().parse());
    numbers
        .collect::<Result<_, _>>()
        .map_err(|_| Failure::usage(format!("--cpus {text}: write numbers, as 0,2,3")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str) -> Result<Command, Failure> {
        parse(line.split(' ').map(OsString::from))
    }

    fn options(line: &str) -> Options {
        match asked(line) {
            Ok(Command::Run(options)) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn several_settings_may_follow_one_set() {
        let found =
            options("run --set size=4KiB workers=2 --workload=w --target t --output o --set a=b=c");
        let pairs = [("size", "4KiB"), ("workers", "2"), ("a", "b=c")];
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(found.overrides, pairs);
        assert_eq!((found.workload.as_str(), found.output.as_str()), ("w", "o"));
    }

    #[test]
    fn each_wrong_line_is_a_usage_error_that_names_its_word() {
        for (line, named) in [
            ("walk", "walk"),
            ("run --workload w --target t", "--output"),
            ("run --workload", "--workload"),
            ("run --set size", "size"),
            ("run --create 0", "--create"),
            ("run --create many", "--create"),
            ("run --settle long", "--settle"),
            ("run --engine aio", "aio"),
            ("run --cpus a", "--cpus"),
            ("run --interval 0s", "--interval"),
            ("run --cpu-per-request fast", "--cpu-per-request"),
            ("run --erase-content=yes", "--erase-content"),
            ("run t.bin", "t.bin"),
            ("session now", "now"),
            ("durability --target t", "--header"),
            ("durability --header h --target t --seconds soon", "soon"),
            ("durability --header h --target t --journal j", "--journal"),
            ("check --target t", "--journal"),
        ] {
            let failure = asked(line).expect_err(line);
            assert_eq!(failure.status(), 2, "{line}");
            assert!(failure.to_string().contains(named), "{failure}");
        }
    }
}
