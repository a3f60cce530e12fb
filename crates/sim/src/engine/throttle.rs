//! Throttling of write-back: how many writes that nobody waits for a queue takes at a time, so that they do not bury reads.
//!
//! Linux 6.1 `block/blk-wbt.c`, `block/blk-rq-qos.c` (`rq_depth_scale_up`, `rq_depth_scale_down`), since 4.10.

use std::collections::VecDeque;

use super::bio::Chain;
use crate::request::{Id, Origin};
use crate::ticks::{TICK_NS, Ticks};

/// Writes at a time to begin with (`RWB_DEF_DEPTH`).
const FIRST_DEPTH: u32 = 16;
/// Time for which latencies are collected (`RWB_WINDOW_NSEC`).
const WINDOW_NS: u64 = 100_000_000;
/// Writes of a window without which it says nothing (`RWB_MIN_WRITE_SAMPLES`).
const LEAST_WRITES: u32 = 3;
/// Windows that say nothing, after which the depth goes one step back (`RWB_UNKNOWN_BUMP`).
const UNKNOWN_WINDOWS: u32 = 5;
/// Reads are near for so long (`close_io`).
const NEAR_NS: u64 = 100_000_000;
/// A writer has waited lately for so long (`wb_recent_wait`).
const LATELY_NS: u64 = 1_000_000_000;
/// Further steps up would exceed the depth of any queue.
const MOST_STEPS: i32 = 16;

/// The facts on which a queue's throttle depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThrottleSetup {
    /// Requests of the queue when it came up (`blk_queue_depth`; a SCSI disk's own depth is not distinguished).
    pub(crate) depth: u32,
    /// The drive has a write cache, as far as the kernel knows.
    pub(crate) write_cache: bool,
    /// Latency that reads shall not exceed (`wbt_default_latency_nsec`).
    pub(crate) target_ns: u64,
    /// Nothing but writes came before, for longer than the windows that lead to the most writes at a time. Then the queue
    /// was idle for so long, ns.
    pub(crate) idle_after_writes_ns: Option<u64>,
}

pub(crate) struct Throttle {
    setup: ThrottleSetup,
    ticks: Ticks,
    /// Below 0: more than the first depth.
    step: i32,
    is_at_most: bool,
    /// Limits of writes that someone waits for, of others, and of the flusher's.
    most: u32,
    normal: u32,
    background: u32,
    inflight: u32,
    waiting: VecDeque<Chain>,
    /// The end of the window, while there is one.
    window_ns: Option<u64>,
    unknown: u32,
    fastest_read_ns: Option<u64>,
    writes: u32,
    /// A read at the drive that is watched, and the time it was sent.
    watched: Option<(Id, u64)>,
    read_ns: Option<u64>,
    writer_waited_ns: Option<u64>,
}

/// The verdict on a window.
#[derive(PartialEq, Eq)]
enum Verdict {
    Fast,
    Slow,
    OnlyWrites,
    Nothing,
}

impl Throttle {
    pub(crate) fn new(setup: ThrottleSetup) -> Throttle {
        let mut throttle = Throttle {
            setup,
            ticks: Ticks::default(),
            step: 0,
            is_at_most: false,
            most: 0,
            normal: 0,
            background: 0,
            inflight: 0,
            waiting: VecDeque::new(),
            window_ns: None,
            unknown: 0,
            fastest_read_ns: None,
            writes: 0,
            watched: None,
            read_ns: None,
            writer_waited_ns: None,
        };
        throttle.set_limits();
        if let Some(idle_ns) = setup.idle_after_writes_ns {
            while !throttle.is_at_most && throttle.step > -MOST_STEPS {
                throttle.step_up();
            }
            let steps_back = idle_ns / (u64::from(UNKNOWN_WINDOWS) * WINDOW_NS);
            for _ in 0..steps_back.min(u64::from(throttle.step.unsigned_abs())) {
                throttle.step_down(false);
            }
        }
        throttle
    }

    /// Nothing was written for a long time.
    pub(crate) fn rest(&mut self) {
        self.step = 0;
        self.set_limits();
    }

