//! One process with the calendar and all devices: the event loop.
//!
//! The kernel is one thread that either runs or waits. Everything that it does begins with a message on one socket, which
//! is answered before it goes on, so the loop sees all that happens in the one order in which it happened.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{CpuSet, sched_setaffinity};
use spindle_disk::contents::Contents;
use spindle_disk::device::{BlockDevice, Console, Device, Fault as DriveFault};
use spindle_disk::disk::Served;
use spindle_disk::vhost::{Session, Upshot};
use spindle_sim::Machine;

use crate::error::LabError;
use crate::fault::Fault;
use crate::report::{DriveReport, Report};
use crate::time_travel::{
    Answer, Calendar, FOREVER, Interrupt, Kick, Operation, Step, TIME_OF_DAY_NS, TimeLink,
};

/// The calendar's socket. All names are relative and equal in every run: the kernel sees its command line.
const TIME_SOCKET: &str = "time";

/// Entries of a ring of User Mode Linux, and so the most requests at a device.
const MOST_REQUESTS: u32 = 256;
/// Longest lookahead, nanoseconds: more than a kernel takes from a kick to its next wait.
const MOST_LOOKAHEAD_NS: u64 = 4096;

/// A console of the lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Port {
    /// Standard output of the command, or the terminal of a shell (`/dev/hvc0`).
    Terminal = 0,
    /// Standard error of the command (`/dev/hvc1`).
    Errors = 1,
    /// Reports of the lab's own `init` (`/dev/hvc2`).
    Control = 2,
}

const PORTS: [Port; 3] = [Port::Terminal, Port::Errors, Port::Control];

/// Bytes that the kernel wrote to a console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The console.
    pub port: Port,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// How the lab runs.
#[derive(Debug, Clone, Default)]
pub struct LabOptions {
    /// Let virtual time pass no faster than real time: for people at a terminal.
    pub in_real_time: bool,
    /// Record each request at the drives.
    pub is_traced: bool,
    /// CPU that the loop stays on. The kernel belongs on the same one: they take turns.
    pub cpu: Option<usize>,
    /// Faults and their times.
    pub faults: Vec<Fault>,
    /// Virtual time at which a lab that still runs is an error, nanoseconds.
    pub time_limit_ns: Option<u64>,
}

/// An end at a time that was chosen before.
#[derive(Debug, Clone, Copy)]
enum End {
    TimeLimit,
    PowerCut(u64),
}

/// The end of a wait of the kernel.
enum Next {
    /// It runs at this time.
    Run(u64),
    /// It has ended.
    Gone,
    /// The lab ends here.
    End(End),
}

#[derive(Debug)]
enum Model {
    Drive(Box<BlockDevice>),
    Console(Port, Console),
}

impl Model {
    fn device(&mut self) -> &mut dyn Device {
        match self {
            Self::Drive(drive) => &mut **drive,
            Self::Console(_, console) => console,
        }
    }

    fn next_event_ns(&self) -> Option<u64> {
        match self {
            Self::Drive(drive) => drive.next_event_ns(),
            Self::Console(_, console) => console.next_event_ns(),
        }
    }
}

/// A device and its socket.
#[derive(Debug)]
struct Slot {
    name: String,
    listener: UnixListener,
    session: Option<Session>,
    model: Model,
    /// The model's next event, and when it became so: of events at one time the older one comes first.
    event: Option<(u64, u64)>,
}

impl Slot {
    fn listen(folder: &Path, name: String, model: Model) -> Result<Self, LabError> {
        let listener = listen(folder, &name)?;
        Ok(Self {
            name,
            listener,
            session: None,
            model,
            event: None,
        })
    }

    /// Notes a change of the model's next event.
    fn note_event(&mut self, order: &mut u64) {
        let next = self.model.next_event_ns();
        if next != self.event.map(|(at, _)| at) {
            *order += 1;
            self.event = next.map(|at| (at, *order));
        }
    }
}

/// A machine's drives, ready for a kernel that connects.
#[derive(Debug)]
pub struct Lab {
    options: LabOptions,
    time: UnixListener,
    slots: Vec<Slot>,
    models: Vec<String>,
    queue_depth: u32,
    lookahead_ns: u64,
    /// The first of the ends that were chosen before.
    end: Option<(u64, End)>,
    calendar: Calendar,
    order: u64,
    /// Interrupts that the kernel has not taken.
    interrupts: Vec<Interrupt>,
    started: Option<Instant>,
}

