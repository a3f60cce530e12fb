//! The lab as a kernel sees it: sockets, time and one drive, played by a test in the place of the kernel.

use std::fs::File;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::thread;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use spindle_lab::time_travel::{
    Answer, FOREVER, Interrupt, Kick, Message, Operation, TIME_OF_DAY_NS,
};
use spindle_lab::{Lab, LabError, LabOptions, Report};
use spindle_sim::Machine;

const MACHINE: &str = "
[[drive]]
service = '100us'
transfer_rate = '200 MB/s'
flush = '100us'
queue_depth = 8
capacity = '1MiB'
";
const SERVICE_NS: u64 = 100_000 + 5 * 4096;

/// Address of the first byte of the memory; the places below count from there.
const BASE: u64 = 0x6000_0000;
const LEN: u64 = 0x10000;
const DESCRIPTORS: u64 = 0;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
const HEADER: u64 = 0x3000;
const STATUS: u64 = 0x3100;
const DATA: u64 = 0x4000;

/// Numbers of vhost-user's requests.
const SET_MEM_TABLE: u32 = 5;
const SET_VRING_NUM: u32 = 8;
const SET_VRING_ADDR: u32 = 9;

const READ: u32 = 0;
const WRITE: u32 = 1;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("spindle-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// The kernel's end of the calendar.
struct Clock {
    stream: UnixStream,
    now_ns: u64,
    kicks: Vec<Kick>,
}

impl Clock {
    /// Connects, and takes the lookahead.
    fn connect(folder: &Path) -> (Self, u64) {
        let mut clock = Self {
            stream: UnixStream::connect(folder.join("time")).unwrap(),
            now_ns: 0,
            kicks: Vec::new(),
        };
        let answer = clock.ask(Operation::Start, 1);
        assert_eq!(answer.time_ns, TIME_OF_DAY_NS);
        (clock, answer.free_until_ns)
    }

    fn send(&mut self, operation: Operation, request: u64) {
        let message = Message {
            operation,
            now_ns: self.now_ns,
            request,
            kicks: std::mem::take(&mut self.kicks),
        };
        self.stream.write_all(&message.to_bytes()).unwrap();
    }

    fn ask(&mut self, operation: Operation, request: u64) -> Answer {
        self.send(operation, request);
        let mut bytes = [0; 1024];
        let count = self.stream.read(&mut bytes).unwrap();
        Answer::parse(&bytes[..count]).unwrap()
    }

    /// Waits for the drive, at most until `request_ns`; true if it has interrupted the kernel.
    fn wait(&mut self, request_ns: u64) -> bool {
        let answer = self.ask(Operation::Wait, request_ns);
        self.now_ns = answer.time_ns;
        let of_drive = Interrupt { device: 0, ring: 0 };
        assert!(answer.interrupts.iter().all(|found| *found == of_drive));
        !answer.interrupts.is_empty()
    }
}

/// The kernel's end of a drive.
struct Driver {
    stream: UnixStream,
    memory: File,
    offered: u16,
}

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().copied().flat_map(u64::to_ne_bytes).collect()
}

impl Driver {
    fn connect(folder: &Path, clock: &mut Clock) -> Self {
        let path = folder.join("memory");
        let memory = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .unwrap();
        memory.set_len(LEN).unwrap();
        let mut driver = Self {
            stream: UnixStream::connect(folder.join("drive0")).unwrap(),
            memory,
            offered: 0,
        };
        driver.set_up(clock);
        driver
    }

    fn set_up(&mut self, clock: &mut Clock) {
        let fine = vec![0; 8];
        let memory = self.memory.try_clone().unwrap();
        let entries = [0_u32.to_ne_bytes(), 8_u32.to_ne_bytes()].concat();
        let addresses = words(&[0, BASE + DESCRIPTORS, BASE + USED, BASE + AVAILABLE, 0]);
        for (request, payload, descriptor) in [
            (
                SET_MEM_TABLE,
                words(&[1, BASE, LEN, BASE, 0]),
                Some(memory.as_fd()),
            ),
            (SET_VRING_NUM, entries, None),
            (SET_VRING_ADDR, addresses, None),
        ] {
            clock.ask(Operation::Device, 0);
            self.send(request, &payload, descriptor);
            assert_eq!(self.answer(request), fine);
        }
    }

