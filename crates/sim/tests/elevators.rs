//! Scripted arrivals, and the order of dispatch that each elevator's source implies.

use spindle_sim::elevator::{
    AnticipatorySettings, BatchRule, BfqSettings, DeadlineSettings, MqDeadlineSettings,
};
use spindle_sim::{BlockRequest, Elevator, Id, Kernel, Scheduler, Ticks};
use spindle_workload::{Priority, PriorityClass};

const MS: u64 = 1_000_000;
const OLD: Kernel = Kernel::new(2, 6, 32);
const NEW: Kernel = Kernel::new(6, 1, 0);
const NEWEST: Kernel = Kernel::new(6, 18, 0);

/// An elevator with requests that are identified by their address.
struct Stage {
    elevator: Box<dyn Elevator>,
    requests: Vec<BlockRequest>,
    now_ms: u64,
}

impl Stage {
    fn new(scheduler: Scheduler) -> Stage {
        Stage {
            elevator: scheduler.build(false, 31),
            requests: Vec::new(),
            now_ms: 0,
        }
    }

    fn named(name: &str, kernel: Kernel) -> Stage {
        Stage::new(Scheduler::named(name, kernel).unwrap())
    }

    /// bfq that raises no queue.
    fn bfq() -> Stage {
        Stage::new(Scheduler::Bfq(BfqSettings {
            low_latency: false,
            ..BfqSettings::default()
        }))
    }

    fn at(&mut self, ms: u64) -> &mut Stage {
        self.now_ms = ms;
        let now_ns = ms * MS;
        while let Some(due_ns) = self.elevator.timer_ns().filter(|&due_ns| due_ns <= now_ns) {
            self.elevator.timer(due_ns, &self.requests);
        }
        self
    }

    fn add(&mut self, request: BlockRequest) -> &mut Stage {
        let id = self.requests.len() as Id;
        self.requests.push(request);
        self.elevator.insert(self.now_ms * MS, id, &self.requests);
        self
    }

    fn reads(&mut self, thread: u32, lbns: &[u64]) -> &mut Stage {
        for &lbn in lbns {
            self.add(BlockRequest::read(lbn, 8, thread));
        }
        self
    }

    fn writes(&mut self, thread: u32, lbns: &[u64]) -> &mut Stage {
        for &lbn in lbns {
            self.add(BlockRequest::write(lbn, 8, thread));
        }
        self
    }

    /// Pages that the kernel writes back.
    fn write_back(&mut self, lbns: &[u64]) -> &mut Stage {
        for &lbn in lbns {
            self.add(BlockRequest::write(lbn, 8, 99).asynchronous());
        }
        self
    }

    fn next(&mut self) -> Option<u64> {
        let id = self.elevator.dispatch(self.now_ms * MS, &self.requests)?;
        Some(self.requests[id as usize].lbn)
    }

    fn take(&mut self, count: usize) -> Vec<u64> {
        (0..count).map_while(|_| self.next()).collect()
    }

    fn all(&mut self) -> Vec<u64> {
        self.take(usize::MAX)
    }

    /// The device has done the request at this address.
    fn done(&mut self, lbn: u64) -> &mut Stage {
        let id = self.requests.iter().position(|request| request.lbn == lbn);
        let id = id.unwrap() as Id;
        self.elevator
            .completed(self.now_ms * MS, id, &self.requests);
        self
    }

    fn completes(&mut self, lbns: &[u64]) -> &mut Stage {
        for &lbn in lbns {
            self.done(lbn);
        }
        self
    }
}

fn with(class: PriorityClass, level: u8) -> Priority {
    Priority { class, level }
}

#[test]
fn noop_and_none_serve_in_order_of_arrival() {
    for name in ["noop", "none", "fcfs"] {
        let mut stage = Stage::named(name, OLD);
        stage
            .reads(0, &[700, 100])
            .writes(1, &[300])
            .reads(0, &[200]);
        assert_eq!(stage.all(), [700, 100, 300, 200], "{name}");
        assert_eq!(stage.elevator.waiting(), 0);
    }
}

#[test]
fn the_textbooks_elevators_do_as_the_textbook_says() {
    // The example of Silberschatz, Galvin, Gagne: head at 53, requests 98 183 37 122 14 124 65 67; with 40 for 37, as a
    // head is behind the block that it has read.
    let queue = [98, 183, 40, 122, 14, 124, 65, 67];
    for (name, order) in [
        ("sstf", [65, 67, 40, 14, 98, 122, 124, 183]),
        ("look", [65, 67, 98, 122, 124, 183, 40, 14]),
        ("scan", [65, 67, 98, 122, 124, 183, 40, 14]),
        ("c-look", [65, 67, 98, 122, 124, 183, 14, 40]),
    ] {
        let mut stage = Stage::named(name, OLD);
        stage.add(BlockRequest::read(52, 1, 0));
        assert_eq!(stage.next(), Some(52));
        for lbn in queue {
            stage.add(BlockRequest::read(lbn, 1, 0));
        }
        assert_eq!(stage.all(), order, "{name}");
    }
}

#[test]
fn deadline_sweeps_upwards_and_serves_writes_when_reads_are_gone() {
    let mut stage = Stage::named("deadline", OLD);
    stage.writes(1, &[50]).reads(0, &[300, 100, 500, 400]);
    // The sweep begins at the oldest read and goes up; below it, from the oldest again.
    assert_eq!(stage.all(), [300, 400, 500, 100, 50]);
}

