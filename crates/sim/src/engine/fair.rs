//! Which thread has the processor, the load's or md's, if all that takes time is that threads read the clock.
//!
//! Linux 6.1 `kernel/sched/fair.c` (`place_entity`, `check_preempt_wakeup`, `check_preempt_tick`, `update_min_vruntime`) on
//! one processor, below a clock that counts timer ticks (`sched_clock` of `kernel/sched/clock.c`): a thread pays for a whole
//! tick if it runs when one comes, and for nothing else.

use crate::ticks::TICK_NS;

/// A thread that slept is put at most so far before the others (half of `sysctl_sched_latency`).
const CREDIT_NS: i64 = 3_000_000;
/// The time in which each thread has its turn, and the least turn (`sysctl_sched_latency`,
/// `sysctl_sched_min_granularity`).
const LATENCY_NS: i64 = 2 * CREDIT_NS;
const LEAST_SLICE_NS: i64 = 750_000;
/// A thread that wakes takes the processor from one that is further ahead than this (`sysctl_sched_wakeup_granularity`).
const GRANULARITY_NS: i64 = 1_000_000;
/// The same for the block layer's thread (`WQ_HIGHPRI`: nice -20), by the weights of both.
const SERVER_GRANULARITY_NS: i64 = GRANULARITY_NS * 1024 / 88_761;

/// A thread that wants the processor, or sleeps.
#[derive(Debug, Clone, Copy)]
struct Thread {
    /// Time that it has had (`vruntime`).
    had_ns: i64,
    runs: bool,
}

/// Which of the load's threads has the processor, of those that want it.
#[derive(Debug)]
pub(crate) struct Turns {
    threads: Vec<Thread>,
    current: Option<usize>,
    /// `min_vruntime`.
    least_ns: i64,
    first_tick_ns: u64,
    next_tick_ns: u64,
    /// The current one is to give way where it may (`TIF_NEED_RESCHED`).
    is_called: bool,
    /// Time that the block layer's thread has had. It sleeps between its turns, and pays for next to nothing.
    server_had_ns: i64,
}

impl Turns {
    /// The threads have been started one after another and have not run yet (`START_DEBIT`: each is put behind the others
    /// by its share of the latency, `sched_vslice`). The first tick comes at `first_tick_ns`.
    pub(crate) fn new(threads: usize, first_tick_ns: u64) -> Turns {
        let started = |before: usize| Thread {
            had_ns: (LATENCY_NS / (before as i64 + 2)).max(LEAST_SLICE_NS),
            runs: true,
        };
        Turns::of((0..threads).map(started).collect(), None, first_tick_ns)
    }

    fn of(threads: Vec<Thread>, current: Option<usize>, first_tick_ns: u64) -> Turns {
        Turns {
            threads,
            current,
            least_ns: 0,
            first_tick_ns,
            next_tick_ns: first_tick_ns,
            is_called: false,
            server_had_ns: i64::MIN / 2,
        }
    }

    /// True if a tick comes while a thread has the processor between these times. Its interrupt reads the clock too.
    pub(crate) fn is_ticked(&self, from_ns: u64, until_ns: u64) -> bool {
        let ticks_to = |at_ns: u64| (at_ns + TICK_NS).saturating_sub(self.first_tick_ns) / TICK_NS;
        self.current.is_some() && ticks_to(until_ns) > ticks_to(from_ns)
    }

    /// Time has passed; the current thread pays for the ticks.
    pub(crate) fn spent(&mut self, from_ns: u64, until_ns: u64) {
        while self.next_tick_ns <= until_ns {
            if self.next_tick_ns > from_ns
                && let Some(current) = self.current
            {
                self.threads[current].had_ns += TICK_NS as i64;
                self.note_least();
                self.is_called |= self.threads.iter().filter(|thread| thread.runs).count() > 1;
            }
            self.next_tick_ns += TICK_NS;
        }
    }

    fn least(&self) -> Option<i64> {
        let running = self.threads.iter().filter(|thread| thread.runs);
        running.map(|thread| thread.had_ns).min()
    }

    fn note_least(&mut self) {
        if let Some(least_ns) = self.least() {
            self.least_ns = self.least_ns.max(least_ns);
        }
    }