    /// Its windows end with ticks.
    pub(crate) fn follow(&mut self, ticks: Ticks) {
        self.ticks = ticks;
    }

    /// The end of the window, if writes wait that it may let in.
    pub(crate) fn wakes_ns(&self) -> Option<u64> {
        self.window_ns.filter(|_| !self.waiting.is_empty())
    }

    /// The window may be over: true if there may be more writes at a time, and so all who wait look (`rwb_wake_all`).
    pub(crate) fn timer(&mut self, now_ns: u64) -> bool {
        let before = self.most;
        self.look(now_ns);
        self.most > before
    }

    /// `rq_depth_calc_max_depth`, `calc_wb_limits`.
    fn set_limits(&mut self) {
        let depth = self.setup.depth;
        if depth == 1 {
            self.is_at_most = self.step <= 0;
            self.most = if self.step > 0 { 1 } else { 2 };
        } else {
            let first = FIRST_DEPTH.min(depth);
            self.most = match self.step {
                0 => first,
                1.. => 1 + ((first - 1) >> self.step.min(31)),
                _ => 1 + ((first - 1) << -self.step),
            };
            let limit = 3 * depth / 4;
            self.is_at_most = self.step < 0 && self.most > limit;
            if self.is_at_most {
                self.most = limit;
            }
        }
        (self.normal, self.background) = match self.most {
            most @ 0..=2 => (most, 1),
            most => (most.div_ceil(2), most.div_ceil(4)),
        };
    }

    /// A writer sleeps because too many pages are dirty.
    pub(crate) fn writer_waits(&mut self, now_ns: u64) {
        self.writer_waited_ns = Some(now_ns);
    }

    fn writer_waited_lately(&self, now_ns: u64) -> bool {
        self.writer_waited_ns
            .is_some_and(|since_ns| now_ns < since_ns + LATELY_NS)
    }

    /// `get_limit`.
    fn limit(&self, now_ns: u64, chain: &Chain) -> u32 {
        let near = self.read_ns.is_some_and(|at_ns| now_ns < at_ns + NEAR_NS);
        if chain.request.sync || self.writer_waited_lately(now_ns) {
            self.most
        } else if chain.request.origin == Origin::Flusher || near {
            self.background
        } else {
            self.normal
        }
    }

    /// True if the write may have a request; otherwise it waits behind others.
    pub(crate) fn takes(&mut self, now_ns: u64, chain: Chain) -> bool {
        self.look(now_ns);
        let takes = self.waiting.is_empty() && self.inflight < self.limit(now_ns, &chain);
        if takes {
            self.inflight += 1;
        } else {
            self.waiting.push_back(chain);
        }
        if self.window_ns.is_none() {
            self.begin_window(now_ns);
        }
        takes
    }

    /// A write has become part of another one.
    pub(crate) fn merged(&mut self) {
        self.inflight -= 1;
    }

    /// A read comes.
    pub(crate) fn read_comes(&mut self, now_ns: u64) {
        self.read_ns = Some(now_ns);
    }

    /// A read is sent to the drive.
    pub(crate) fn read_begins(&mut self, now_ns: u64, id: Id) {
        self.watched.get_or_insert((id, now_ns));
    }

    /// The drive is done with a read or a write after that time.
    pub(crate) fn ends(
        &mut self,
        now_ns: u64,
        id: Id,
        is_read: bool,
        is_throttled: bool,
        took_ns: u64,
    ) {
        if is_read {
            self.watched.take_if(|(watched, _)| *watched == id);
            self.read_ns = Some(now_ns);
        }
        if self.window_ns.is_some() {
            if is_read {
                let fastest_ns = self.fastest_read_ns.unwrap_or(u64::MAX);
                self.fastest_read_ns = Some(fastest_ns.min(took_ns));
            } else {
                self.writes += 1;
            }
        }
        self.inflight -= u32::from(is_throttled);
        self.look(now_ns);
    }