#[test]
fn deadline_serves_starved_writes_after_two_batches_of_reads() {
    let mut settings = DeadlineSettings::of(OLD);
    settings.fifo_batch = 1;
    let mut stage = Stage::new(Scheduler::Deadline(settings));
    stage
        .reads(0, &[100, 200, 300, 400, 500])
        .writes(1, &[50, 60]);
    // After a write the place of the reads is forgotten: the oldest is next.
    assert_eq!(stage.all(), [100, 200, 50, 300, 400, 60, 500]);
}

#[test]
fn deadline_goes_to_an_expired_read_and_on_from_there() {
    let mut settings = DeadlineSettings::of(OLD);
    settings.fifo_batch = 2;
    for (ms, order) in [(500, [960, 970, 100, 150]), (501, [100, 150, 960, 970])] {
        let mut stage = Stage::new(Scheduler::Deadline(settings));
        stage.reads(0, &[900, 100, 950, 960, 970, 150]);
        assert_eq!(stage.take(2), [900, 950]);
        // Until 500 ms the sweep goes on; then the read at 100 is late, and the sweep goes on behind it.
        stage.at(ms);
        assert_eq!(stage.all(), order, "{ms} ms");
    }
}

#[test]
fn deadline_before_2_6_24_begins_at_the_lowest_address_and_ends_a_batch_at_a_gap() {
    let mut settings = DeadlineSettings::of(Kernel::new(2, 6, 20));
    assert_eq!(settings.rule, BatchRule::Contiguous);
    settings.writes_starved = 1;
    let mut stage = Stage::new(Scheduler::Deadline(settings));
    stage.reads(0, &[300, 100, 108, 200]).writes(1, &[50, 58]);
    // The first batch of reads is 100 108, for the gap before 200 ends it; writes are starved then.
    assert_eq!(stage.all(), [100, 108, 50, 58, 200, 300]);
    let mut settings = DeadlineSettings::of(Kernel::new(2, 6, 24));
    settings.writes_starved = 1;
    let mut stage = Stage::new(Scheduler::Deadline(settings));
    stage.reads(0, &[300, 100, 108, 200]).writes(1, &[50, 58]);
    assert_eq!(stage.all(), [300, 50, 58, 100, 108, 200]);
}

#[test]
fn mq_deadline_forgets_its_place_before_6_5_and_keeps_it_since() {
    for (kernel, order) in [(NEW, [300, 400, 50, 100]), (NEWEST, [50, 100, 300, 400])] {
        let mut settings = MqDeadlineSettings::of(kernel);
        settings.fifo_batch = 1;
        let mut stage = Stage::new(Scheduler::MqDeadline(settings));
        stage.reads(0, &[300, 100, 400]).writes(1, &[50]);
        assert_eq!(stage.all(), order, "{kernel}");
    }
    let mut settings = MqDeadlineSettings::of(NEWEST);
    settings.fifo_batch = 2;
    let mut stage = Stage::new(Scheduler::MqDeadline(settings));
    stage
        .reads(0, &[100, 200, 300, 400, 500, 600])
        .writes(1, &[700]);
    assert_eq!(stage.take(3), [700, 100, 200]);
    stage.reads(0, &[50]).writes(1, &[40, 30]);
    // Two batches of reads, then the starved writes from the oldest; then the reads go on at 600 and the
    // read at 50 comes last.
    assert_eq!(stage.all(), [300, 400, 500, 600, 40, 50, 30]);
}

#[test]
fn mq_deadline_goes_on_where_a_direction_was_since_5_14() {
    for (kernel, reads) in [(Kernel::new(5, 10, 0), [100, 500]), (NEW, [500, 100])] {
        let mut settings = MqDeadlineSettings::of(kernel);
        settings.fifo_batch = 2;
        settings.writes_starved = 0;
        let mut stage = Stage::new(Scheduler::MqDeadline(settings));
        stage.reads(0, &[300, 400, 100, 500]).writes(1, &[50]);
        assert_eq!(stage.take(3), [50, 300, 400], "{kernel}");
        stage.writes(1, &[60, 40]);
        // After the writes, the request that was next for reads, or the oldest.
        assert_eq!(stage.take(2), [60, 40], "{kernel}");
        assert_eq!(stage.all(), reads, "{kernel}");
    }
}

#[test]
fn mq_deadline_serves_higher_classes_first_and_aged_requests_after_ten_seconds() {
    let realtime = with(PriorityClass::Realtime, 0);
    let idle = with(PriorityClass::Idle, 0);
    let mut stage = Stage::named("mq-deadline", NEW);
    stage
        .add(BlockRequest::read(10, 8, 0).with_priority(idle))
        .reads(1, &[100])
        .add(BlockRequest::read(900, 8, 2).with_priority(realtime));
    assert_eq!(stage.next(), Some(900));
    // Lower classes wait until what is in the device is done.
    assert_eq!(stage.next(), None);
    stage.done(900);
    assert_eq!(stage.next(), Some(100));
    stage.add(BlockRequest::read(901, 8, 2).with_priority(realtime));
    stage.at(9_999).done(100);
    assert_eq!(stage.next(), Some(901));
    assert_eq!(stage.next(), None);
    stage.at(10_000);
    assert_eq!(stage.next(), Some(10));
}