    /// A thread wakes. If the current one is far enough ahead, it is to give way.
    pub(crate) fn wake(&mut self, thread: usize) {
        let placed_ns = self.least_ns - CREDIT_NS;
        let of = &mut self.threads[thread];
        if std::mem::replace(&mut of.runs, true) {
            return;
        }
        of.had_ns = of.had_ns.max(placed_ns);
        let had_ns = of.had_ns;
        let current = self.current.map(|current| self.threads[current].had_ns);
        self.is_called |= current.is_some_and(|current_ns| current_ns - had_ns > GRANULARITY_NS);
    }

    /// The current thread, if one has the processor, has work for the block layer's: true if that takes the processor. After
    /// it the thread that has had least goes on, which may be another one.
    pub(crate) fn serves(&mut self) -> bool {
        self.server_had_ns = self.server_had_ns.max(self.least_ns - CREDIT_NS);
        let is_ahead =
            |at: usize| self.threads[at].had_ns - self.server_had_ns > SERVER_GRANULARITY_NS;
        let serves = self.current.is_none_or(is_ahead);
        self.is_called |= serves;
        serves
    }

    /// The current thread may give way here: true if it does. It still wants the processor.
    pub(crate) fn gives_way(&mut self) -> bool {
        if !std::mem::take(&mut self.is_called) {
            return false;
        }
        let current = self.current.map(|current| self.threads[current].had_ns);
        self.least() < current
    }

    /// A thread gets the processor.
    pub(crate) fn begin(&mut self, thread: usize) {
        self.current = Some(thread);
        self.is_called = false;
    }

    /// The current thread sleeps, or has given way.
    pub(crate) fn end(&mut self, sleeps: bool) {
        if let Some(current) = self.current.take()
            && sleeps
        {
            self.threads[current].runs = false;
            self.note_least();
        }
    }

    pub(crate) fn had_ns(&self, thread: usize) -> i64 {
        self.threads[thread].had_ns
    }
}

/// The threads of a load on a parity array, as one, and md's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Load,
    Md,
}

/// Which of these two has the processor.
#[derive(Debug)]
pub(crate) struct Fair {
    turns: Turns,
    current: Who,
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
        let current = Who::Load;
        Fair {
            turns: Turns::of(vec![load, md], Some(current as usize), first_tick_ns),
            current,
        }
    }

    /// See `Turns::is_ticked`.
    pub(crate) fn is_ticked(&self, from_ns: u64, until_ns: u64) -> bool {
        self.turns.is_ticked(from_ns, until_ns)
    }

    /// The current thread has had the processor from one time to another.
    pub(crate) fn spent(&mut self, from_ns: u64, until_ns: u64) {
        self.turns.wake(self.current as usize);
        self.turns.spent(from_ns, until_ns);
    }

    /// A thread wakes. If the current one is far enough ahead, it is to give way.
    pub(crate) fn wake(&mut self, who: Who) {
        self.turns.wake(self.current as usize);
        self.turns.wake(who as usize);
    }

    /// A thread of the kernel that has slept takes the processor for a moment: who has had least goes on after it.
    pub(crate) fn interrupt(&mut self) {
        self.turns.is_called = true;
    }

    pub(crate) fn sleep(&mut self, who: Who) {
        self.turns.threads[who as usize].runs = false;
        self.turns.is_called = false;
        self.turns.note_least();
    }

    /// The current thread may give way here: true if it does.
    pub(crate) fn gives_way(&mut self) -> bool {
        self.turns.gives_way()
    }

    /// Another thread gets the processor.
    pub(crate) fn switch(&mut self, to: Who) {
        self.current = to;
        self.turns.current = Some(to as usize);
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
        assert_eq!(fair.turns.had_ns(Who::Load as usize), 0);
        fair.spent(6 * TICK_NS - 1, 6 * TICK_NS);
        assert_eq!(fair.turns.had_ns(Who::Load as usize), TICK_NS as i64);
    }

    #[test]
    fn the_thread_started_last_has_had_least_until_it_pays_for_a_tick() {
        let mut turns = Turns::new(2, TICK_NS);
        turns.begin(1);
        turns.spent(0, TICK_NS);
        assert!(turns.gives_way(), "the other one wants the processor");
        turns.end(false);
        assert!(turns.had_ns(0) < turns.had_ns(1));
        turns.begin(0);
        turns.end(true);
        turns.begin(1);
        turns.end(true);
        // Asleep, it is put at most so far before the others.
        turns.wake(1);
        turns.begin(1);
        turns.wake(0);
        assert_eq!(turns.had_ns(1) - turns.had_ns(0), CREDIT_NS);
        assert!(turns.gives_way(), "it is far enough ahead");
    }
}
