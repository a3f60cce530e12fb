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
use spindle_lab::time_travel::{Message, Operation};
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
const SET_BACKEND_REQ_FD: u32 = 21;
const VRING_KICK: u32 = 35;

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
    sequence: u32,
    free_until_ns: u64,
}

impl Clock {
    fn connect(folder: &Path) -> Self {
        Self {
            stream: UnixStream::connect(folder.join("time")).unwrap(),
            sequence: 0,
            free_until_ns: 0,
        }
    }

    fn receive(&mut self) -> Message {
        let mut bytes = [0; Message::LEN];
        self.stream.read_exact(&mut bytes).unwrap();
        let message = Message::from_bytes(bytes).unwrap();
        if message.operation != Operation::Ack {
            let answer = Message {
                operation: Operation::Ack,
                ..message
            };
            self.stream.write_all(&answer.to_bytes()).unwrap();
        }
        if message.operation == Operation::FreeUntil {
            self.free_until_ns = message.time_ns;
        }
        message
    }

    fn send(&mut self, operation: Operation, time_ns: u64) {
        self.sequence += 1;
        let message = Message {
            operation,
            sequence: self.sequence,
            time_ns,
        };
        self.stream.write_all(&message.to_bytes()).unwrap();
    }

    /// Sends a message and returns the time in its answer.
    fn ask(&mut self, operation: Operation, time_ns: u64) -> u64 {
        self.send(operation, time_ns);
        loop {
            let answer = self.receive();
            if answer.operation == Operation::Ack {
                assert_eq!(answer.sequence, self.sequence);
                return answer.time_ns;
            }
        }
    }

    fn run(&mut self) -> u64 {
        loop {
            let message = self.receive();
            if message.operation == Operation::Run {
                return message.time_ns;
            }
        }
    }
}

/// The kernel's end of a drive.
struct Driver {
    stream: UnixStream,
    back: UnixStream,
    memory: File,
    offered: u16,
}

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().copied().flat_map(u64::to_ne_bytes).collect()
}

impl Driver {
    fn connect(folder: &Path) -> Self {
        let (back, far) = UnixStream::pair().unwrap();
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
            back,
            memory,
            offered: 0,
        };
        driver.set_up(far.as_fd());
        driver
    }

    fn set_up(&mut self, far: BorrowedFd<'_>) {
        let fine = vec![0; 8];
        assert_eq!(self.ask(SET_BACKEND_REQ_FD, &[], Some(far)), fine);
        let memory = self.memory.try_clone().unwrap();
        let one_region = words(&[1, BASE, LEN, BASE, 0]);
        assert_eq!(
            self.ask(SET_MEM_TABLE, &one_region, Some(memory.as_fd())),
            fine
        );
        let entries = [0_u32.to_ne_bytes(), 8_u32.to_ne_bytes()].concat();
        assert_eq!(self.ask(SET_VRING_NUM, &entries, None), fine);
        let addresses = words(&[0, BASE + DESCRIPTORS, BASE + USED, BASE + AVAILABLE, 0]);
        assert_eq!(self.ask(SET_VRING_ADDR, &addresses, None), fine);
    }

    /// Sends a request that is to be answered and returns the answer's payload.
    fn ask(&mut self, request: u32, payload: &[u8], descriptor: Option<BorrowedFd<'_>>) -> Vec<u8> {
        self.send(request, payload, descriptor);
        self.answer(request)
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

    /// Puts a request of 4 KiB into the ring.
    fn offer(&mut self, operation: u32, sector: u64) {
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
    }

    /// Waits for an interrupt, asks for the time as the kernel does, and answers it.
    fn take_interrupt(&mut self, clock: &mut Clock) -> u64 {
        let mut call = [0; 20];
        self.back.read_exact(&mut call).unwrap();
        let now = clock.ask(Operation::Get, 0);
        clock.ask(Operation::Request, now);
        self.back.write_all(&call).unwrap();
        now
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
        let mut clock = Clock::connect(folder);
        clock.ask(Operation::Start, 1);
        let mut driver = Driver::connect(folder);

        driver.memory.write_all_at(&[7; 4096], DATA).unwrap();
        driver.offer(WRITE, 8);
        clock.ask(Operation::Update, 1000);
        driver.ask(VRING_KICK, &[0; 8], None);
        clock.ask(Operation::Request, 50_000_000);
        clock.ask(Operation::Wait, 0);
        assert_eq!(driver.take_interrupt(&mut clock), 1000 + SERVICE_NS);
        assert_eq!(clock.run(), 1000 + SERVICE_NS);
        assert_eq!(driver.byte(STATUS), 0);

        driver.memory.write_all_at(&[0; 4096], DATA).unwrap();
        driver.offer(READ, 8);
        // The kernel takes the limit of its free run while it waits for the answer to its kick.
        driver.send(VRING_KICK, &[0; 8], None);
        assert_eq!(clock.receive().operation, Operation::FreeUntil);
        driver.answer(VRING_KICK);
        clock.ask(Operation::Request, 50_000_000);
        clock.ask(Operation::Wait, 0);
        driver.take_interrupt(&mut clock);
        assert_eq!(clock.run(), 1000 + 2 * SERVICE_NS);
        assert_eq!(driver.byte(DATA + 4095), 7);
    });
    let report = report.unwrap();
    assert_eq!(report.virtual_ns, 1000 + 2 * SERVICE_NS);
    assert_eq!(report.drives[0].requests, 2);
}

#[test]
fn a_kick_shortens_the_free_run_before_it_is_answered() {
    let report = in_lab("free", |folder| {
        let mut clock = Clock::connect(folder);
        let mut driver = Driver::connect(folder);
        clock.ask(Operation::Request, 5000);
        clock.ask(Operation::Wait, 0);
        assert_eq!(clock.run(), 5000);
        assert_eq!(clock.free_until_ns, i64::MAX as u64);
        driver.offer(READ, 0);
        driver.send(VRING_KICK, &[0; 8], None);
        assert_eq!(clock.receive().operation, Operation::FreeUntil);
        driver.answer(VRING_KICK);
        assert_eq!(clock.free_until_ns, 5000 + SERVICE_NS);
    });
    assert_eq!(report.unwrap().drives[0].requests, 0);
}

#[test]
fn a_kernel_and_drives_that_wait_for_ever_are_an_error() {
    let report = in_lab("standstill", |folder| {
        let mut clock = Clock::connect(folder);
        clock.ask(Operation::Request, i64::MAX as u64);
        clock.send(Operation::Wait, 0);
        // The lab ends, and with it the connection.
        let _ = clock.stream.read_to_end(&mut Vec::new());
    });
    assert!(matches!(report, Err(LabError::Standstill { .. })));
}

#[test]
fn a_message_that_no_kernel_sends_is_an_error() {
    let report = in_lab("wrong", |folder| {
        let mut stream = UnixStream::connect(folder.join("time")).unwrap();
        stream.write_all(&[99; 16]).unwrap();
    });
    assert!(matches!(report, Err(LabError::Protocol { .. })));
}