#[test]
fn anticipatory_waits_for_the_next_read_of_the_same_thread() {
    let mut stage = Stage::named("anticipatory", OLD);
    stage.reads(0, &[1000]);
    assert_eq!(stage.next(), Some(1000));
    stage.at(1).reads(1, &[5_000_000]);
    assert_eq!(stage.next(), None);
    stage.at(5).done(1000);
    assert_eq!(stage.next(), None);
    stage.at(7).reads(0, &[1008]);
    assert_eq!(stage.next(), Some(1008));
    stage.at(12).done(1008);
    // Six milliseconds after the completion it gives up.
    assert_eq!(stage.at(17).next(), None);
    assert_eq!(stage.at(18).next(), Some(5_000_000));
}

#[test]
fn anticipatory_takes_a_near_request_of_another_thread() {
    let mut stage = Stage::named("anticipatory", OLD);
    stage.reads(0, &[1000]);
    assert_eq!(stage.next(), Some(1000));
    stage.reads(1, &[5_000_000, 2000]);
    assert_eq!(stage.next(), Some(2000));
}

#[test]
fn anticipatory_changes_between_batches_of_reads_and_writes() {
    let settings = AnticipatorySettings {
        antic_expire_ns: 0,
        ..AnticipatorySettings::default()
    };
    let mut stage = Stage::new(Scheduler::Anticipatory(settings));
    stage.reads(0, &[1000, 2000, 3000]);
    stage.add(BlockRequest::write(500, 8, 1).asynchronous());
    stage.add(BlockRequest::write(600, 8, 1).asynchronous());
    assert_eq!(stage.next(), Some(1000));
    stage.at(10).done(1000);
    // The batch lasts 500 ms from its first completion.
    assert_eq!(stage.at(20).next(), Some(2000));
    stage.at(520);
    // It is over, but writes wait until the device has done the reads.
    assert_eq!(stage.next(), None);
    stage.done(2000);
    assert_eq!(stage.all(), [500, 600]);
    stage.at(530).done(500).done(600);
    assert_eq!(stage.next(), Some(3000));
}

#[test]
fn cfq_serves_one_thread_at_a_time_and_waits_for_it() {
    let mut stage = Stage::named("cfq", OLD);
    stage.reads(0, &[1000, 1008, 1016, 1024, 1032, 1040]);
    stage.reads(1, &[900_000, 900_008]);
    // Four of one queue in the device while another waits (quantum).
    assert_eq!(stage.all(), [1000, 1008, 1016, 1024]);
    stage.at(5).done(1000);
    assert_eq!(stage.all(), [1032]);
    stage.at(6).done(1008);
    assert_eq!(stage.all(), [1040]);
    stage.at(7).completes(&[1016, 1024, 1032]);
    assert!(stage.all().is_empty());
    stage.at(8).done(1040);
    // Idle for 8 ms after the last completion.
    assert!(stage.at(15).all().is_empty());
    assert_eq!(stage.at(16).all(), [900_000, 900_008]);
}

#[test]
fn cfq_ends_a_slice_after_100_ms_and_comes_back_by_level() {
    let mut stage = Stage::named("cfq", OLD);
    let low = with(PriorityClass::BestEffort, 7);
    let first: Vec<u64> = (0..30).map(|index| 1000 + 8 * index).collect();
    stage.reads(0, &first);
    for lbn in [500_000, 500_008] {
        stage.add(BlockRequest::read(lbn, 8, 1).with_priority(low));
    }
    let mut order = Vec::new();
    for step in 1..=26 {
        if let Some(lbn) = stage.next() {
            order.push(lbn);
            stage.at(10 * step).done(lbn);
        }
    }
    // The first completion, at 10 ms, starts the slice: the one at 110 ms ends it. The other queue's is 40 ms at
    // level 7, and it runs dry.
    assert_eq!(order[..11], first[..11]);
    assert_eq!(order[11..13], [500_000, 500_008]);
}

#[test]
fn cfq_lets_realtime_preempt_and_idle_wait() {
    let mut stage = Stage::named("cfq", OLD);
    let realtime = with(PriorityClass::Realtime, 4);
    let idle = with(PriorityClass::Idle, 0);
    stage.add(BlockRequest::read(100, 8, 5).with_priority(idle));
    stage.reads(0, &[1000, 1008, 1016]);
    assert_eq!(stage.next(), Some(1000));
    stage.add(BlockRequest::read(700_000, 8, 1).with_priority(realtime));
    assert_eq!(stage.next(), Some(700_000));
    stage.at(5).done(1000).done(700_000);
    // The realtime queue is waited for, then the other goes on, and the idle one comes last.
    assert_eq!(stage.at(6).next(), None);
    assert_eq!(stage.at(13).all(), [1008, 1016]);
    stage.at(20).done(1008).done(1016);
    assert_eq!(stage.at(27).next(), None);
    assert_eq!(stage.at(28).next(), Some(100));
}

