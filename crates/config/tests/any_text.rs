//! Any text gives a value or an error of one line, never a panic.

use proptest::prelude::*;
use spindle_config::units::{
    UnitError, format_duration, format_fraction, format_size, parse_duration, parse_fraction,
    parse_place, parse_range, parse_rate, parse_seconds, parse_size,
};
use spindle_config::{Document, Table};

/// Texts near enough to quantities to reach the arithmetic.
fn quantity() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,30}",
        "-?[0-9]{0,40}(\\.[0-9]{0,40})? ?(B|[kKMGTPE]i?[bB]?|ns|us|µs|ms|s|m|h|d|%|IOPS|iops)?(/s)?",
        "[0-9]{1,20}[smhd][0-9]{0,20}[smhd]?",
        "[0-9.]{0,6}(%|GiB|MB)?-[0-9.]{0,6}(%|GiB|MB)?",
        "-?(nan|inf|infinity|1e[0-9]{1,4}|0x[0-9a-f]{1,20})%?",
    ]
}

fn one_line<T>(result: Result<T, UnitError>) -> Result<(), TestCaseError> {
    if let Err(error) = result {
        let message = error.to_string();
        prop_assert!(
            !message.chars().any(char::is_control) && message.len() < 600,
            "{message:?}"
        );
    }
    Ok(())
}

/// Takes one key as each type.
fn take_all(text: &str) -> Result<(), TestCaseError> {
    let table = || Document::parse(text, "t.toml");
    let Ok(mut parsed) = table() else {
        let message = table()
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        prop_assert!(
            message.starts_with("t.toml:") && !message.chars().any(char::is_control),
            "{message:?}"
        );
        return Ok(());
    };
    let readers: [fn(&mut Table) -> Option<String>; 12] = [
        |t| t.take_text("a").err().map(|e| e.to_string()),
        |t| t.take_flag("a").err().map(|e| e.to_string()),
        |t| t.take_integer("a", 1..=9).err().map(|e| e.to_string()),
        |t| t.take_number("a", 0.0..=1.0).err().map(|e| e.to_string()),
        |t| t.take_size("a").err().map(|e| e.to_string()),
        |t| t.take_duration("a").err().map(|e| e.to_string()),
        |t| t.take_fraction("a").err().map(|e| e.to_string()),
        |t| t.take_rate("a").err().map(|e| e.to_string()),
        |t| t.take_range("a").err().map(|e| e.to_string()),
        |t| {
            t.take_choice("a", &[("one", 1)])
                .err()
                .map(|e| e.to_string())
        },
        |t| t.take_table("a").err().map(|e| e.to_string()),
        |t| t.take_tables("a").err().map(|e| e.to_string()),
    ];
    for read in readers {
        if let Some(message) = read(&mut parsed.clone()) {
            prop_assert!(
                message.starts_with("t.toml:") && !message.chars().any(char::is_control),
                "{message:?}"
            );
        }
    }
    let missing = parsed.missing("size").to_string();
    prop_assert!(
        missing.starts_with("t.toml:1: missing key `size`"),
        "{missing:?}"
    );
    parsed.take("b");
    if let Err(error) = parsed.finish() {
        let message = error.to_string();
        prop_assert!(
            message.starts_with("t.toml:") && !message.chars().any(char::is_control),
            "{message:?}"
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn units_give_a_value_or_one_line(text in quantity()) {
        one_line(parse_size(&text))?;
        one_line(parse_duration(&text))?;
        one_line(parse_seconds(&text))?;
        one_line(parse_rate(&text))?;
        one_line(parse_place(&text))?;
        one_line(parse_range(&text))?;
        one_line(parse_fraction(&text))?;
        if let Ok(fraction) = parse_fraction(&text) {
            prop_assert!((0.0..=1.0).contains(&fraction));
        }
    }

    #[test]
    fn quantities_read_back_as_written(number: u64, shift in 0..64_u32, fraction in 0.0..=1.0_f64) {
        let number = number >> shift;
        prop_assert_eq!(parse_size(&format_size(number)), Ok(number));
        prop_assert_eq!(parse_duration(&format_duration(number)), Ok(number));
        let read = parse_fraction(&format_fraction(fraction)).unwrap();
        prop_assert!((read - fraction).abs() < 1e-11);
    }

    #[test]
    fn tables_give_values_or_one_line(
        value in prop_oneof![
            "\\PC{0,20}",
            quantity().prop_map(|text| format!("'{text}'")),
            "-?[0-9_.e+]{1,30}",
            "(\\[|\\{a=){0,90}1",
            Just("\"\\n\\u0007\\u202e\"".to_owned()),
            Just("2020-01-01T00:00:00Z".to_owned()),
        ],
        other in "[a-z\"'\\[\\]=\\n\\t\\x00\\r]{0,12}",
    ) {
        take_all(&format!("{other}\na = {value}\n{other} = 2"))?;
        take_all(&format!("a = {value}\n{other}"))?;
    }
}
