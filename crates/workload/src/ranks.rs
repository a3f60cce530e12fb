//! Places by popularity: the next rank, and the place of a rank.

use crate::rng::Rng;
use crate::scatter::Scatter;
use crate::spec::Peak;
use crate::zipf::Zipf;

/// Draws ranks below a count; rank 0 is the most popular, but for `Normal`, whose ranks are places.
#[derive(Debug, Clone)]
pub(crate) enum Ranks {
    Zipf(Zipf),
    Pareto(Pareto),
    Normal(Normal),
}

impl Ranks {
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Ranks::Zipf(zipf) => zipf.draw(rng),
            Ranks::Pareto(pareto) => pareto.draw(rng),
            Ranks::Normal(normal) => normal.draw(rng),
        }
    }
}

/// A rank is below k with the chance (k / count)^(1 / power), where power = ln h / ln(1 - h): the first h of all have
/// 1 - h of the requests, whatever part of the ranks is looked at. By inversion, exactly.
#[derive(Debug, Clone)]
pub(crate) struct Pareto {
    count: f64,
    last: u64,
    power: f64,
}

impl Pareto {
    /// `count` is at least 1, `share` above 0 and below 1.
    pub(crate) fn new(count: u64, share: f64) -> Pareto {
        Pareto {
            count: count as f64,
            last: count - 1,
            power: libm::log(share) / libm::log1p(-share),
        }
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        let rank = self.count * libm::pow(rng.unit(), self.power);
        // The unit may be 1, and counts above 2^53 round.
        (rank as u64).min(self.last)
    }
}

/// Normal around a centre, conditioned on being in 0..count. The method of Box and Muller (1958), with rejection.
#[derive(Debug, Clone)]
pub(crate) struct Normal {
    count: f64,
    last: u64,
    mean: f64,
    deviation: f64,
}

impl Normal {
    /// `count` is at least 1; `center` is in 0..=1, `deviation` above 0 and at most 1, both shares of the count.
    pub(crate) fn new(count: u64, center: f64, deviation: f64) -> Normal {
        Normal {
            count: count as f64,
            last: count - 1,
            mean: count as f64 * center,
            deviation: count as f64 * deviation,
        }
    }

    fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let radius = libm::sqrt(2.0 * rng.exponential());
            let normal = radius * libm::cos(std::f64::consts::TAU * rng.unit());
            let place = self.mean + self.deviation * normal;
            if (0.0..self.count).contains(&place) {
                return (place as u64).min(self.last);
            }
        }
    }
}

/// Places of ranks: a bijection of 0..count.
#[derive(Debug, Clone)]
pub(crate) struct Spots {
    scatter: Option<Scatter>,
    shift: u64,
    count: u64,
}

impl Spots {
    /// `count` is at least 1. Rank 0 is at the peak's centre, if it has one.
    pub(crate) fn of_popular(count: u64, peak: Peak, seed: impl Fn() -> u64) -> Spots {
        let scatter = peak.scattered.then(|| Scatter::new(count, seed()));
        let first = scatter.as_ref().map_or(0, |scatter| scatter.place(0));
        let wanted = peak.center.map_or(first, |center| {
            ((count as f64 * center) as u64).min(count - 1)
        });
        Spots {
            scatter,
            shift: (wanted + (count - first)) % count,
            count,
        }
    }

    /// Ranks are places already: they stay there, or are scattered.
    pub(crate) fn of_places(count: u64, scattered: bool, seed: impl Fn() -> u64) -> Spots {
        Spots {
            scatter: scattered.then(|| Scatter::new(count, seed())),
            shift: 0,
            count,
        }
    }

