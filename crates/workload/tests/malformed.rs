//! Files damaged at random: never a panic, always one line with the place.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use spindle_config::clean;
use spindle_workload::{KEYS, RequestStream, Workload, preset_names, preset_text};

/// One damage.
#[derive(Debug, Clone)]
enum Damage {
    Delete(Index, usize),
    Insert(Index, String),
    Replace(Index, u8),
    Duplicate(Index, usize),
    SwapLines(Index, Index),
    Truncate(Index),
    SetKey(&'static str, String),
}

fn damage() -> impl Strategy<Value = Damage> {
    let keys: Vec<&'static str> = KEYS.iter().map(|key| key.name).collect();
    let values = vec![
        "0",
        "-1",
        "1",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "18446744073709551616",
        "99999999999999999999999999",
        "0x",
        "1_0",
        "0.5",
        "''",
        "'0'",
        "'-1KiB'",
        "'16EiB'",
        "'18446744073709551615'",
        "'1e9'",
        "'\u{202e}'",
        "'\\u0000'",
        "[]",
        "[[1]]",
        "{}",
        "{a=1}",
        "true",
        "2020-01-01",
        "'none'",
        "'0%-0%'",
        "'100%-0%'",
        "'0B-18446744073709551615B'",
        "'99999999999d'",
        "'1ns'",
        "'4KiB-8KiB'",
        "'1-1073741824:step=1'",
        "'4KiB:1e300,8KiB:1'",
        "'1:1'",
        "'-'",
        "':'",
        "',,,'",
        "'log-normal:mean=1,min=1,max=1'",
        "'log-normal:mean=513,max=1GiB,step=1'",
        "'log-normal:mean=1KiB,sigma=5'",
        "'log-normal:,'",
        "'compressible:'",
        "'idle:'",
        "'best-effort:99999999999'",
        "'0.0000001 IOPS'",
        "'1e999 IOPS'",
        "'sequential'",
        "'zipf'",
        "'hot-set'",
        "'strided'",
        "'runs'",
        "'%'",
        "'µs'",
        "'1µs'",
        "'é'",
        "1e-300",
        "65536",
        "\"\\n\\n\"",
    ];
    let pieces = vec![
        "\n",
        "\r\n",
        "=",
        "[",
        "]",
        "[[",
        "]]",
        "\"",
        "'",
        "'''",
        "\"\"\"",
        "#",
        "{",
        "}",
        ".",
        ",",
        "\0",
        "\u{7f}",
        "é",
        "\u{feff}",
        "\\",
        "[[stream]]",
        "[stream]\n",
        "stream = 1\n",
        "[[stream.stream]]\n",
        "a.b.c = 1\n",
        "\t",
        "%",
        "-",
    ];
    prop_oneof![
        (any::<Index>(), 1..20_usize).prop_map(|(at, count)| Damage::Delete(at, count)),
        (any::<Index>(), select(pieces)).prop_map(|(at, text)| Damage::Insert(at, text.to_owned())),
        (any::<Index>(), "\\PC{1,8}").prop_map(|(at, text)| Damage::Insert(at, text)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        (any::<Index>(), 1..80_usize).prop_map(|(at, count)| Damage::Duplicate(at, count)),
        (any::<Index>(), any::<Index>()).prop_map(|(a, b)| Damage::SwapLines(a, b)),
        any::<Index>().prop_map(Damage::Truncate),
        (select(keys.clone()), select(values))
            .prop_map(|(key, value)| Damage::SetKey(key, value.to_owned())),
        (select(keys), "\"[^\"\\\\\\n]{0,12}\"")
            .prop_map(|(key, value)| Damage::SetKey(key, value)),
    ]
}

fn apply(text: &str, damage: &Damage) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let at = |index: &Index| index.index(bytes.len() + 1);
    match damage {
        Damage::Delete(index, count) => {
            let start = at(index);
            let end = (start + count).min(bytes.len());
            bytes.drain(start..end);
        }
        Damage::Insert(index, piece) => {
            let start = at(index);
            bytes.splice(start..start, piece.bytes());
        }
        Damage::Replace(index, byte) => {
            let start = at(index);
            if let Some(old) = bytes.get_mut(start) {
                *old = *byte;
            }
        }
        Damage::Duplicate(index, count) => {
            let start = at(index);
            let piece = bytes[start..(start + count).min(bytes.len())].to_vec();
            bytes.splice(start..start, piece);
        }
        Damage::SwapLines(a, b) => {
            let mut lines: Vec<&str> = text.lines().collect();
            if !lines.is_empty() {
                let (a, b) = (a.index(lines.len()), b.index(lines.len()));
                lines.swap(a, b);
            }
            bytes = lines.join("\n").into_bytes();
        }
        Damage::Truncate(index) => {
            let length = at(index);
            bytes.truncate(length);
        }
        Damage::SetKey(key, value) => {
            // In place of the line that sets it, or else of the first.
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let line = lines
                .iter()
                .position(|line| line.starts_with(&format!("{key} ")));
            let new = format!("{key} = {value}");
            match line {
                Some(line) => lines[line] = new,
                None => lines.insert(0, new),
            }
            bytes = lines.join("\n").into_bytes();
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Either a workload that draws requests (or says why not), or one line with a place.
/// The message begins with the key that was given.
fn names(message: &str, key: &str) -> bool {
    message.starts_with(&format!("`{key}=`: "))
        || message.starts_with(&format!("unknown key `{key}`"))
        || message.starts_with(&format!("{key}: can only be set in a file"))
}

fn check(text: &str, options: &[(String, String)]) -> Result<(), TestCaseError> {
    match Workload::parse(text, "damaged.toml", "damaged", options) {
        Ok(workload) => {
            for (index, stream) in workload.streams.iter().enumerate() {
                match RequestStream::new(stream, index, 0, workload.seed, 1 << 30, 512) {
                    Ok(mut requests) => {
                        for _ in 0..50 {
                            let request = requests.next_request();
                            prop_assert!(request.offset + u64::from(request.len) <= 1 << 30);
                        }
                    }
                    Err(error) => prop_assert!(is_one_line(&error.to_string())),
                }
            }
            prop_assert!(serde_json::to_string(&workload).is_ok());
        }
        Err(error) => {
            let message = error.to_string();
            prop_assert!(is_one_line(&message), "{message:?}");
            let lines = text.split('\n').count();
            let place = message
                .strip_prefix("damaged.toml:")
                .and_then(|rest| rest.split(':').next());
            let line = place.and_then(|place| place.parse::<usize>().ok());
            let placed = line.is_some_and(|line| (1..=lines).contains(&line))
                || options.iter().any(|(key, _)| names(&message, &clean(key)));
            prop_assert!(placed, "no place: {message}");
        }
    }
    Ok(())
}

fn is_one_line(message: &str) -> bool {
    !message.chars().any(char::is_control) && message.len() < 2000
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_presets_give_a_workload_or_one_line(
        preset in select(preset_names().collect::<Vec<_>>()),
        damages in prop::collection::vec(damage(), 1..6),
    ) {
        let mut text = preset_text(preset).unwrap().to_owned();
        for damage in &damages {
            text = apply(&text, damage);
        }
        check(&text, &[])?;
    }

    #[test]
    fn any_options_give_a_workload_or_one_line(
        preset in select(preset_names().collect::<Vec<_>>()),
        key in prop_oneof![select(KEYS.iter().map(|key| key.name.to_owned()).collect::<Vec<_>>()), "\\PC{0,20}"],
        value in prop_oneof!["\\PC{0,20}", "[0-9.]{1,25}[a-zA-Z%]{0,3}", "[0-9]{1,4}(KiB|MB|%|s)[-:,][0-9]{1,4}(KiB|MB|%|s)?"],
    ) {
        check(preset_text(preset).unwrap(), &[(key, value)])?;
    }

    #[test]
    fn any_text_gives_a_workload_or_one_line(text in "(?s).{0,200}") {
        check(&text, &[])?;
    }
}