#[test]
fn cfq_holds_asynchronous_writes_back_while_reads_are_in_flight() {
    let mut stage = Stage::named("cfq", OLD);
    stage.reads(0, &[1000]);
    assert_eq!(stage.next(), Some(1000));
    for lbn in [10, 20, 30] {
        stage.add(BlockRequest::write(lbn, 8, 1).asynchronous());
    }
    assert_eq!(stage.next(), None);
    stage.at(5).done(1000);
    assert_eq!(stage.at(6).next(), None);
    // One at a time within a slice's time of the last read (low_latency).
    // The nearest behind the head comes first.
    assert_eq!(stage.at(13).all(), [30]);
    stage.at(14).done(30);
    assert_eq!(stage.all(), [20]);
    stage.at(300).done(20);
    assert_eq!(stage.all(), [10]);
}

#[test]
fn cfq_seeks_back_a_little_rather_than_ahead_far() {
    let mut stage = Stage::named("cfq", OLD);
    stage.add(BlockRequest::read(99_992, 8, 0));
    assert_eq!(stage.next(), Some(99_992));
    stage.reads(0, &[103_000, 99_000, 60_000]);
    // 1000 blocks behind count as 2000, 3000 ahead as 3000; 40 000 behind are too far and come after all ahead.
    assert_eq!(stage.all(), [99_000, 103_000, 60_000]);
}

#[test]
fn cfq_before_2_6_28_waits_for_a_thread_that_has_requests_at_the_drive() {
    let waits = |kernel| {
        let mut stage = Stage::named("cfq", kernel);
        stage.reads(0, &[1000, 1008]);
        assert_eq!(stage.all(), [1000, 1008]);
        stage.at(5).done(1000);
        let waits = stage.elevator.timer_ns().is_some();
        stage.reads(0, &[1016]);
        // The request that it waited for goes at once.
        assert_eq!(stage.elevator.starts(), waits);
        waits
    };
    assert!(waits(Kernel::new(2, 6, 27)));
    assert!(!waits(Kernel::new(2, 6, 29)) && !waits(OLD));
}

#[test]
fn cfq_before_2_6_30_sends_four_requests_of_a_queue_together() {
    let sent = |kernel| {
        let mut stage = Stage::named("cfq", kernel);
        let lbns: Vec<u64> = (0..12).map(|index| 1000 + 8 * index).collect();
        stage.reads(0, &lbns).reads(1, &[900_000]);
        assert_eq!(stage.all(), lbns[..4]);
        stage.at(5).done(1000);
        stage.all().len()
    };
    assert_eq!(sent(Kernel::new(2, 6, 24)), 4);
    assert_eq!(sent(OLD), 1);
}

#[test]
fn cfq_before_2_6_30_sends_nothing_together_with_a_request_that_comes_once_the_queue_is_empty() {
    let mut stage = Stage::named("cfq", Kernel::new(2, 6, 24));
    stage.reads(0, &[1000]).reads(1, &[900_000]);
    assert_eq!(stage.next(), Some(1000));
    stage.at(5).done(1000).at(6).reads(0, &[1008]);
    // The slice is over.
    assert_eq!(stage.at(200).next(), Some(900_000));
}

#[test]
fn cfq_before_2_6_30_starts_at_once_what_it_waited_for_and_nothing_after_it() {
    for kernel in [Kernel::new(2, 6, 18), Kernel::new(2, 6, 24)] {
        let mut stage = Stage::named("cfq", kernel);
        stage.reads(0, &[1000]);
        assert_eq!(stage.next(), Some(1000));
        stage.at(5).done(1000).at(6).reads(0, &[1008]);
        assert!(stage.elevator.starts(), "{kernel}");
        assert_eq!(stage.next(), Some(1008));
        // This one may grow in the queue.
        stage.reads(0, &[1016]);
        assert!(!stage.elevator.starts(), "{kernel}");
    }
}

/// A thread that reads every 20 ms: CFQ does not wait for it.
fn slow_reader(kernel: Kernel) -> Stage {
    let mut stage = Stage::named("cfq", kernel);
    for turn in 0..5 {
        stage.at(20 * turn).reads(0, &[1000 + 8 * turn]);
        assert_eq!(stage.next(), Some(1000 + 8 * turn));
        stage.at(20 * turn + 1).done(1000 + 8 * turn);
    }
    stage.at(100).reads(0, &[5000]).write_back(&[90_000]);
    assert_eq!(stage.next(), Some(5000));
    stage
}

#[test]
fn cfq_before_2_6_22_sends_writes_beside_a_read_of_a_thread_that_it_does_not_wait_for() {
    assert_eq!(slow_reader(Kernel::new(2, 6, 18)).next(), Some(90_000));
    assert_eq!(slow_reader(Kernel::new(2, 6, 22)).next(), None);
    // Another one's requests wait until it has none at the drive, and for as long as it is waited for.
    let mut stage = Stage::named("cfq", Kernel::new(2, 6, 18));
    stage.reads(0, &[1000]).write_back(&[90_000]);
    assert_eq!(stage.all(), [1000]);
    stage.at(5).done(1000);
    assert_eq!(stage.next(), None);
    assert_eq!(stage.at(13).next(), Some(90_000));
}

#[test]
fn cfq_before_2_6_22_has_no_bound_for_the_requests_of_a_queue_at_the_drive() {
    let sent = |kernel| {
        let mut stage = Stage::named("cfq", kernel);
        stage.reads(0, &(0..40).map(|at| 1000 * at).collect::<Vec<_>>());
        stage.all().len()
    };
    assert_eq!(sent(Kernel::new(2, 6, 21)), 40);
    assert_eq!(sent(Kernel::new(2, 6, 22)), 16);
}

