//! Rounds of contenders, and what is printed of them.

use crate::{Round, interrupt};

/// Who runs.
pub(crate) struct Contender<'a> {
    name: String,
    run: Box<dyn FnMut() -> Result<Round, String> + 'a>,
}

impl<'a> Contender<'a> {
    pub(crate) fn new(name: &str, run: impl FnMut() -> Result<Round, String> + 'a) -> Self {
        Contender {
            name: name.to_owned(),
            run: Box::new(run),
        }
    }
}

/// A comparison.
pub(crate) struct Section {
    title: String,
    rows: Vec<(String, Vec<Round>, Option<String>)>,
}

impl Section {
    /// Lets the contenders take turns.
    pub(crate) fn measure(
        title: &str,
        rounds: usize,
        mut contenders: Vec<Contender<'_>>,
    ) -> Section {
        let mut rows: Vec<_> = contenders
            .iter()
            .map(|contender| (contender.name.clone(), Vec::new(), None))
            .collect();
        for round in 0..rounds {
            let count = contenders.len();
            for turn in 0..count {
                // The first contender of a round comes later in the next.
                let index = (turn + round) % count;
                if rows[index].2.is_some() || interrupt::came() {
                    continue;
                }
                match (contenders[index].run)() {
                    Ok(result) => rows[index].1.push(result),
                    Err(why) => rows[index].2 = Some(why),
                }
            }
        }
        Section {
            title: title.to_owned(),
            rows,
        }
    }

    pub(crate) fn print(&self) {
        println!("\n{}", self.title);
        println!(
            "  {:<26} {:>10} {:>10} {:>8} {:>9} {:>11}",
            "", "kIOPS", "ns per I/O", "x first", "user ns", "system ns"
        );
        for (index, (name, rounds, failure)) in self.rows.iter().enumerate() {
            if let Some(why) = failure {
                println!("  {name:<26} skipped: {why}");
                continue;
            }
            let of = |value: fn(&Round) -> f64| median(rounds.iter().map(value).collect());
            println!(
                "  {name:<26} {:>10.1} {:>10.1} {:>8.3} {:>9.1} {:>11.1}",
                of(|round| round.iops) / 1e3,
                self.ns(index).unwrap_or(f64::NAN),
                self.ratio(index, 0).unwrap_or(f64::NAN),
                of(|round| round.user_ns_per_io),
                of(|round| round.system_ns_per_io),
            );
        }
    }

    /// Median over the rounds of the ratio of rates.
    pub(crate) fn ratio(&self, of: usize, to: usize) -> Option<f64> {
        let (of, to) = (&self.rows.get(of)?.1, &self.rows.get(to)?.1);
        let ratios: Vec<f64> = of.iter().zip(to).map(|(a, b)| a.iops / b.iops).collect();
        (!ratios.is_empty()).then(|| median(ratios))
    }

    pub(crate) fn user_ns(&self, row: usize) -> Option<f64> {
        let rounds = &self.rows.get(row)?.1;
        (!rounds.is_empty())
            .then(|| median(rounds.iter().map(|round| round.user_ns_per_io).collect()))
    }

    /// CPU time of a request, ns: where nothing is waited for, what it costs, whoever else has the CPU meanwhile.
    pub(crate) fn cpu_ns(&self, row: usize) -> Option<f64> {
        let rounds = &self.rows.get(row)?.1;
        let cpu = |round: &Round| round.user_ns_per_io + round.system_ns_per_io;
        (!rounds.is_empty()).then(|| median(rounds.iter().map(cpu).collect()))
    }

    /// Wall time of a request, ns.
    pub(crate) fn ns(&self, row: usize) -> Option<f64> {
        let rounds = &self.rows.get(row)?.1;
        (!rounds.is_empty()).then(|| median(rounds.iter().map(|round| 1e9 / round.iops).collect()))
    }
}

/// A bound that a ratio must meet.
pub(crate) struct Bound {
    what: &'static str,
    value: Option<f64>,
    limit: f64,
    at_least: bool,
}

impl Bound {
    pub(crate) fn at_least(what: &'static str, value: Option<f64>, limit: f64) -> Bound {
        Bound {
            what,
            value,
            limit,
            at_least: true,
        }
    }

    pub(crate) fn at_most(what: &'static str, value: Option<f64>, limit: f64) -> Bound {
        Bound {
            what,
            value,
            limit,
            at_least: false,
        }
    }
}

/// Prints each goal, what was measured and whether it is met; whether all are. What was skipped is not judged.
pub(crate) fn judge(bounds: &[Bound]) -> bool {
    println!("  {:<37} {:>8} {:>10}", "", "goal", "measured");
    let mut kept = true;
    for bound in bounds {
        let Some(value) = bound.value else { continue };
        let (holds, sign) = if bound.at_least {
            (value >= bound.limit, ">=")
        } else {
            (value <= bound.limit, "<=")
        };
        kept &= holds;
        println!(
            "  {:<37} {:>8} {value:>10.3}  {}",
            bound.what,
            format!("{sign} {}", bound.limit),
            if holds { "met" } else { "MISS" },
        );
    }
    kept
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}
