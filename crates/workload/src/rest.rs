//! Pauses of a worker as a whole: it issues a batch, waits for it, and rests.

use crate::arrivals::Thinker;
use crate::spec::Think;

/// The times at which a worker may issue, ns on the caller's clock.
#[derive(Debug, Clone)]
pub struct Rest {
    thinker: Thinker,
    think: Think,
    state: State,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// Nothing was issued since the last pause.
    Fresh,
    Working {
        /// Requests still to be issued before the pause.
        left: u32,
        /// When the work ends.
        until_ns: u64,
    },
    /// Waits for the outstanding requests.
    Draining,
    Resting {
        until_ns: u64,
        /// The CPU is kept busy until then.
        spin_until_ns: u64,
    },
}

/// The reason why a worker may not issue now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It waits for its outstanding requests.
    Drain,
    /// It pauses until this time, ns.
    Until(u64),
    /// It keeps a CPU busy until this time, ns; then it asks again.
    Spin(u64),
}

impl Rest {
    /// `None`: each slot of the worker pauses by itself.
    #[must_use]
    pub fn new(thinker: &Thinker) -> Option<Rest> {
        let think = thinker.think();
        (think.every > 0 || think.work_ns > 0).then(|| Rest {
            thinker: thinker.clone(),
            think,
            state: State::Fresh,
        })
    }

    /// The same without a busy CPU: for simulated time.
    #[must_use]
    pub fn without_spin(mut self) -> Rest {
        self.think.spin_ns = 0;
        self
    }

    /// The reason why it may not issue now. `idle`: nothing is outstanding.
    #[inline]
    pub fn hold(&mut self, now_ns: u64, idle: bool) -> Option<Hold> {
        if let State::Working { until_ns, .. } = self.state
            && now_ns >= until_ns
        {
            self.state = State::Draining;
        }
        if let State::Draining = self.state {
            if !idle {
                return Some(Hold::Drain);
            }
            let until_ns = now_ns.saturating_add(self.thinker.pause_ns());
            self.state = State::Resting {
                until_ns,
                spin_until_ns: now_ns.saturating_add(self.think.spin_ns).min(until_ns),
            };
        }
        if let State::Resting {
            until_ns,
            spin_until_ns,
        } = self.state
        {
            if now_ns < spin_until_ns {
                return Some(Hold::Spin(spin_until_ns));
            }
            if now_ns < until_ns {
                return Some(Hold::Until(until_ns));
            }
            self.state = State::Fresh;
        }
        None
    }

    /// Records that a request was issued; true if it was the last before a pause.
    #[inline]
    pub fn issued(&mut self, now_ns: u64) -> bool {
        let Think { every, work_ns, .. } = self.think;
        let (left, until_ns) = match self.state {
            State::Working { left, until_ns } => (left, until_ns),
            _ if every > 0 => (every, u64::MAX),
            _ => (u32::MAX, now_ns.saturating_add(work_ns)),
        };
        let left = if every > 0 { left - 1 } else { left };
        self.state = if left == 0 {
            State::Draining
        } else {
            State::Working { left, until_ns }
        };
        left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;

    fn rest(keys: &str) -> Rest {
        let text = format!("think = '10us'\n{keys}");
        let workload = Workload::parse(&text, "test.toml", "test", &[]).unwrap();
        Rest::new(&Thinker::new(&workload.streams[0], 0, 0, 1).unwrap()).unwrap()
    }

    #[test]
    fn a_batch_is_issued_drained_and_followed_by_the_pause() {
        let mut rest = rest("think_every = 3");
        for batch in 0..2 {
            let now = batch * 100_000;
            assert_eq!(rest.hold(now, true), None);
            assert_eq!([0, 1, 2].map(|_| rest.issued(now)), [false, false, true]);
            assert_eq!(rest.hold(now + 1, false), Some(Hold::Drain));
            assert_eq!(rest.hold(now + 5, true), Some(Hold::Until(now + 10_005)));
            assert_eq!(
                rest.hold(now + 10_004, true),
                Some(Hold::Until(now + 10_005))
            );
            assert_eq!(rest.hold(now + 10_005, true), None);
        }
    }

    #[test]
    fn work_counts_from_the_first_request_after_a_pause() {
        let mut rest = rest("think_work = '1us'");
        assert_eq!(rest.hold(0, true), None);
        assert!(!rest.issued(500));
        assert_eq!(rest.hold(1_499, false), None);
        assert!(!rest.issued(1_499));
        assert_eq!(rest.hold(1_500, false), Some(Hold::Drain));
        assert_eq!(rest.hold(1_600, true), Some(Hold::Until(11_600)));
        assert_eq!(rest.hold(11_600, true), None);
    }

    #[test]
    fn the_first_part_of_a_pause_keeps_asking() {
        let mut rest = rest("think_every = 1\nthink_spin = '4us'");
        assert!(rest.issued(0));
        assert_eq!(rest.hold(0, true), Some(Hold::Spin(4_000)));
        assert_eq!(rest.hold(3_999, true), Some(Hold::Spin(4_000)));
        assert_eq!(rest.hold(4_000, true), Some(Hold::Until(10_000)));
    }

    #[test]
    fn slots_that_pause_by_themselves_have_no_rest() {
        let workload = Workload::parse("think = '1ms'", "test.toml", "test", &[]).unwrap();
        assert!(Rest::new(&Thinker::new(&workload.streams[0], 0, 0, 1).unwrap()).is_none());
    }
}