#[test]
fn cfq_before_2_6_22_lets_a_read_wait_for_sixteen_writes() {
    let before = |kernel| {
        let mut stage = Stage::named("cfq", kernel);
        stage.write_back(&(0..40).map(|at| 1000 * at).collect::<Vec<_>>());
        assert_eq!(stage.take(2), [0, 1000]);
        stage.reads(0, &[900_000]);
        stage
            .all()
            .iter()
            .position(|&lbn| lbn == 900_000)
            .map_or(0, |at| at + 2)
    };
    assert_eq!(before(Kernel::new(2, 6, 18)), 16);
    assert_eq!(before(Kernel::new(2, 6, 24)), 4);
}

#[test]
fn cfq_before_2_6_22_serves_first_whom_it_has_not_served_for_longest() {
    let mut stage = Stage::named("cfq", Kernel::new(2, 6, 18));
    stage.reads(0, &[1000]);
    assert_eq!(stage.next(), Some(1000));
    stage.reads(1, &[2000]).reads(2, &[3000]);
    stage.at(5).done(1000);
    // It is waited for no more.
    stage.at(20).reads(0, &[1008]);
    assert_eq!(stage.next(), Some(2000));
    stage.at(21).done(2000).at(30).reads(1, &[2008]);
    assert_eq!(stage.next(), Some(3000));
    stage.at(31).done(3000).at(40);
    assert_eq!(stage.all(), [1008]);
    stage.at(41).done(1008).at(50);
    assert_eq!(stage.all(), [2008]);
}

#[test]
fn cfq_before_2_6_25_serves_idle_threads_100_ms_after_the_others() {
    let idle = with(PriorityClass::Idle, 0);
    for kernel in [Kernel::new(2, 6, 18), Kernel::new(2, 6, 24)] {
        let mut stage = Stage::named("cfq", kernel);
        stage.reads(0, &[1000]);
        stage.add(BlockRequest::read(500_000, 8, 1).with_priority(idle));
        assert_eq!(stage.all(), [1000]);
        stage.at(10).done(1000);
        assert_eq!(stage.at(50).next(), None, "{kernel}");
        assert_eq!(stage.at(109).next(), None, "{kernel}");
        assert_eq!(stage.at(110).next(), Some(500_000), "{kernel}");
        // A request of another thread comes before more of them.
        stage.add(BlockRequest::read(600_000, 8, 1).with_priority(idle));
        stage.reads(0, &[2000]);
        assert_eq!(stage.next(), Some(2000), "{kernel}");
    }
}

#[test]
fn cfq_before_2_6_30_puts_a_queue_back_by_what_was_left_of_its_slice() {
    let after = |kernel| {
        let mut stage = Stage::named("cfq", kernel);
        let realtime = with(PriorityClass::Realtime, 4);
        stage.reads(0, &(0..6).map(|at| 1000 + 8 * at).collect::<Vec<_>>());
        assert_eq!(stage.take(4), [1000, 1008, 1016, 1024]);
        stage.at(5).done(1000).at(6).reads(2, &[500_000]);
        stage
            .at(7)
            .add(BlockRequest::read(700_000, 8, 1).with_priority(realtime));
        assert_eq!(stage.next(), Some(700_000));
        stage.at(8).done(700_000);
        stage.at(30).next()
    };
    assert_eq!(after(Kernel::new(2, 6, 24)), Some(500_000));
    assert_eq!(after(OLD), Some(1032));
}

#[test]
fn bfq_serves_budgets_that_grow_when_they_are_used_up() {
    let mut stage = Stage::bfq();
    for thread in 0..2_u32 {
        for index in 0..40 {
            let lbn = u64::from(thread) * 10_000_000 + index * 1024;
            stage.add(BlockRequest::read(lbn, 1024, thread));
        }
    }
    let order = stage.all();
    let runs: Vec<(bool, usize)> = order
        .chunk_by(|a, b| (*a < 10_000_000) == (*b < 10_000_000))
        .map(|run| (run[0] < 10_000_000, run.len()))
        .collect();
    // First 2/3 of 16384 blocks, then the whole; then it waits for more of the first thread.
    assert_eq!(
        runs,
        [(true, 10), (false, 10), (true, 16), (false, 16), (true, 14)]
    );
}

#[test]
fn bfq_shares_by_weight() {
    let mut stage = Stage::bfq();
    for thread in 0..2_u32 {
        let level = [0, 4][thread as usize];
        for index in 0..400 {
            let lbn = u64::from(thread) * 10_000_000 + index * 1024;
            let priority = with(PriorityClass::BestEffort, level);
            stage.add(BlockRequest::read(lbn, 1024, thread).with_priority(priority));
        }
    }
    let order = stage.take(480);
    let first = order.iter().filter(|lbn| **lbn < 10_000_000).count();
    // Weights 80 and 40: two thirds, up to one budget of 16 requests.
    assert!(first.abs_diff(320) <= 16, "{first} of 480");
}