    /// The next write that waited and may have a request now (`wbt_rqw_done`): a drive with a write cache first finishes all.
    /// `goes_on`: another one before it may already.
    pub(crate) fn next(&mut self, now_ns: u64, goes_on: bool) -> Option<Chain> {
        let first = self.waiting.front()?;
        let least = match self.setup.write_cache && !self.writer_waited_lately(now_ns) {
            true => 0,
            false => self.normal,
        };
        let room = least.saturating_sub(self.inflight);
        let is_woken = self.inflight == 0 || (room > 0 && room >= self.background / 2);
        if !(goes_on || is_woken) || self.inflight >= self.limit(now_ns, first) {
            return None;
        }
        self.inflight += 1;
        self.waiting.pop_front()
    }

    fn begin_window(&mut self, now_ns: u64) {
        // `rwb_arm_timer`: 100 ms / sqrt(steps + 1) in fixed point.
        let window_ns = match self.step {
            1.. => (WINDOW_NS << 4) / u64::from(((self.step as u32 + 1) << 8).isqrt()),
            _ => WINDOW_NS,
        };
        self.window_ns = Some(self.ticks.timer_ns(now_ns, window_ns / TICK_NS));
        self.fastest_read_ns = None;
        self.writes = 0;
    }

    /// Windows that are over by now (`wb_timer_fn`).
    fn look(&mut self, now_ns: u64) {
        while let Some(end_ns) = self.window_ns.filter(|end_ns| *end_ns <= now_ns) {
            match self.verdict(end_ns) {
                Verdict::Slow => self.step_down(true),
                Verdict::Fast | Verdict::OnlyWrites => self.step_up(),
                Verdict::Nothing => {
                    self.unknown += 1;
                    if self.unknown >= UNKNOWN_WINDOWS && self.step > 0 {
                        self.step_up();
                    } else if self.unknown >= UNKNOWN_WINDOWS && self.step < 0 {
                        self.step_down(false);
                    }
                }
            }
            if self.step == 0 && self.inflight == 0 {
                self.window_ns = None;
            } else {
                self.begin_window(end_ns);
            }
        }
    }

    /// `latency_exceeded`.
    fn verdict(&self, now_ns: u64) -> Verdict {
        let target_ns = self.setup.target_ns;
        if let Some((_, sent_ns)) = self.watched {
            let so_far_ns = now_ns.saturating_sub(sent_ns);
            if so_far_ns > WINDOW_NS || (so_far_ns > target_ns && self.fastest_read_ns.is_none()) {
                return Verdict::Slow;
            }
        }
        match self.fastest_read_ns.filter(|_| self.writes >= LEAST_WRITES) {
            Some(fastest_ns) if fastest_ns > target_ns => Verdict::Slow,
            Some(_) => Verdict::Fast,
            None if self.writes > 0 || self.inflight > 0 || self.writer_waited_lately(now_ns) => {
                Verdict::OnlyWrites
            }
            None => Verdict::Nothing,
        }
    }

    /// `scale_up`.
    fn step_up(&mut self) {
        if !self.is_at_most && self.step > -MOST_STEPS {
            self.step -= 1;
            self.unknown = 0;
            self.set_limits();
        }
    }

