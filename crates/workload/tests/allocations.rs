//! Requests, arrivals, pauses and content cost no allocation once their source is made.

use spindle_workload::{Arrivals, ContentFiller, RequestStream, Thinker, Workload};

#[test]
fn nothing_is_allocated_per_request() {
    for options in [
        "",
        "pattern = 'sequential'\nsize = '4KiB-64KiB'",
        "pattern = 'zipf'\nsize = 'log-normal:mean=26KiB,max=512KiB'\nwrite_fraction = 0.2\nfsync_fraction = 0.1",
        "pattern = 'hot-set'\nsize = '4KiB:70,64KiB:30'\nthink = '1ms'\nthink_spread = 'exponential'",
        "pattern = 'runs'\nrate = 100\nspacing = 'poisson'",
        "pattern = 'strided'",
    ] {
        let stream = &Workload::parse(options, "test.toml", "test", &[])
            .unwrap()
            .streams[0];
        let mut requests = RequestStream::new(stream, 0, 0, 1, 1 << 40, 512).unwrap();
        let mut arrivals = Arrivals::new(stream, 0, 0, 1);
        let mut thinker = Thinker::new(stream, 0, 0, 1);
        let mut filler = ContentFiller::new(stream.content, 0, 0, 1);
        let mut buffer = vec![0; 8192];
        let used = allocation_counter::measure(|| {
            for _ in 0..1000 {
                std::hint::black_box(requests.next_request());
                std::hint::black_box(arrivals.as_mut().map(Arrivals::next_ns));
                std::hint::black_box(thinker.as_mut().map(Thinker::pause_ns));
                filler.fill(&mut buffer);
            }
        });
        assert_eq!(used.count_total, 0, "{options}");
    }
}
