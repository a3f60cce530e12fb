//! One process with the calendar and all devices: the event loop.
//!
//! The kernel is one thread that either runs or waits. Every message of it about time, and every kick, is answered
//! before it goes on, so the loop sees all that happens in the one order in which it happened.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{CpuSet, sched_setaffinity};
use spindle_disk::contents::Contents;
use spindle_disk::device::{BlockDevice, Console, Device};
use spindle_disk::disk::Served;
use spindle_disk::vhost::{Session, Upshot};
use spindle_sim::Machine;

use crate::error::LabError;
use crate::report::{DriveReport, Report};
use crate::time_travel::{Calendar, Operation, Step, TimeLink};

/// The calendar's socket. All names are relative and equal in every run: the kernel sees its command line.
const TIME_SOCKET: &str = "time";

/// Entries of a ring of User Mode Linux, and so the most requests at a device.
const MOST_REQUESTS: u32 = 256;

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
#[derive(Debug, Clone, Copy, Default)]
pub struct LabOptions {
    /// Let virtual time pass no faster than real time: for people at a terminal.
    pub in_real_time: bool,
    /// Record each request at the drives.
    pub is_traced: bool,
    /// CPU that the loop stays on. The kernel belongs on the same one: they take turns.
    pub cpu: Option<usize>,
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
    calendar: Calendar,
    order: u64,
    started: Option<Instant>,
}

