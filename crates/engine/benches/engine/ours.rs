//! The engine as a contender.

use spindle_engine::{EngineChoice, NullTarget, Options, Run, StreamFile};
use spindle_workload::{
    Arrival, Content, End, Mix, Pattern, Place, Region, Size, Stream, Sync, Workload,
};

use crate::Round;
use crate::target::{BenchTarget, SIZE};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Engine {
    Pread,
    Ring,
    Auto,
}

impl Engine {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Engine::Pread => "spindle, pread",
            Engine::Ring => "spindle, io_uring",
            Engine::Auto => "spindle, its own choice",
        }
    }
}

pub(crate) fn run(
    target: BenchTarget<'_>,
    engine: Engine,
    depth: u32,
    seconds: f64,
    cpu: usize,
) -> Result<Round, String> {
    let file = StreamFile {
        fd: target.fd,
        size_bytes: SIZE,
        block_bytes: 4096,
        memory_align: 4096,
    };
    let engine = match engine {
        Engine::Pread => EngineChoice::Pread,
        Engine::Ring => EngineChoice::IoUring,
        Engine::Auto => EngineChoice::Auto,
    };
    let options = Options {
        engine,
        cpus: vec![cpu],
        ..Options::default()
    };
    let run = Run::start(&workload(depth, seconds), vec![vec![file]], options);
    round(&run.map_err(|error| error.to_string())?)
}

pub(crate) fn null(depth: u32, seconds: f64, cpu: usize) -> Result<Round, String> {
    let target = NullTarget {
        size_bytes: SIZE,
        service_ns: 0,
    };
    let options = Options {
        cpus: vec![cpu],
        ..Options::default()
    };
    let run = Run::start_null(&workload(depth, seconds), target, options);
    round(&run.map_err(|error| error.to_string())?)
}

fn round(run: &Run) -> Result<Round, String> {
    let figures = run.finish().map_err(|error| error.to_string())?;
    let read = figures.streams[0].read.as_ref().ok_or("nothing was read")?;
    let requests = read.requests as f64;
    Ok(Round {
        iops: read.iops,
        user_ns_per_io: figures.cpu.user_ns as f64 / requests,
        system_ns_per_io: figures.cpu.system_ns as f64 / requests,
    })
}

fn workload(depth: u32, seconds: f64) -> Workload {
    Workload {
        name: "bench".to_owned(),
        about: String::new(),
        table: "streams".to_owned(),
        seed: 1,
        ramp_ns: 20_000_000,
        end: End {
            time_ns: Some((seconds * 1e9) as u64),
            ..End::default()
        },
        filesets: Vec::new(),
        streams: vec![Stream {
            name: "reads".to_owned(),
            mix: Mix::READS,
            pattern: Pattern::Uniform,
            size: Size::Fixed { bytes: 4096 },
            align_bytes: 0,
            workers: 1,
            depth,
            arrival: Arrival::Closed,
            rate_limit: None,
            think: None,
            direct: false,
            sync: Sync::default(),
            priority: None,
            region: Region {
                offset: Place::Bytes { bytes: 0 },
                end: Place::Fraction { fraction: 1.0 },
            },
            separate_writes: None,
            trim_first: false,
            window: None,
            repeats: None,
            ends: Vec::new(),
            mapped: false,
            files: None,
            content: Content::Random,
            verify: false,
            verify_fatal: false,
            start_delay_ns: 0,
            end: End::default(),
            passes: None,
            names: None,
            per_worker: false,
        }],
        phases: Vec::new(),
    }
}