impl Lab {
    /// Makes the sockets in `folder`, which must be empty.
    pub fn listen(machine: &Machine, folder: &Path, options: LabOptions) -> Result<Self, LabError> {
        let cut = options.faults.iter().find_map(|fault| match fault {
            Fault::PowerCut { at_ns, seed } => Some((*at_ns, End::PowerCut(*seed))),
            Fault::Drive { .. } => None,
        });
        let limit = options.time_limit_ns.map(|at| (at, End::TimeLimit));
        for fault in &options.faults {
            if let Fault::Drive { slot, .. } = fault
                && *slot >= machine.drives.len()
            {
                return Err(LabError::Fault {
                    text: format!("of drive{slot}"),
                    form: "the machine has no such drive",
                });
            }
        }
        let mut slots = Vec::new();
        let mut queue_depth = 1;
        let mut lookahead_ns = MOST_LOOKAHEAD_NS;
        for (slot, setup) in machine.drives.iter().enumerate() {
            let mut device = BlockDevice::new(
                setup,
                Contents::default(),
                format!("spindle{slot}"),
                options.is_traced,
            )
            .map_err(|source| LabError::Drive { slot, source })?;
            device.set_faults(faults_of(slot, &options.faults), cut.is_some());
            queue_depth = device.queue_depth().clamp(queue_depth, MOST_REQUESTS);
            lookahead_ns = device.least_latency_ns().min(lookahead_ns);
            slots.push(Slot::listen(
                folder,
                format!("drive{slot}"),
                Model::Drive(Box::new(device)),
            )?);
        }
        for port in PORTS {
            let console = Model::Console(port, Console::default());
            slots.push(Slot::listen(
                folder,
                format!("port{}", port as u8),
                console,
            )?);
        }
        Ok(Self {
            options,
            time: listen(folder, TIME_SOCKET)?,
            slots,
            models: machine
                .drives
                .iter()
                .map(|drive| drive.model.clone())
                .collect(),
            queue_depth,
            lookahead_ns,
            end: cut.into_iter().chain(limit).min_by_key(|(at, _)| *at),
            calendar: Calendar::default(),
            order: 0,
            interrupts: Vec::new(),
            started: None,
        })
    }

    /// Arguments for the kernel, which must be started in the folder of the sockets.
    #[must_use]
    pub fn kernel_arguments(&mut self) -> Vec<String> {
        let devices = self.slots.iter_mut().map(|slot| {
            let kind = slot.model.device().kind();
            format!("virtio_uml.device={}:{kind}", slot.name)
        });
        let depth = format!("virtio_blk.queue_depth={}", self.queue_depth);
        [format!("time-travel=ext:{TIME_SOCKET}"), depth]
            .into_iter()
            .chain(devices)
            .collect()
    }

    /// Runs until the kernel ends. `output` receives what it writes to its consoles; what comes from `input` is typed
    /// at the terminal.
    pub fn run(
        &mut self,
        output: &Sender<Output>,
        mut input: Option<UnixStream>,
    ) -> Result<Report, LabError> {
        self.pin()?;
        let (stream, _) = self
            .time
            .accept()
            .map_err(|error| LabError::socket(TIME_SOCKET, error))?;
        let mut link = TimeLink::new(stream);
        self.started = Some(Instant::now());
        let mut lost_power = false;
        while let Some(message) = link.receive()? {
            for kick in message.kicks {
                self.kick(kick, output)?;
            }
            self.calendar.advance(message.now_ns);
            let mut answer = Answer {
                time_ns: self.calendar.now_ns(),
                free_until_ns: self.free_run_limit_ns(),
                interrupts: Vec::new(),
            };
            match message.operation {
                Operation::Start => {
                    (answer.time_ns, answer.free_until_ns) = (TIME_OF_DAY_NS, self.lookahead_ns);
                }
                Operation::Kick | Operation::Device => {}
                Operation::Wait => {
                    self.calendar.wait(message.request);
                    answer.time_ns = match self.next_run(&link, &mut input)? {
                        Next::Run(time_ns) => time_ns,
                        Next::Gone => break,
                        Next::End(End::TimeLimit) => {
                            let seconds = self.calendar.now_ns() as f64 / 1e9;
                            return Err(LabError::TimeLimit { seconds });
                        }
                        Next::End(End::PowerCut(seed)) => {
                            self.cut_power(seed)?;
                            lost_power = true;
                            break;
                        }
                    };
                    answer.interrupts = std::mem::take(&mut self.interrupts);
                    answer.free_until_ns = self.free_run_limit_ns();
                }
            }
            link.answer(&answer)?;
            if message.operation == Operation::Device {
                self.serve(message.request)?;
            }
        }
        Ok(self.report(&link, lost_power))
    }

    /// The contents of the drive of a slot.
    pub fn contents(&mut self, slot: usize) -> Option<&mut Contents> {
        match &mut self.slots.get_mut(slot)?.model {
            Model::Drive(drive) => Some(drive.contents_mut()),
            Model::Console(..) => None,
        }
    }