impl Lab {
    /// Makes the sockets in `folder`, which must be empty.
    pub fn listen(machine: &Machine, folder: &Path, options: LabOptions) -> Result<Self, LabError> {
        let mut slots = Vec::new();
        let mut queue_depth = 1;
        for (slot, setup) in machine.drives.iter().enumerate() {
            let device = BlockDevice::new(
                setup,
                Contents::default(),
                format!("spindle{slot}"),
                options.is_traced,
            )
            .map_err(|source| LabError::Drive { slot, source })?;
            queue_depth = device.queue_depth().clamp(queue_depth, MOST_REQUESTS);
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
            calendar: Calendar::default(),
            order: 0,
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
        loop {
            let goes_on = match self.calendar.next(self.first_event_ns()) {
                Step::Listen => self.hear(&mut link, output)?,
                Step::Standstill if input.is_none() => {
                    let seconds = self.calendar.now_ns() as f64 / 1e9;
                    return Err(LabError::Standstill { seconds });
                }
                Step::Standstill => self.pause(&mut link, &mut input, None)?,
                Step::Device(at) | Step::Run(at) if self.is_early(at) => {
                    self.pause(&mut link, &mut input, Some(at))?
                }
                Step::Device(at) => self.pass(at, &mut link)?,
                Step::Run(at) => {
                    let limit = self.free_run_limit_ns(at);
                    for message in self.calendar.run(at, limit) {
                        link.queue(message);
                    }
                    true
                }
            };
            if !goes_on {
                return Ok(self.report(&link));
            }
        }
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

    fn report(&self, link: &TimeLink) -> Report {
        let drives = self.slots.iter().filter_map(|slot| match &slot.model {
            Model::Drive(drive) => Some(drive),
            Model::Console(..) => None,
        });
        Report {
            virtual_ns: self.calendar.now_ns(),
            time_messages: link.messages,
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

    /// Waits for one message of the kernel and carries it out; false if the kernel is gone.
    fn hear(&mut self, link: &mut TimeLink, output: &Sender<Output>) -> Result<bool, LabError> {
        if let Some(slot) = self
            .slots
            .iter()
            .position(|slot| slot.session.as_ref().is_some_and(Session::has_bytes))
        {
            return self.serve(slot, link, output).map(|()| true);
        }
        if link.has_message() {
            return self.hear_time(link).map(|heard| heard.is_some());
        }
        link.flush()?;
        let ready = self.poll(link)?;
        for slot in ready.slots {
            self.serve(slot, link, output)?;
        }
        if ready.has_time {
            return self.hear_time(link).map(|heard| heard.is_some());
        }
        Ok(true)
    }

    /// Answers one message about time, and returns its kind; `None` if the kernel is gone.
    fn hear_time(&mut self, link: &mut TimeLink) -> Result<Option<Operation>, LabError> {
        let Some(message) = link.receive()? else {
            return Ok(None);
        };
        if let Some(answer) = self.calendar.receive(message) {
            link.queue(answer);
        }
        Ok(Some(message.operation))
    }

    /// Waits until the kernel speaks. The calendar's socket is looked at first: what the kernel sent to a device before
    /// a message about time is then seen with it, and served before it.
    fn poll(&self, link: &TimeLink) -> Result<Ready, LabError> {
        let sockets = self.slots.iter().map(|slot| match &slot.session {
            Some(session) => session.as_fd(),
            None => slot.listener.as_fd(),
        });
        let mut found: Vec<PollFd<'_>> = std::iter::once(link.as_fd())
            .chain(sockets)
            .map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN))
            .collect();
        wait(&mut found, None)?;
        let is_ready = |place: usize| !found[place].revents().is_empty();
        Ok(Ready {
            has_time: is_ready(0),
            slots: (0..self.slots.len())
                .filter(|slot| is_ready(slot + 1))
                .collect(),
        })
    }

    /// Accepts a device's connection, or carries out one of its messages.
    fn serve(
        &mut self,
        place: usize,
        link: &mut TimeLink,
        output: &Sender<Output>,
    ) -> Result<(), LabError> {
        let now_ns = self.calendar.now_ns();
        let slot = &mut self.slots[place];
        let Some(session) = &mut slot.session else {
            let (stream, _) = slot
                .listener
                .accept()
                .map_err(|error| LabError::socket(&slot.name, error))?;
            let rings = slot.model.device().rings();
            slot.session = Some(Session::new(slot.name.clone(), stream, rings));
            return Ok(());
        };
        match session.serve(now_ns, slot.model.device())? {
            // The last two come only where notifications are descriptors.
            Upshot::Answered | Upshot::Stopped(_) | Upshot::Nothing => Ok(()),
            Upshot::Closed => {
                slot.session = None;
                Ok(())
            }
            Upshot::Kicked => self.end_kick(place, link, output),
        }
    }

    /// The kernel goes on only after it knows how far it may run alone.
    fn end_kick(
        &mut self,
        place: usize,
        link: &mut TimeLink,
        output: &Sender<Output>,
    ) -> Result<(), LabError> {
        let slot = &mut self.slots[place];
        slot.note_event(&mut self.order);
        if let Model::Console(port, console) = &mut slot.model {
            let bytes = console.take_output();
            if !bytes.is_empty() {
                // A reader that is gone does not end the lab: the command may still do its work.
                let _ = output.send(Output { port: *port, bytes });
            }
        }
        let first = self.first_event_ns();
        if let Some(message) = self.calendar.limit(first) {
            link.queue(message);
            link.flush()?;
            // The kernel reads it while it waits for the answer to its kick, and answers it; nothing else can come.
            self.hear_time(link)?;
        }
        match &mut self.slots[place].session {
            Some(session) => Ok(session.acknowledge(Session::KICK)?),
            None => Ok(()),
        }
    }

    /// Virtual time passes to the first event of a device.
    fn pass(&mut self, at: u64, link: &mut TimeLink) -> Result<bool, LabError> {
        self.calendar.advance(at);
        let Some((_, place)) = self.first_event() else {
            return Ok(true);
        };
        let slot = &mut self.slots[place];
        let Some(session) = &mut slot.session else {
            slot.event = None;
            return Ok(true);
        };
        let rings = session.advance(at, slot.model.device())?;
        slot.event = None;
        slot.note_event(&mut self.order);
        for ring in rings {
            if !self.interrupt(place, ring, link)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Interrupts the waiting kernel, and answers it until it has taken the interrupt; false if it is gone.
    fn interrupt(
        &mut self,
        place: usize,
        ring: u32,
        link: &mut TimeLink,
    ) -> Result<bool, LabError> {
        link.flush()?;
        let Some(session) = &mut self.slots[place].session else {
            return Ok(true);
        };
        session.interrupt(ring)?;
        loop {
            let Some(session) = &mut self.slots[place].session else {
                return Ok(true);
            };
            let Some(back) = session.back_channel() else {
                return Ok(true);
            };
            let mut found =
                [link.as_fd(), back].map(|socket| PollFd::from_borrowed_fd(socket, PollFlags::IN));
            wait(&mut found, None)?;
            let [has_time, has_answer] =
                [0, 1].map(|place: usize| !found[place].revents().is_empty());
            if has_time {
                let Some(heard) = self.hear_time(link)? else {
                    return Ok(false);
                };
                let is_kernels_turn =
                    || matches!(self.calendar.next(self.first_event_ns()), Step::Run(_));
                if heard == Operation::Request && is_kernels_turn() {
                    // The last that the kernel does for an interrupt, but for its answer: let it run at once.
                    return Ok(true);
                }
                link.flush()?;
            } else if has_answer {
                session.take_answer()?;
                return Ok(true);
            }
        }
    }

    /// How far the kernel may run alone from `at` on: up to the first event of a device, and in real time no further than
    /// real time.
    fn free_run_limit_ns(&self, at: u64) -> Option<u64> {
        let real = self.options.in_real_time.then(|| self.real_ns().max(at));
        self.first_event_ns().into_iter().chain(real).min()
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
        link: &mut TimeLink,
        input: &mut Option<UnixStream>,
        until_ns: Option<u64>,
    ) -> Result<bool, LabError> {
        link.flush()?;
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
        if !found[0].revents().is_empty() {
            return self.hear_time(link).map(|heard| heard.is_some());
        }
        if has_input {
            self.type_in(input, until_ns);
        }
        Ok(true)
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

struct Ready {
    has_time: bool,
    slots: Vec<usize>,
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

fn listen(folder: &Path, name: &str) -> Result<UnixListener, LabError> {
    UnixListener::bind(folder.join(name)).map_err(|error| LabError::socket(name, error))
}