    fn send(&mut self, request: u32, payload: &[u8], descriptor: Option<BorrowedFd<'_>>) {
        let version_and_need_reply = 1 | 8;
        let mut bytes: Vec<u8> = [request, version_and_need_reply, payload.len() as u32]
            .into_iter()
            .flat_map(u32::to_ne_bytes)
            .collect();
        bytes.extend_from_slice(payload);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors: Vec<BorrowedFd<'_>> = descriptor.into_iter().collect();
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        }
        let whole = [IoSlice::new(&bytes)];
        sendmsg(&self.stream, &whole, &mut control, SendFlags::empty()).unwrap();
    }

    fn answer(&mut self, request: u32) -> Vec<u8> {
        let mut header = [0; 12];
        self.stream.read_exact(&mut header).unwrap();
        assert_eq!(header[..4], request.to_ne_bytes());
        let mut payload = vec![0; usize::from(header[8])];
        self.stream.read_exact(&mut payload).unwrap();
        payload
    }

    /// Puts a request of 4 KiB into the ring and notes the kick.
    fn offer(&mut self, clock: &mut Clock, operation: u32, sector: u64) {
        let put = |at: u64, bytes: &[u8]| self.memory.write_all_at(bytes, at).unwrap();
        put(HEADER, &u64::from(operation).to_le_bytes());
        put(HEADER + 8, &sector.to_le_bytes());
        put(STATUS, &[0xff]);
        let (next, writable) = (1_u16, 2_u16);
        let of_data = if operation == READ {
            next | writable
        } else {
            next
        };
        let chain = [
            (HEADER, 16_u32, next, 1_u16),
            (DATA, 4096, of_data, 2),
            (STATUS, 1, writable, 0),
        ];
        for (index, (address, len, flags, next)) in (0_u64..).zip(chain) {
            let at = DESCRIPTORS + 16 * index;
            put(at, &(BASE + address).to_le_bytes());
            put(at + 8, &len.to_le_bytes());
            put(at + 12, &flags.to_le_bytes());
            put(at + 14, &next.to_le_bytes());
        }
        put(AVAILABLE + 4 + 2 * u64::from(self.offered % 8), &[0, 0]);
        self.offered += 1;
        put(AVAILABLE + 2, &self.offered.to_le_bytes());
        clock.kicks.push(Kick {
            time_ns: clock.now_ns,
            device: 0,
            ring: 0,
            available: self.offered,
        });
    }

    fn byte(&self, at: u64) -> u8 {
        let mut byte = [0];
        self.memory.read_exact_at(&mut byte, at).unwrap();
        byte[0]
    }
}

/// Runs the lab, with `kernel` in the place of its kernel, until that closes its connections.
fn in_lab(name: &str, kernel: impl FnOnce(&Path)) -> Result<Report, LabError> {
    let folder = Folder::new(name);
    let machine = Machine::parse(MACHINE, "machine.toml").unwrap();
    let mut lab = Lab::listen(&machine, &folder.0, LabOptions::default()).unwrap();
    let (output, _taken) = channel();
    let running = thread::spawn(move || lab.run(&output, None));
    kernel(&folder.0);
    running.join().unwrap()
}

#[test]
fn a_request_is_done_after_its_service_time_and_the_kernel_runs_then() {
    let report = in_lab("service", |folder| {
        let (mut clock, _) = Clock::connect(folder);
        let mut driver = Driver::connect(folder, &mut clock);

        driver.memory.write_all_at(&[7; 4096], DATA).unwrap();
        clock.now_ns = 1000;
        driver.offer(&mut clock, WRITE, 8);
        assert!(clock.wait(50_000_000));
        assert_eq!(clock.now_ns, 1000 + SERVICE_NS);
        assert_eq!(driver.byte(STATUS), 0);

        driver.memory.write_all_at(&[0; 4096], DATA).unwrap();
        driver.offer(&mut clock, READ, 8);
        assert!(clock.wait(50_000_000));
        assert_eq!(clock.now_ns, 1000 + 2 * SERVICE_NS);
        assert_eq!(driver.byte(DATA + 4095), 7);
    });
    let report = report.unwrap();
    assert_eq!(report.virtual_ns, 1000 + 2 * SERVICE_NS);
    assert_eq!(report.drives[0].requests, 2);
}

#[test]
fn a_kick_counts_from_the_time_at_which_it_was_made() {
    let report = in_lab("late", |folder| {
        let (mut clock, lookahead_ns) = Clock::connect(folder);
        let mut driver = Driver::connect(folder, &mut clock);
        assert!(0 < lookahead_ns && lookahead_ns < SERVICE_NS);
        driver.offer(&mut clock, READ, 0);
        clock.now_ns += lookahead_ns;
        assert!(clock.wait(50_000_000));
        assert_eq!(clock.now_ns, SERVICE_NS);
    });
    assert_eq!(report.unwrap().drives[0].requests, 1);
}

#[test]
fn the_kernel_runs_alone_up_to_the_first_event_of_a_drive() {
    let report = in_lab("free", |folder| {
        let (mut clock, _) = Clock::connect(folder);
        let mut driver = Driver::connect(folder, &mut clock);
        assert!(!clock.wait(5000));
        assert_eq!(clock.ask(Operation::Kick, 0).free_until_ns, FOREVER);
        driver.offer(&mut clock, READ, 0);
        let answer = clock.ask(Operation::Kick, 0);
        assert_eq!(answer.free_until_ns, 5000 + SERVICE_NS);
    });
    assert_eq!(report.unwrap().drives[0].requests, 0);
}

#[test]
fn a_kernel_and_drives_that_wait_for_ever_are_an_error() {
    let report = in_lab("standstill", |folder| {
        let (mut clock, _) = Clock::connect(folder);
        clock.send(Operation::Wait, FOREVER);
        // The lab ends, and with it the connection.
        let _ = clock.stream.read_to_end(&mut Vec::new());
    });
    assert!(matches!(report, Err(LabError::Standstill { .. })));
}

#[test]
fn a_message_that_no_kernel_sends_is_an_error() {
    for operation in [99_u32, 4] {
        let report = in_lab("wrong", |folder| {
            let mut stream = UnixStream::connect(folder.join("time")).unwrap();
            let device = [operation.to_ne_bytes(), [0; 4]].concat();
            stream
                .write_all(&[device, words(&[0, 77])].concat())
                .unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        });
        assert!(matches!(report, Err(LabError::Protocol { .. })));
    }
}