#[test]
fn bfq_waits_for_a_sequential_thread_and_not_for_a_seeking_one() {
    let mut stage = Stage::bfq();
    stage.reads(0, &[1000]).reads(1, &[900_000]);
    assert_eq!(stage.next(), Some(1000));
    assert_eq!(stage.next(), None);
    stage.at(5).done(1000);
    assert_eq!(stage.at(12).next(), None);
    assert_eq!(stage.at(13).next(), Some(900_000));

    let mut stage = Stage::bfq();
    for index in 0..25_u64 {
        let lbn = (index * 7 % 25) * 1_000_000 + 500;
        stage.at(index).reads(0, &[lbn]);
        assert_eq!(stage.next(), Some(lbn));
        stage.done(lbn);
    }
    // Charged for the time it took, the seeking thread comes behind the newcomer.
    stage
        .at(40)
        .reads(0, &[77_000_000])
        .reads(1, &[55_000_000, 55_000_008]);
    assert_eq!(stage.all(), [55_000_000, 55_000_008]);
    stage.at(41).completes(&[55_000_000, 55_000_008]);
    assert_eq!(stage.at(48).next(), None);
    assert_eq!(stage.at(49).next(), Some(77_000_000));
    // No pause after it.
    stage.reads(1, &[55_000_016]).at(55).done(77_000_000);
    assert_eq!(stage.next(), Some(55_000_016));
}

#[test]
fn bfq_asks_for_no_other_queue_when_it_begins_to_wait() {
    let mut stage = Stage::bfq();
    stage.reads(0, &[1000]).reads(1, &[900_000]);
    assert_eq!(stage.next(), Some(1000));
    stage.at(5).done(1000);
    assert!(!stage.elevator.runs_after_completion());
    // The pause is over: the next queue has the drive to itself, and nobody waits besides.
    assert_eq!(stage.at(13).next(), Some(900_000));
    stage.at(14).done(900_000);
    assert!(!stage.elevator.runs_after_completion());

    // An idle class is not waited for.
    let mut stage = Stage::bfq();
    let idle = with(PriorityClass::Idle, 7);
    stage.add(BlockRequest::read(1000, 8, 0).with_priority(idle));
    stage.add(BlockRequest::read(900_000, 8, 1).with_priority(idle));
    assert_eq!(stage.next(), Some(1000));
    stage.at(5).done(1000);
    assert!(stage.elevator.runs_after_completion());
}

#[test]
fn bfq_gives_its_idle_class_a_turn_200_ms_after_the_first_request_at_any_place_of_a_tick() {
    for first_ms in [0, 1, 3, 5, 17, 31] {
        let serves_idle_at = |ms: u64| {
            let mut stage = Stage::bfq();
            stage.elevator.follow(Ticks::new(first_ms * MS + 1));
            stage.reads(0, &[0]);
            assert_eq!(stage.next(), Some(0));
            stage.at(1).done(0);
            let idle = with(PriorityClass::Idle, 7);
            stage
                .at(ms)
                .add(BlockRequest::read(900_000, 8, 1).with_priority(idle))
                .reads(2, &[500_000]);
            stage.next() == Some(900_000)
        };
        assert!(!serves_idle_at(195), "{first_ms}");
        assert!(serves_idle_at(210), "{first_ms}");
    }
}

#[test]
fn bfq_raises_new_queues_and_does_not_wait_for_one_of_them() {
    let interleaved = |threads: u32| {
        let mut stage = Stage::named("bfq", NEW);
        for thread in 0..threads {
            stage.reads(thread, &[u64::from(thread) * 10_000_000]);
        }
        let first = stage.next().unwrap();
        stage.done(first);
        // The thread's next request is there before the elevator is asked again.
        stage.reads((first / 10_000_000) as u32, &[first + 8]);
        stage.next().unwrap() != first + 8
    };
    assert!(interleaved(4));
    let mut stage = Stage::bfq();
    stage.reads(0, &[0]).reads(1, &[10_000_000]);
    assert_eq!(stage.next(), Some(0));
    stage.done(0);
    assert_eq!(stage.next(), None);
}

#[test]
fn kyber_merges_into_requests_that_no_dispatch_has_seen() {
    let mut stage = Stage::named("kyber", NEW);
    stage.reads(0, &[0, 100]);
    assert_eq!(stage.next(), Some(0));
    let bio = BlockRequest::read(108, 8, 0);
    assert!(!stage.elevator.may_merge(0, 1, &bio, &stage.requests));
    stage.reads(0, &[1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000]);
    // The last eight only.
    let behind = |at: u64| BlockRequest::read(at + 8, 8, 0);
    assert!(
        !stage
            .elevator
            .may_merge(0, 2, &behind(1000), &stage.requests)
    );
    assert!(
        stage
            .elevator
            .may_merge(0, 3, &behind(2000), &stage.requests)
    );
    let before = BlockRequest::read(8992, 8, 0);
    assert_eq!(
        stage.elevator.front_merge(&before, &stage.requests),
        Some(10)
    );
}

#[test]
fn bfq_lets_realtime_preempt() {
    let mut stage = Stage::named("bfq", NEW);
    stage.reads(0, &[1000, 1008]);
    assert_eq!(stage.next(), Some(1000));
    let realtime = with(PriorityClass::Realtime, 4);
    stage.add(BlockRequest::read(700_000, 8, 1).with_priority(realtime));
    assert_eq!(stage.next(), Some(700_000));
}