    #[inline]
    pub(crate) fn place(&self, rank: u64) -> u64 {
        let place = match &self.scatter {
            Some(scatter) => scatter.place(rank),
            None => rank,
        };
        // Both are below 2^63: the region is shorter than 8 EiB.
        let place = place + self.shift;
        if place >= self.count {
            place - self.count
        } else {
            place
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 1_000_000;

    /// Chi-square of draws against the probability of being below each rank; ranks with few draws are taken together.
    fn check(ranks: &Ranks, count: u64, below: impl Fn(u64) -> f64) {
        let mut rng = Rng::new(count);
        let mut seen = vec![0_u32; count as usize];
        for _ in 0..DRAWS {
            seen[ranks.draw(&mut rng) as usize] += 1;
        }
        let (mut chi2, mut cells, mut observed, mut done) = (0.0, 0.0_f64, 0.0, 0.0);
        for (index, &n) in seen.iter().enumerate() {
            observed += f64::from(n);
            let chance = below(index as u64 + 1);
            let expected = (chance - done) * f64::from(DRAWS);
            if expected >= 1000.0 || index + 1 == seen.len() && expected > 10.0 {
                chi2 += (observed - expected).powi(2) / expected;
                cells += 1.0;
                (done, observed) = (chance, 0.0);
            }
        }
        let degrees = (cells - 1.0).max(0.0);
        let limit = degrees + 5.0 * (2.0 * degrees).sqrt().max(4.0);
        assert!(
            chi2 < limit,
            "{ranks:?}: chi-square {chi2} for {degrees} degrees"
        );
    }

    #[test]
    fn pareto_ranks_have_the_chances_of_the_definition() {
        for share in [0.05, 0.2, 0.5, 0.9] {
            for count in [1, 2, 33, 1000, 50_000] {
                let power = (1.0_f64 - share).ln() / share.ln();
                let ranks = Ranks::Pareto(Pareto::new(count, share));
                check(&ranks, count, |k| (k as f64 / count as f64).powf(power));
            }
        }
    }

    #[test]
    fn a_fifth_of_the_places_has_four_fifths_of_the_requests() {
        let ranks = Pareto::new(10_000, 0.2);
        let mut rng = Rng::new(1);
        let hot = (0..DRAWS).filter(|_| ranks.draw(&mut rng) < 2000).count();
        let sigma = (f64::from(DRAWS) * 0.16).sqrt();
        assert!((hot as f64 - 0.8 * f64::from(DRAWS)).abs() < 5.0 * sigma);
    }

    #[test]
    fn normal_ranks_have_the_chances_of_the_definition() {
        let phi = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
        for (center, deviation) in [(0.5, 0.1), (0.5, 1.0), (0.0, 0.05), (1.0, 0.3), (0.2, 0.01)] {
            for count in [1, 2, 33, 1000, 50_000] {
                let at = |k: u64| phi((k as f64 / count as f64 - center) / deviation);
                let ranks = Ranks::Normal(Normal::new(count, center, deviation));
                check(&ranks, count, |k| (at(k) - at(0)) / (at(count) - at(0)));
            }
        }
    }

    #[test]
    fn the_most_popular_place_lies_at_the_centre_and_every_place_is_some_rank_s() {
        for count in [1, 2, 3, 100, 4097] {
            for scattered in [true, false] {
                for center in [0.0, 0.25, 0.999, 1.0] {
                    let peak = Peak {
                        center: Some(center),
                        scattered,
                    };
                    let spots = Spots::of_popular(count, peak, || 5);
                    let wanted = ((count as f64 * center) as u64).min(count - 1);
                    assert_eq!(spots.place(0), wanted);
                    let mut seen: Vec<u64> = (0..count).map(|rank| spots.place(rank)).collect();
                    seen.sort_unstable();
                    assert!(seen.into_iter().eq(0..count));
                }
            }
        }
    }

    #[test]
    fn not_scattered_the_next_popular_place_is_the_next_place() {
        let peak = Peak {
            center: Some(0.5),
            scattered: false,
        };
        let spots = Spots::of_popular(100, peak, || 5);
        assert_eq!(
            [0, 1, 49, 50].map(|rank| spots.place(rank)),
            [50, 51, 99, 0]
        );
    }
}
