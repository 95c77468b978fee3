//! A TPACKET_V2 receive ring: every frame with the kernel's arrival stamp, and every lost one counted.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::libc;

use super::FRAME_ROOM;
use crate::error::{EngineError, Result};
use crate::sys::{self, check};

/// Memory is in blocks of this size; the kernel requires whole pages.
const BLOCK_BYTES: usize = 64 * 1024;

/// Meaning of a frame's direction at this socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outgoing {
    /// Frames that the interface sends are not seen.
    Ignore,
    /// Both directions, distinguished by [`Captured::outgoing`].
    Capture,
}

/// How a ring is opened.
#[derive(Clone, Copy, Debug)]
pub struct RingOptions {
    /// Frames it holds, rounded up to a whole block.
    pub frames: usize,
    /// Bytes for each with its header: a power of two, at most [`BLOCK_BYTES`].
    pub room: usize,
    /// Bytes of a frame that are kept; `None` for all that have room.
    pub snap: Option<usize>,
    /// Whether sent frames are seen too.
    pub outgoing: Outgoing,
}

impl RingOptions {
    /// Returns the spec for `frames` whole frames.
    pub fn whole(frames: usize, outgoing: Outgoing) -> Self {
        RingOptions { frames, room: FRAME_ROOM, snap: None, outgoing }
    }

    /// Returns the spec for the headers of `frames` frames: a tap that only counts or stamps.
    pub fn headers(frames: usize, outgoing: Outgoing) -> Self {
        RingOptions { frames, room: 256, snap: Some(64), outgoing }
    }
}

/// One frame in the ring, until [`Ring::release`].
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// From the Ethernet header on; shorter than `wire_bytes` if it was cut.
    pub bytes: &'a [u8],
    /// The frame's length.
    pub wire_bytes: usize,
    /// Kernel stamp, CLOCK_REALTIME ns.
    pub stamp_ns: i64,
    /// Its transport checksum has been left to hardware that is not there: offloads are on at the sender.
    pub checksum_missing: bool,
    /// This host sent it.
    pub outgoing: bool,
}

/// An open packet socket with its ring.
pub struct Ring {
    socket: OwnedFd,
    memory: NonNull<u8>,
    memory_bytes: usize,
    frames: usize,
    room: usize,
    head: usize,
    drops: u64,
}