#[test]
fn kyber_takes_turns_of_16_reads_and_8_writes() {
    let mut stage = Stage::named("kyber", NEW);
    let reads: Vec<u64> = (0..20).map(|index| 1000 - index).collect();
    let writes: Vec<u64> = (0..10).map(|index| 5000 - index).collect();
    stage.reads(0, &reads).writes(1, &writes);
    let expected = [&reads[..16], &writes[..8], &reads[16..], &writes[8..]].concat();
    assert_eq!(stage.all(), expected);
}

#[test]
fn kyber_throttles_writes_when_reads_miss_their_target() {
    let mut stage = Stage::named("kyber", NEW);
    // 800 reads of 4 ms (target 2) and 800 writes of 1 ms (target 10).
    for index in 0..800_u64 {
        stage
            .at(10 * index)
            .reads(0, &[index])
            .writes(1, &[10_000 + index]);
        assert_eq!(stage.take(2).len(), 2);
        stage.at(10 * index + 1).done(10_000 + index);
        stage.at(10 * index + 4).done(index);
    }
    stage.at(9000);
    let writes: Vec<u64> = (0..200).map(|index| 20_000 + index).collect();
    stage.writes(1, &writes);
    // Both histograms of a domain share one time-out, which the look at the device's latency uses up: the other one is
    // only looked at once it has 500 samples. The next congestion then quarters the writes' 128 tokens.
    assert_eq!(stage.all().len(), 32);
    let reads: Vec<u64> = (0..300).map(|index| 30_000 + index).collect();
    stage.reads(0, &reads);
    assert_eq!(stage.all().len(), 256);
}

#[test]
fn merged_requests_move_and_inherit() {
    for name in ["deadline", "mq-deadline", "anticipatory", "cfq", "bfq"] {
        let mut stage = Stage::named(name, NEW);
        stage.reads(0, &[108, 300, 116]);
        let bio = BlockRequest::read(100, 8, 0);
        let id = stage.elevator.front_merge(&bio, &stage.requests).unwrap();
        assert!(
            stage.elevator.may_merge(0, id, &bio, &stage.requests),
            "{name}"
        );
        stage.requests[id as usize].lbn = 100;
        stage.requests[id as usize].blocks = 16;
        stage.elevator.moved(0, id, &stage.requests);
        let next = stage.elevator.neighbour(id, true).unwrap();
        assert_eq!(stage.requests[next as usize].lbn, 116, "{name}");
        stage.elevator.joined(0, id, next, &stage.requests);
        assert_eq!(stage.elevator.waiting(), 2, "{name}");
        let mut order = stage.all();
        order.sort_unstable();
        assert_eq!(order, [100, 300], "{name}");
    }
}

#[test]
fn bfq_merges_threads_at_near_addresses_within_100_ms() {
    let take_over = |near: u64, ms: u64| {
        let mut stage = Stage::bfq();
        stage.reads(0, &[1000]);
        assert_eq!(stage.next(), Some(1000));
        // With one busy queue there is nothing to win (bfq_setup_cooperator).
        stage.at(ms).reads(2, &[5_000_000]).reads(1, &[near]);
        stage.next()
    };
    // 4 MiB are near, and the queue in service is not left for another thread's request.
    assert_eq!(take_over(1008, 8), Some(1008));
    assert_eq!(take_over(1008 + 8 * 1024, 8), Some(1008 + 8 * 1024));
    assert_eq!(take_over(1016 + 8 * 1024, 8), None);
    assert_eq!(take_over(1008, 112), None);
}

#[test]
fn bfq_parts_merged_threads_when_they_seek() {
    let mut stage = Stage::bfq();
    stage.reads(0, &[1000]).reads(2, &[90_000_000]);
    assert_eq!(stage.next(), Some(1000));
    stage.reads(1, &[1008]);
    assert_eq!(stage.next(), Some(1008));
    // More than 19 of the shared queue's last 32 requests are far from the one before; then it leaves service, and the next
    // request of each thread goes to a queue of its own.
    let far: Vec<u64> = (1..=24).map(|index| 1_000_000 * index).collect();
    stage.reads(0, &far);
    let order = stage.take(far.len());
    assert_eq!(order, far);
    stage.completes(&[1000, 1008]).completes(&far);
    stage.at(40);
    assert_eq!(stage.next(), Some(90_000_000));
    stage.at(41).done(90_000_000);
    stage
        .at(60)
        .reads(0, &[10_000_000, 60_000_000])
        .reads(1, &[50_000_000]);
    // A queue that they share would go upwards.
    assert_eq!(stage.take(3), [10_000_000, 60_000_000, 50_000_000]);
}

#[test]
fn bfq_serves_another_queue_in_the_pauses_of_a_seeking_one() {
    let high = with(PriorityClass::BestEffort, 0);
    let mut stage = Stage::bfq();
    let pause = |stage: &mut Stage, index: u64| {
        let lbn = 1_000_000 * (1 + index * 7 % 31);
        stage.at(10 * index + 1);
        stage.add(BlockRequest::read(lbn, 8, 0).with_priority(high));
        assert_eq!(stage.next(), Some(lbn), "{index}");
        stage.at(10 * index + 9).done(lbn);
    };
    // It thinks for 2 ms, and is waited for 2 ms as it seeks.
    for index in 0..24 {
        pause(&mut stage, index);
    }
    stage.reads(1, &[77_000_000, 88_000_000]);
    // Its requests took 8 ms alone: one of another queue may be at the drive at a time (bfq_update_inject_limit).
    assert_eq!(stage.next(), Some(77_000_000));
    assert_eq!(stage.next(), None);

    let mut stage = Stage::bfq();
    stage.add(BlockRequest::read(1000, 8, 0).with_priority(high));
    assert_eq!(stage.next(), Some(1000));
    stage.at(8).done(1000);
    stage.reads(1, &[77_000_000]);
    assert_eq!(stage.next(), None);
}

