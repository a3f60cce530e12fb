use super::super::amplification::uniform;
use super::*;

const PER_BLOCK: u32 = 512;

fn shape(spare: f64) -> Shape {
    let blocks = 1024_u32;
    Shape {
        units: (f64::from(blocks * PER_BLOCK) / (1.0 + spare)).round() as u32,
        per_block: PER_BLOCK,
        blocks,
    }
}

/// Units written and moved for each unit that the host writes.
fn amplification(mapping: &mut Mapping, writes: u32, mut next: impl FnMut() -> u32) -> f64 {
    mapping.counts = Counts::default();
    for _ in 0..writes {
        let unit = next();
        mapping.write(unit);
    }
    check(mapping);
    let counts = mapping.counts();
    1.0 + counts.moved as f64 / counts.written as f64
}

/// Every unit is in one place, and the counts of valid units are right.
fn check(mapping: &Mapping) {
    let mut valid = vec![0; mapping.valid.len()];
    let mut mapped = 0;
    for (unit, slot) in mapping.slot_of.iter().enumerate() {
        if *slot != NONE {
            assert_eq!(mapping.unit_at[*slot as usize], unit as u32);
            valid[(slot / mapping.shape.per_block) as usize] += 1;
            mapped += 1;
        }
    }
    assert_eq!((valid, mapped), (mapping.valid.clone(), mapping.mapped));
}

fn uniform_writes(policy: Collection, spare: f64, state: FlashState, passes: u32) -> f64 {
    let shape = shape(spare);
    let mut mapping = Mapping::new(shape, policy, state);
    let mut random = SplitMix::new(7);
    let mut next = || random.below(u64::from(shape.units)) as u32;
    // Into the steady state, then as much again for the figure.
    if passes > 0 {
        amplification(&mut mapping, passes * shape.units, &mut next);
    }
    amplification(&mut mapping, shape.units, &mut next)
}

fn near(found: f64, expected: f64, what: &str) {
    let difference = found / expected - 1.0;
    println!(
        "{what}: {found:.4}, closed form {expected:.4}, {:+.2} %",
        100.0 * difference
    );
    assert!(difference.abs() < 0.02, "{what}: {found} {expected}");
}

const POLICIES: [Collection; 6] = [
    Collection::Greedy,
    Collection::Oldest,
    Collection::Choices(1),
    Collection::Choices(2),
    Collection::Choices(4),
    Collection::Choices(16),
];

#[test]
fn uniform_writes_cost_what_the_closed_forms_say() {
    for policy in POLICIES {
        for spare in [0.07, 0.15, 0.28, 0.5] {
            let found = uniform_writes(policy, spare, FlashState::Filled, 3);
            near(
                found,
                uniform(policy, spare),
                &format!("{policy:?} {spare}"),
            );
        }
    }
}

#[test]
fn a_used_drive_is_in_its_steady_state_from_the_first_write() {
    for policy in POLICIES {
        for spare in [0.07, 0.28, 0.5] {
            let shape = shape(spare);
            let mut mapping = Mapping::new(shape, policy, FlashState::Used);
            check(&mapping);
            let mut random = SplitMix::new(11);
            let mut next = || random.below(u64::from(shape.units)) as u32;
            // Random choices need many to have their mean.
            let writes = match policy {
                Collection::Choices(_) => 2 * shape.units,
                _ => shape.units / 10,
            };
            let found = amplification(&mut mapping, writes, &mut next);
            near(
                found,
                uniform(policy, spare),
                &format!("{policy:?} {spare}"),
            );
        }
    }
}

/// Shares of the writes and of the units of two classes: hot ones first.
const HOT: [(f64, f64); 3] = [(0.8, 0.2), (0.9, 0.1), (0.5, 0.1)];

fn hot_and_cold(policy: Collection, spare: f64, (writes, units): (f64, f64)) -> f64 {
    let shape = shape(spare);
    let hot = (f64::from(shape.units) * units) as u64;
    let mut mapping = Mapping::new(shape, policy, FlashState::Used);
    let mut random = SplitMix::new(7);
    let limit = (writes * (1_u64 << 32) as f64) as u64;
    let mut next = || {
        let first = if random.next() >> 32 < limit {
            random.below(hot)
        } else {
            hot + random.below(u64::from(shape.units) - hot)
        };
        first as u32
    };
    amplification(&mut mapping, 8 * shape.units, &mut next);
    amplification(&mut mapping, 2 * shape.units, &mut next)
}

/// Blocks are collected after A passes of their units: a unit of a class with the share w of the writes and u of the units
/// survives with exp(-(w/u) (1 + spare) / A). The writes and the survivors of all classes are A.
fn hot_and_cold_form(spare: f64, (writes, units): (f64, f64)) -> f64 {
    let (mut low, mut high) = (1.0, 1000.0);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        let of = |w: f64, u: f64| w / -(-(w / u) * (1.0 + spare) / middle).exp_m1();
        if of(writes, units) + of(1.0 - writes, 1.0 - units) > middle {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[test]
fn hot_and_cold_units_cost_what_the_closed_forms_say() {
    for spare in [0.07, 0.28, 0.5] {
        for classes in HOT {
            let expected = hot_and_cold_form(spare, classes);
            for policy in [Collection::Oldest, Collection::Greedy] {
                let what = format!("{policy:?} {spare} {classes:?}");
                near(hot_and_cold(policy, spare, classes), expected, &what);
            }
            // A random block has the mean of all blocks, whatever was written.
            let policy = Collection::Choices(1);
            let what = format!("{policy:?} {spare} {classes:?}");
            let found = hot_and_cold(policy, spare, classes);
            near(found, uniform(policy, spare), &what);
        }
    }
}
