//! Finds the known name that an unknown name was probably meant to be.

/// The known name nearest to `name`, if one is near enough to be meant.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names are short; do not spend time on a page of text pasted in place of one.
    if name.len() > 64 {
        return None;
    }
    let plain = fold(name);
    known
        .into_iter()
        .map(|candidate| (closeness(&plain, &fold(candidate)), candidate))
        .filter(|(closeness, _)| *closeness >= 0.6)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

fn fold(name: &str) -> String {
    name.to_lowercase().replace(['-', ' '], "_")
}

/// 1 for equal, 0 for nothing in common: edits (Damerau-Levenshtein), and whole parts for names of which
/// one holds the other (`writes` and `write_fraction`).
fn closeness(name: &str, candidate: &str) -> f64 {
    let edits = strsim::normalized_damerau_levenshtein(name, candidate);
    let stem = name.trim_end_matches('s');
    if stem.len() >= 3
        && candidate
            .split('_')
            .any(|part| part == stem || part == name)
    {
        edits.max(0.7)
    } else {
        edits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 5] = ["size", "workers", "write_fraction", "seconds", "seed"];

    #[test]
    fn slips_of_the_finger_are_understood() {
        for (typed, meant) in [
            ("sise", "size"),
            ("Size", "size"),
            ("wrokers", "workers"),
            ("write-fraction", "write_fraction"),
            ("writes", "write_fraction"),
            ("second", "seconds"),
        ] {
            assert_eq!(nearest(typed, KEYS), Some(meant), "{typed}");
        }
    }

    #[test]
    fn nothing_is_suggested_for_something_else() {
        assert_eq!(nearest("colour", KEYS), None);
        assert_eq!(nearest("", KEYS), None);
        assert_eq!(nearest(&"s".repeat(1000), KEYS), None);
    }
}