// SAFETY: the mapping belongs to this value alone, and nothing in it is tied to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// Opens `interface` of the calling thread's network namespace, promiscuous, for every protocol.
    pub fn open(interface: &str, options: RingOptions) -> Result<Ring> {
        let failed = |what: &str, e: &io::Error| {
            EngineError::io(format!("{what} on interface {interface}"), e)
                .remedy("packet sockets need CAP_NET_RAW in the namespace: run inside the sandbox")
        };
        let index = sys::interface_index(interface)?;
        // Protocol 0: nothing arrives before the ring is set up and the socket is bound.
        let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, 0)
            .map_err(|e| failed("open a packet socket", &e))?;
        let set = |what: &str, name: i32, value: &libc::c_int| {
            sys::set_option(socket.as_fd(), libc::SOL_PACKET, name, value).map_err(|e| failed(what, &e))
        };
        set("choose TPACKET_V2", libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V2 as i32))?;
        set("bypass the queueing discipline", libc::PACKET_QDISC_BYPASS, &1)?;
        if options.outgoing == Outgoing::Ignore {
            set("ignore outgoing frames", PACKET_IGNORE_OUTGOING, &1)?;
        }
        // Without a taker of stamps the kernel stamps a frame when it reaches the ring, not when it arrives.
        sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1)
            .map_err(|e| failed("ask for stamps", &e))?;

        if let Some(snap) = options.snap {
            keep_only(socket.as_fd(), snap).map_err(|e| failed("shorten frames", &e))?;
        }
        let room = options.room;
        let blocks = (options.frames * room).div_ceil(BLOCK_BYTES).max(1);
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: room as u32,
            tp_frame_nr: (blocks * BLOCK_BYTES / room) as u32,
        };
        sys::set_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &request)
            .map_err(|e| failed("make a receive ring", &e))?;
        let memory_bytes = blocks * BLOCK_BYTES;
        // SAFETY: a fresh shared mapping of the ring just made; unmapped in `drop`.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                memory_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(failed("map the receive ring", &io::Error::last_os_error()));
        }
        let memory = NonNull::new(memory.cast()).expect("mmap never returns null on success");
        let frames = request.tp_frame_nr as usize;
        let ring = Ring { socket, memory, memory_bytes, frames, room, head: 0, drops: 0 };
        bind(ring.fd(), index, libc::ETH_P_ALL).map_err(|e| failed("bind a packet socket", &e))?;
        ring.watch_all(index).map_err(|e| failed("set promiscuous mode", &e))?;
        Ok(ring)
    }

    fn watch_all(&self, index: i32) -> io::Result<()> {
        // SAFETY: `packet_mreq` is plain C data, and zero is a value.
        let mut request: libc::packet_mreq = unsafe { std::mem::zeroed() };
        request.mr_ifindex = index;
        request.mr_type = libc::PACKET_MR_PROMISC as u16;
        sys::set_option(self.socket.as_fd(), libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
    }

    /// Returns the socket, for polling and sending.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn slot(&self) -> *mut u8 {
        // SAFETY: `head < frames`, and a block holds a whole number of frames, so they lie back to back.
        unsafe { self.memory.as_ptr().add(self.head * self.room) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: a frame's header begins with its status word, aligned to 16 bytes, shared with the kernel.
        unsafe { AtomicU32::from_ptr(self.slot().cast()) }
    }

    /// Returns whether a frame waits.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Returns the oldest waiting frame's stamp.
    #[inline]
    pub fn peek_stamp(&self) -> Option<i64> {
        if !self.is_ready() {
            return None;
        }
        // SAFETY: the status word gave the frame to us; the kernel writes it no more until `release`.
        let header = unsafe { &*self.slot().cast::<libc::tpacket2_hdr>() };
        Some(i64::from(header.tp_sec) * 1_000_000_000 + i64::from(header.tp_nsec))
    }

    /// Returns the oldest waiting frame.
    #[inline]
    pub fn peek(&self) -> Option<Captured<'_>> {
        let status = self.status().load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: as in `peek_stamp`; the kernel placed `tp_snaplen` bytes at `tp_mac`, inside the frame, and the
        // sender's address behind the aligned header.
        unsafe {
            let slot = self.slot();
            let header = &*slot.cast::<libc::tpacket2_hdr>();
            let start = usize::from(header.tp_mac).min(self.room);
            let length = (header.tp_snaplen as usize).min(self.room - start);
            let address = &*slot.add(ALIGNED_HEADER_BYTES).cast::<libc::sockaddr_ll>();
            Some(Captured {
                bytes: std::slice::from_raw_parts(slot.add(start), length),
                wire_bytes: header.tp_len as usize,
                stamp_ns: i64::from(header.tp_sec) * 1_000_000_000 + i64::from(header.tp_nsec),
                checksum_missing: status & libc::TP_STATUS_CSUMNOTREADY != 0,
                outgoing: address.sll_pkttype == libc::PACKET_OUTGOING,
            })
        }
    }

    /// Gives the oldest frame back to the kernel.
    #[inline]
    pub fn release(&mut self) {
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.head = (self.head + 1) % self.frames;
    }

    /// Frames that found the ring full since it was opened. Reading the kernel's counter resets it there.
    pub fn drops(&mut self) -> u64 {
        if let Ok(stats) = sys::get_option::<libc::tpacket_stats>(
            self.socket.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
        ) {
            self.drops += u64::from(stats.tp_drops);
        }
        self.drops
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `open` with this size, and no borrow of it outlives `self`.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.memory_bytes) };
    }
}

/// Returns a packet socket that only sends, past the queueing discipline, on an interface of the calling
/// thread's namespace.
pub fn raw_socket(interface: &str) -> Result<OwnedFd> {
    let failed = |e: io::Error| {
        EngineError::io(format!("open a packet socket on interface {interface}"), &e)
            .remedy("packet sockets need CAP_NET_RAW in the namespace: run inside the sandbox")
    };
    let index = sys::interface_index(interface)?;
    let socket = sys::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, 0).map_err(failed)?;
    let on: libc::c_int = 1;
    sys::set_option(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &on).map_err(failed)?;
    bind(socket.as_fd(), index, 0).map_err(failed)?;
    Ok(socket)
}

fn bind(socket: BorrowedFd<'_>, index: i32, protocol: i32) -> io::Result<()> {
    // SAFETY: `sockaddr_ll` is plain C data, and zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (protocol as u16).to_be();
    address.sll_ifindex = index;
    let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: `address` is valid for `size` bytes.
    check(unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), size) }).map(drop)
}

/// Attaches a filter that lets every packet pass and cuts it to `bytes`.
fn keep_only(socket: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    let mut code =
        [libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: bytes as u32 }];
    let program = libc::sock_fprog { len: 1, filter: code.as_mut_ptr() };
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// `PACKET_IGNORE_OUTGOING` of linux/if_packet.h.
const PACKET_IGNORE_OUTGOING: i32 = 23;

/// `TPACKET_ALIGN(sizeof(struct tpacket2_hdr))`.
const ALIGNED_HEADER_BYTES: usize = size_of::<libc::tpacket2_hdr>().next_multiple_of(16);