    /// `scale_down`.
    fn step_down(&mut self, hard: bool) {
        if self.most > 1 {
            self.step = if hard && self.step < 0 {
                0
            } else {
                self.step + 1
            };
            self.unknown = 0;
            self.set_limits();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::BlockRequest;

    /// The tick after the 25th: a timer of 100 ms.
    const ENDS_NS: u64 = 26 * TICK_NS;
    const MS: u64 = 1_000_000;
    const SETUP: ThrottleSetup = ThrottleSetup {
        depth: 64,
        write_cache: true,
        target_ns: 75 * MS,
        idle_after_writes_ns: None,
    };

    fn write(origin: Origin, sync: bool) -> Chain {
        let request = BlockRequest {
            sync,
            origin,
            ..BlockRequest::write(0, 8, 0)
        };
        Chain::of(0, request)
    }

    /// Writes that it takes at once.
    fn taken(throttle: &mut Throttle, now_ns: u64, chain: Chain) -> u32 {
        let mut taken = 0;
        while throttle.takes(now_ns, chain) {
            taken += 1;
        }
        taken
    }

    fn end(throttle: &mut Throttle, now_ns: u64, writes: u32) {
        for _ in 0..writes {
            throttle.ends(now_ns, 0, false, true, MS);
        }
    }

    #[test]
    fn the_flusher_gets_a_quarter_and_an_fsync_all() {
        for (chain, most) in [
            (write(Origin::Cache, true), 16),
            (write(Origin::Cache, false), 8),
            (write(Origin::Flusher, false), 4),
        ] {
            assert_eq!(taken(&mut Throttle::new(SETUP), 0, chain), most);
        }
    }

    #[test]
    fn a_drive_with_a_cache_finishes_all_before_others_go_on_and_one_without_half() {
        for (write_cache, ended) in [(true, 8), (false, 2)] {
            let mut throttle = Throttle::new(ThrottleSetup {
                write_cache,
                ..SETUP
            });
            assert_eq!(taken(&mut throttle, 0, write(Origin::Cache, false)), 8);
            end(&mut throttle, MS, ended - 1);
            assert!(throttle.next(MS, false).is_none());
            end(&mut throttle, MS, 1);
            assert!(throttle.next(MS, false).is_some());
        }
    }

    #[test]
    fn a_writer_that_waits_opens_it() {
        let mut throttle = Throttle::new(SETUP);
        throttle.writer_waits(0);
        assert_eq!(taken(&mut throttle, MS, write(Origin::Flusher, false)), 16);
        let mut later = Throttle::new(SETUP);
        later.writer_waits(0);
        assert_eq!(
            taken(&mut later, LATELY_NS, write(Origin::Flusher, false)),
            4
        );
    }

    #[test]
    fn writes_alone_raise_the_limits_up_to_three_quarters_and_idle_time_undoes_it() {
        let mut throttle = Throttle::new(SETUP);
        let limits: Vec<u32> = (0..4)
            .map(|window| {
                let now_ns = window * ENDS_NS;
                assert!(throttle.takes(now_ns, write(Origin::Cache, true)));
                end(&mut throttle, now_ns + MS, 1);
                throttle.most
            })
            .collect();
        assert_eq!(limits, [16, 31, 48, 48]);
        throttle.look(20 * ENDS_NS);
        assert_eq!(throttle.most, 16);
    }

    #[test]
    fn a_file_written_before_leaves_the_most() {
        let mut throttle = Throttle::new(ThrottleSetup {
            idle_after_writes_ns: Some(0),
            ..SETUP
        });
        assert_eq!(taken(&mut throttle, 0, write(Origin::Cache, true)), 48);
    }

    #[test]
    fn each_half_second_of_idle_time_takes_a_step_back() {
        let limits = [0, 1000, 5000].map(|idle_ms| {
            let mut throttle = Throttle::new(ThrottleSetup {
                depth: 256,
                idle_after_writes_ns: Some(idle_ms * MS),
                ..SETUP
            });
            taken(&mut throttle, 0, write(Origin::Passed, true))
        });
        assert_eq!(limits, [192, 61, 16]);
    }

    #[test]
    fn reads_that_take_too_long_lower_the_limits() {
        let mut throttle = Throttle::new(SETUP);
        assert_eq!(taken(&mut throttle, 0, write(Origin::Cache, false)), 8);
        throttle.read_comes(MS);
        throttle.read_begins(MS, 7);
        end(&mut throttle, 90 * MS, 8);
        throttle.ends(90 * MS, 7, true, false, 89 * MS);
        throttle.look(ENDS_NS);
        assert_eq!(throttle.most, 8);
        // Reads are near: the flusher's share.
        assert_eq!(throttle.limit(ENDS_NS, &write(Origin::Cache, false)), 2);
    }

    #[test]
    fn the_end_of_a_window_lets_in_who_waits() {
        let mut throttle = Throttle::new(SETUP);
        assert_eq!(throttle.wakes_ns(), None);
        assert_eq!(taken(&mut throttle, 0, write(Origin::Passed, true)), 16);
        assert_eq!(throttle.wakes_ns(), Some(ENDS_NS));
        assert!(!throttle.timer(ENDS_NS - 1));
        assert!(throttle.timer(ENDS_NS), "only writes: more at a time");
        assert!(throttle.next(ENDS_NS, true).is_some());
    }
}
