//! Ranges of uncertain numbers: a table `range` beside the numbers, and one of them replaced by another.

use crate::error::ConfigError;
use crate::table::Table;
use crate::units::{self, Rate};
use crate::value::Value;

/// A number and the range in which it is uncertain, each as it is written in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// Key of the number.
    pub key: &'static str,
    /// The smallest that it may be.
    pub least: String,
    /// The one that the model takes.
    pub value: String,
    /// The largest that it may be.
    pub most: String,
}

/// A number of one part of a machine, instead of the one in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Name of the part: the model of a drive or controller.
    pub part: String,
    /// Key.
    pub key: String,
    /// Value, as it is written in a file.
    pub value: String,
}

impl Table {
    /// The ranges in the table `range`: `range = { service = ["80us", "200us"] }`. To be called before the keys are taken.
    pub fn take_ranges(&mut self, keys: &[&'static str]) -> Result<Vec<Range>, ConfigError> {
        let Some(mut ranges) = self.take_table("range")? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for &key in keys {
            let Some(ends) = ranges.take(key) else {
                continue;
            };
            let Some(value) = self.written(key) else {
                return Err(ends.error("the table has no such number; leave the range out"));
            };
            let ([least, most], Ok(value)) = (ends.list()?, value.as_written()) else {
                return Err(ends.error("expected the least and the most: two numbers"));
            };
            let (least, most) = (least.as_written()?, most.as_written()?);
            match [&least, &value, &most].map(|text| magnitude(text)) {
                [Some(low), Some(middle), Some(high)] if low <= middle && middle <= high => {}
                _ => {
                    return Err(ends.error(format!(
                        "expected the least and the most, with \"{value}\" between them"
                    )));
                }
            }
            found.push(Range {
                key,
                least,
                value,
                most,
            });
        }
        ranges.finish()?;
        Ok(found)
    }

    /// Puts the numbers that are changed for a part in place of its own.
    pub fn change(&mut self, part: &str, changes: &[Change]) {
        for change in changes.iter().filter(|change| change.part == part) {
            let value = Value::typed(&change.key, &change.value, self.place().clone());
            self.put(value);
        }
    }
}

/// A number whose unit does not matter, to be compared with others of the same unit; a flag is 0 or 1.
fn magnitude(text: &str) -> Option<f64> {
    let flag = || text.parse::<bool>().ok().map(f64::from);
    let number = text.parse::<f64>().ok().or_else(flag);
    let duration = || units::parse_duration(text).ok().map(|ns| ns as f64);
    let size = || units::parse_size(text).ok().map(|bytes| bytes as f64);
    let fraction = || units::parse_fraction(text).ok();
    let rate = || match units::parse_rate(text).ok()? {
        Rate::Bytes(rate) | Rate::Iops(rate) => Some(rate),
    };
    number
        .or_else(duration)
        .or_else(size)
        .or_else(fraction)
        .or_else(rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Document;

    const KEYS: [&str; 4] = ["service", "rate", "depth", "cached"];

    fn ranges(text: &str) -> Result<Vec<Range>, String> {
        let mut table = Document::parse(text, "a.toml").unwrap();
        table.take_ranges(&KEYS).map_err(|error| error.to_string())
    }

    #[test]
    fn a_range_is_read_with_the_number_between_its_ends() {
        let found = ranges(
            "service = '90us'\ndepth = 4\nrange = { service = ['80us', '0.1ms'], depth = [1, 32] }",
        )
        .unwrap();
        assert_eq!(found[0].key, "service");
        assert_eq!(
            (&*found[0].least, &*found[0].value, &*found[0].most),
            ("80us", "90us", "0.1ms")
        );
        assert_eq!(
            (&*found[1].least, &*found[1].value, &*found[1].most),
            ("1", "4", "32")
        );
        assert_eq!(ranges("service = '90us'").unwrap(), []);
        let flag = ranges("cached = true\nrange = { cached = [false, true] }").unwrap();
        assert_eq!((&*flag[0].least, &*flag[0].most), ("false", "true"));
    }

    #[test]
    fn wrong_ranges_are_refused_with_their_place() {
        for (text, problem) in [
            (
                "service = '70us'\nrange = { service = ['80us', '100us'] }",
                "between",
            ),
            (
                "service = '90us'\nrange = { service = ['100us', '80us'] }",
                "between",
            ),
            ("service = '90us'\nrange = { service = '80us' }", "a list"),
            (
                "cached = false\nrange = { cached = [true, false] }",
                "between",
            ),
            (
                "service = '90us'\nrange = { service = ['80us'] }",
                "two numbers",
            ),
            (
                "service = '90us'\nrange = { rate = ['1 MB/s', '2 MB/s'] }",
                "no such number",
            ),
            (
                "service = '90us'\nrange = { sarvice = ['80us', '1ms'] }",
                "did you mean",
            ),
        ] {
            let error = ranges(text).unwrap_err();
            assert!(
                error.starts_with("a.toml:2") && error.contains(problem),
                "{error}"
            );
        }
    }

    #[test]
    fn a_change_replaces_the_number_of_its_part_only() {
        let change = |part: &str| Change {
            part: part.to_owned(),
            key: "service".to_owned(),
            value: "80us".to_owned(),
        };
        let mut table = Document::parse("service = '90us'", "a.toml").unwrap();
        table.change("x", &[change("y")]);
        let mut other = table.clone();
        assert_eq!(table.take_duration("service").unwrap(), Some(90_000));
        other.change("x", &[change("x")]);
        assert_eq!(other.take_duration("service").unwrap(), Some(80_000));
    }
}