    fn cut_power(&mut self, seed: u64) -> Result<(), LabError> {
        for (place, slot) in self.slots.iter_mut().enumerate() {
            if let (Some(session), Model::Drive(drive)) = (&slot.session, &mut slot.model)
                && let Some(memory) = session.memory()
            {
                // Another seed for each drive, the same in every run.
                let cut = drive.cut_power(memory, seed.wrapping_mul(0x1_0001) + place as u64);
                cut.map_err(|error| LabError::protocol(&slot.name, error.to_string()))?;
            }
        }
        Ok(())
    }

    fn pin(&self) -> Result<(), LabError> {
        let Some(cpu) = self.options.cpu else {
            return Ok(());
        };
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).map_err(|error| LabError::socket(format!("CPU {cpu}"), error))
    }

    /// The requests at each drive, in slot order; empty lists if they are not traced.
    pub fn traces(&self) -> impl Iterator<Item = &[Served]> {
        self.slots.iter().filter_map(|slot| match &slot.model {
            Model::Drive(drive) => Some(drive.trace()),
            Model::Console(..) => None,
        })
    }

    fn report(&self, link: &TimeLink, lost_power: bool) -> Report {
        let drives = self.slots.iter().filter_map(|slot| match &slot.model {
            Model::Drive(drive) => Some(drive),
            Model::Console(..) => None,
        });
        Report {
            virtual_ns: self.calendar.now_ns(),
            time_messages: link.messages,
            lost_power,
            drives: drives
                .zip(&self.models)
                .map(|(drive, model)| DriveReport {
                    model: model.clone(),
                    bytes: drive.capacity_bytes(),
                    requests: drive.counts().requests(),
                    memory_bytes: drive.memory_bytes(),
                })
                .collect(),
        }
    }

    fn first_event_ns(&self) -> Option<u64> {
        self.first_event().map(|(at, _)| at)
    }

    /// The first event of any device and its slot.
    fn first_event(&self) -> Option<(u64, usize)> {
        let events = self.slots.iter().enumerate();
        events
            .filter_map(|(slot, found)| found.event.map(|event| (event, slot)))
            .min()
            .map(|((at, _), slot)| (at, slot))
    }

    /// Accepts a device's connection if it is new, and carries out one of its messages.
    fn serve(&mut self, place: u64) -> Result<(), LabError> {
        let count = self.slots.len();
        let slot = usize::try_from(place)
            .ok()
            .and_then(|place| self.slots.get_mut(place))
            .ok_or_else(|| no_device(place, count))?;
        let session = match &mut slot.session {
            Some(session) => session,
            None => {
                let (stream, _) = slot
                    .listener
                    .accept()
                    .map_err(|error| LabError::socket(&slot.name, error))?;
                let rings = slot.model.device().rings();
                slot.session
                    .insert(Session::new(slot.name.clone(), stream, rings))
            }
        };
        if session.serve(self.calendar.now_ns(), slot.model.device())? == Upshot::Closed {
            slot.session = None;
        }
        Ok(())
    }

    /// Hands a device the new entries of a ring, after everything that happened before they were made.
    fn kick(&mut self, kick: Kick, output: &Sender<Output>) -> Result<(), LabError> {
        while let Some((at, place)) = self.first_event()
            && at <= kick.time_ns
        {
            self.pass(at, place)?;
        }
        self.calendar.advance(kick.time_ns);
        let count = self.slots.len();
        let Some(slot) = self.slots.get_mut(usize::from(kick.device)) else {
            return Err(no_device(kick.device.into(), count));
        };
        let Some(session) = &mut slot.session else {
            return Ok(());
        };
        session.kick(
            kick.time_ns,
            kick.ring.into(),
            Some(kick.available),
            slot.model.device(),
        )?;
        slot.note_event(&mut self.order);
        if let Model::Console(port, console) = &mut slot.model {
            let bytes = console.take_output();
            if !bytes.is_empty() {
                // A reader that is gone does not end the lab: the command may still do its work.
                let _ = output.send(Output { port: *port, bytes });
            }
        }
        Ok(())
    }

    /// Virtual time passes to the first event of a device.
    fn pass(&mut self, at: u64, place: usize) -> Result<(), LabError> {
        self.calendar.advance(at);
        let slot = &mut self.slots[place];
        slot.event = None;
        let Some(session) = &mut slot.session else {
            return Ok(());
        };
        for ring in session.advance(at, slot.model.device())? {
            let interrupt = Interrupt {
                device: place as u16,
                ring: ring as u16,
            };
            if !self.interrupts.contains(&interrupt) {
                self.interrupts.push(interrupt);
            }
        }
        slot.note_event(&mut self.order);
        Ok(())
    }

    /// Lets time pass while the kernel waits.
    fn next_run(
        &mut self,
        link: &TimeLink,
        input: &mut Option<UnixStream>,
    ) -> Result<Next, LabError> {
        loop {
            if !self.interrupts.is_empty() {
                self.calendar.interrupt();
            }
            let step = self.calendar.next(self.first_event_ns());
            if let Some((at, end)) = self.end
                && step.at_ns().is_none_or(|next| at <= next)
                && !self.is_early(at)
            {
                self.calendar.advance(at);
                return Ok(Next::End(end));
            }
            let goes_on = match step {
                Step::Standstill if input.is_none() => {
                    let seconds = self.calendar.now_ns() as f64 / 1e9;
                    return Err(LabError::Standstill { seconds });
                }
                Step::Standstill => self.pause(link, input, None)?,
                Step::Device(at) | Step::Run(at) if self.is_early(at) => {
                    self.pause(link, input, Some(at))?
                }
                Step::Device(at) => {
                    if let Some((_, place)) = self.first_event() {
                        self.pass(at, place)?;
                    }
                    true
                }
                Step::Run(at) => {
                    self.calendar.advance(at);
                    return Ok(Next::Run(at));
                }
            };
            if !goes_on {
                return Ok(Next::Gone);
            }
        }
    }

    /// How far the kernel may run alone: up to the first event of a device, and in real time no further than real time.
    /// Not at all if there is an interrupt for it.
    fn free_run_limit_ns(&self) -> u64 {
        let now = self.calendar.now_ns();
        let real = self.options.in_real_time.then(|| self.real_ns().max(now));
        let interrupt = (!self.interrupts.is_empty()).then_some(now);
        let end = self.end.map(|(at, _)| at);
        [self.first_event_ns(), real, interrupt, end]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(FOREVER)
    }

    /// True if virtual time must wait for real time.
    fn is_early(&self, at: u64) -> bool {
        self.options.in_real_time && self.real_ns() < at
    }

    fn real_ns(&self) -> u64 {
        self.started
            .map_or(0, |started| started.elapsed().as_nanos() as u64)
    }

    /// Waits for input, at most until real time has reached `until_ns`; false if the kernel is gone.
    fn pause(
        &mut self,
        link: &TimeLink,
        input: &mut Option<UnixStream>,
        until_ns: Option<u64>,
    ) -> Result<bool, LabError> {
        let left = until_ns.map(|until| Duration::from_nanos(until.saturating_sub(self.real_ns())));
        let sockets: Vec<BorrowedFd<'_>> = std::iter::once(link.as_fd())
            .chain(input.as_ref().map(AsFd::as_fd))
            .collect();
        let mut found: Vec<PollFd<'_>> = sockets
            .into_iter()
            .map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN))
            .collect();
        wait(&mut found, left)?;
        let has_input = found
            .get(1)
            .is_some_and(|socket| !socket.revents().is_empty());
        // A kernel that waits says nothing: it has ended.
        let is_gone = !found[0].revents().is_empty();
        if has_input {
            self.type_in(input, until_ns);
        }
        Ok(!is_gone)
    }

    /// Types what has come at the terminal. It arrives at the virtual time that real time has reached.
    fn type_in(&mut self, input: &mut Option<UnixStream>, until_ns: Option<u64>) {
        let mut bytes = [0; 4096];
        let count = match input.as_mut().map(|stream| stream.read(&mut bytes)) {
            Some(Ok(count)) if count > 0 => count,
            _ => {
                *input = None;
                return;
            }
        };
        if self.options.in_real_time {
            self.calendar
                .advance(self.real_ns().min(until_ns.unwrap_or(u64::MAX)));
        }
        let now_ns = self.calendar.now_ns();
        for slot in &mut self.slots {
            if let Model::Console(Port::Terminal, console) = &mut slot.model {
                console.write(now_ns, &bytes[..count]);
                slot.note_event(&mut self.order);
            }
        }
    }
}

fn faults_of(slot: usize, faults: &[Fault]) -> Vec<DriveFault> {
    let of_slot = faults.iter().filter_map(|fault| match fault {
        Fault::Drive { slot: at, fault } if *at == slot => Some(fault.clone()),
        _ => None,
    });
    of_slot.collect()
}

fn no_device(place: u64, count: usize) -> LabError {
    LabError::protocol("time travel", format!("device {place} of {count}"))
}

fn wait(found: &mut [PollFd<'_>], left: Option<Duration>) -> Result<(), LabError> {
    let limit = left.map(|left| Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: i64::from(left.subsec_nanos()),
    });
    match poll(found, limit.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(LabError::socket("poll", error)),
    }
}

/// A socket has room for 108 bytes of its path: the folder, which may have a longer one, is named by its descriptor.
fn listen(folder: &Path, name: &str) -> Result<UnixListener, LabError> {
    let listener = File::open(folder).and_then(|folder| {
        UnixListener::bind(format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()))
    });
    listener.map_err(|error| LabError::socket(name, error))
}