#[test]
fn bfq_does_not_wait_for_a_thread_that_has_ended() {
    let mut stage = Stage::bfq();
    stage.reads(0, &[1000]).reads(1, &[900_000]);
    assert_eq!(stage.next(), Some(1000));
    stage.done(1000);
    assert_eq!(stage.next(), None);
    assert!(stage.elevator.exits(0, 0));
    assert_eq!(stage.next(), Some(900_000));
}

/// The longest run of a thread's requests of 1024 blocks among two threads, the first and a late one.
fn runs_of_bfq(settings: BfqSettings) -> (usize, usize) {
    let mut stage = Stage::new(Scheduler::Bfq(settings));
    let mut next = [0, 10_000_000];
    let mut order = Vec::new();
    for (thread, at) in next.iter_mut().enumerate() {
        for _ in 0..8 {
            stage.add(BlockRequest::read(*at, 1024, thread as u32));
            *at += 1024;
        }
    }
    for step in 1..12_000 {
        let Some(lbn) = stage.next() else {
            stage.at(step);
            continue;
        };
        let thread = usize::from(lbn >= 10_000_000);
        order.push(thread);
        stage.at(step).done(lbn);
        let at = next[thread] % 9_000_000 + 10_000_000 * thread as u64;
        stage.add(BlockRequest::read(at, 1024, thread as u32));
        next[thread] += 1024;
    }
    let longest = |part: &[usize]| part.chunk_by(|a, b| a == b).map(<[usize]>::len).max();
    let (first, last) = (&order[..100], &order[order.len() - 500..]);
    (longest(first).unwrap(), longest(last).unwrap())
}

#[test]
fn bfq_lets_budgets_grow_with_the_rate_of_the_drive() {
    let settings = BfqSettings {
        low_latency: false,
        ..BfqSettings::default()
    };
    let (first, last) = runs_of_bfq(settings);
    // 16384 blocks for the first eleven budgets; then what a block each microsecond makes in 124 ms.
    assert!(first <= 16, "{first}");
    assert!(last > 60, "{last}");
    let (first, last) = runs_of_bfq(BfqSettings {
        max_budget: 8 * 1024,
        ..settings
    });
    assert!(first <= 16 && last <= 8, "{first} {last}");
}

#[test]
fn bfq_prefers_threads_that_seem_soft_real_time() {
    let first_served = |is_steady: bool| {
        let mut stage = Stage::named("bfq", NEW);
        // Never raised, so that the others are waited for.
        let low = with(PriorityClass::BestEffort, 7);
        let begin = if is_steady { 0 } else { 10 };
        for second in begin..10_u64 {
            let lbn = 80_000_000 + 8 * second;
            stage.at(1000 * second).reads(0, &[lbn]);
            assert_eq!(stage.next(), Some(lbn));
            stage.at(1000 * second + 5).done(lbn);
        }
        stage.at(9990);
        stage.add(BlockRequest::read(50_000_000, 8, 2).with_priority(low));
        stage.reads(1, &[1000, 1008, 1016]);
        assert_eq!(stage.take(2), [1000, 1008]);
        stage.at(10_000).reads(0, &[80_000_800]);
        stage.next()
    };
    // Both threads are raised as interactive; a request a second is real time besides.
    assert_eq!(first_served(true), Some(80_000_800));
    assert_eq!(first_served(false), Some(1016));
}

#[test]
fn bfq_and_kyber_leave_writes_a_part_of_the_requests() {
    let write = BlockRequest::write(0, 8, 0);
    let mut stage = Stage::named("bfq", NEW);
    let share = |stage: &Stage, request: BlockRequest| stage.elevator.depth_share(&request);
    // word_depths: sixteenths.
    assert_eq!(share(&stage, write), Some(12));
    assert_eq!(share(&stage, write.asynchronous()), Some(8));
    stage.reads(1, &[1000]);
    // A raised queue is busy.
    assert_eq!(share(&stage, write), Some(6));
    assert_eq!(share(&stage, write.asynchronous()), Some(3));
    assert_eq!(share(&stage, BlockRequest::read(0, 8, 0)), None);
    let stage = Stage::named("kyber", NEW);
    assert_eq!(share(&stage, write), None);
    assert_eq!(share(&stage, write.asynchronous()), Some(12));
}

#[test]
fn bfq_with_strict_guarantees_has_one_request_at_the_drive() {
    let mut stage = Stage::new(Scheduler::Bfq(BfqSettings {
        strict_guarantees: true,
        ..BfqSettings::default()
    }));
    stage.reads(0, &[1000, 1008]);
    assert_eq!(stage.next(), Some(1000));
    assert_eq!(stage.next(), None);
    stage.done(1000);
    assert_eq!(stage.next(), Some(1008));
}
