//! Which of two threads has the processor: the load's, or md's, if all that takes time is that threads read the clock.
//!
//! Linux 6.1 `kernel/sched/fair.c` (`place_entity`, `check_preempt_wakeup`, `check_preempt_tick`, `update_min_vruntime`) on
//! one processor, below a clock that counts timer ticks (`sched_clock` of `kernel/sched/clock.c`): a thread pays for a whole
//! tick if it runs when one comes, and for nothing else.

/// A tick at HZ 250.
const TICK_NS: u64 = 4_000_000;
/// A thread that slept is put at most so far before the others (half of `sysctl_sched_latency`).
const CREDIT_NS: i64 = 3_000_000;
/// A thread that wakes takes the processor from one that is further ahead than this (`sysctl_sched_wakeup_granularity`).
const GRANULARITY_NS: i64 = 1_000_000;

/// A thread that wants the processor, or sleeps.
#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    /// Time that it has had (`vruntime`).
    had_ns: i64,
    runs: bool,
}

/// The two threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Load,
    Md,
}

#[derive(Debug)]
pub(crate) struct Fair {
    threads: [Thread; 2],
    /// The one that has the processor.
    current: Who,
    /// `min_vruntime`.
    least_ns: i64,
    next_tick_ns: u64,
    /// The current one is to give way where it may (`TIF_NEED_RESCHED`).
    is_called: bool,
}

impl Fair {
    /// The load's thread has just begun; md's has slept for long. The first tick comes at `first_tick_ns`.
    pub(crate) fn new(first_tick_ns: u64) -> Fair {
        let load = Thread {
            had_ns: 0,
            runs: true,
        };
        let md = Thread {
            had_ns: i64::MIN / 2,
            runs: false,
        };
        Fair {
            threads: [load, md],
            current: Who::Load,
            least_ns: 0,
            next_tick_ns: first_tick_ns,
            is_called: false,
        }
    }

    fn of(&mut self, who: Who) -> &mut Thread {
        &mut self.threads[who as usize]
    }

    /// The current thread has had the processor from one time to another.
    pub(crate) fn spent(&mut self, from_ns: u64, until_ns: u64) {
        self.wake(self.current);
        while self.next_tick_ns <= until_ns {
            if self.next_tick_ns > from_ns {
                let current = self.current;
                self.of(current).had_ns += TICK_NS as i64;
                self.note_least();
                self.is_called |= self.threads.iter().all(|thread| thread.runs);
            }
            self.next_tick_ns += TICK_NS;
        }
    }

    fn note_least(&mut self) {
        let running = self.threads.iter().filter(|thread| thread.runs);
        if let Some(least_ns) = running.map(|thread| thread.had_ns).min() {
            self.least_ns = self.least_ns.max(least_ns);
        }
    }

    /// A thread wakes. If the current one is far enough ahead, it is to give way.
    pub(crate) fn wake(&mut self, who: Who) {
        if who != self.current {
            self.wake(self.current);
        }
        let placed_ns = self.least_ns - CREDIT_NS;
        let of = self.of(who);
        if std::mem::replace(&mut of.runs, true) {
            return;
        }
        of.had_ns = of.had_ns.max(placed_ns);
        let had_ns = of.had_ns;
        let current = self.current;
        let current = *self.of(current);
        self.is_called |= current.had_ns - had_ns > GRANULARITY_NS;
    }

    pub(crate) fn sleep(&mut self, who: Who) {
        self.of(who).runs = false;
        self.is_called = false;
        self.note_least();
    }

    /// The current thread may give way here: true if it does.
    pub(crate) fn gives_way(&mut self) -> bool {
        if !std::mem::take(&mut self.is_called) {
            return false;
        }
        let [load, md] = self.threads;
        let (current, other) = match self.current {
            Who::Load => (load, md),
            Who::Md => (md, load),
        };
        other.runs && other.had_ns < current.had_ns
    }

    /// Another thread gets the processor.
    pub(crate) fn switch(&mut self, to: Who) {
        self.current = to;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// md's thread has the processor in these ticks, from its first wake on.
    fn after_ticks_of_md(ticks: u64) -> Fair {
        let mut fair = Fair::new(TICK_NS);
        fair.sleep(Who::Load);
        fair.switch(Who::Md);
        fair.spent(0, ticks * TICK_NS);
        fair
    }

    #[test]
    fn md_s_thread_has_slept_and_takes_the_processor_when_the_load_wakes_it() {
        let mut fair = Fair::new(TICK_NS);
        fair.wake(Who::Md);
        assert!(fair.gives_way());
        assert!(!fair.gives_way(), "once");
    }

    #[test]
    fn a_thread_that_has_had_two_ticks_more_gives_way_to_one_that_it_wakes() {
        for (ticks, gives_way) in [(0, false), (1, false), (2, true)] {
            let mut fair = after_ticks_of_md(ticks);
            fair.wake(Who::Load);
            assert_eq!(fair.gives_way(), gives_way, "{ticks} ticks");
            fair.switch(Who::Load);
            fair.wake(Who::Load);
            fair.sleep(Who::Md);
            fair.wake(Who::Md);
            assert_eq!(fair.gives_way(), ticks == 0, "md after {ticks} ticks");
        }
    }

    #[test]
    fn a_thread_pays_for_a_tick_that_comes_while_it_runs_and_for_no_other() {
        let mut fair = Fair::new(TICK_NS);
        fair.spent(0, TICK_NS - 1);
        fair.spent(5 * TICK_NS + 1, 6 * TICK_NS - 1);
        assert_eq!(fair.threads[Who::Load as usize].had_ns, 0);
        fair.spent(6 * TICK_NS - 1, 6 * TICK_NS);
        assert_eq!(fair.threads[Who::Load as usize].had_ns, TICK_NS as i64);
    }
}
