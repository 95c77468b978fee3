//! Sending in batches with sendmmsg.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;

/// Frames of one system call.
pub const MAX_BATCH: usize = 32;

/// A frame in up to [`PARTS`] pieces, in order; most are in one.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a>([&'a [u8]; PARTS]);

/// Header, payload before a changed byte, that byte, payload behind it.
const PARTS: usize = 4;

impl<'a> Parts<'a> {
    /// Returns a frame in one piece.
    #[inline]
    pub fn whole(frame: &'a [u8]) -> Self {
        Parts([frame, &[], &[], &[]])
    }

    /// Returns a frame in pieces; some may be empty.
    pub fn of(parts: [&'a [u8]; PARTS]) -> Self {
        Parts(parts)
    }

    /// Returns the frame's length.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.iter().map(|part| part.len()).sum()
    }

    /// Returns the frame in one piece, in memory of its own.
    pub fn concat(&self) -> Vec<u8> {
        self.0.concat()
    }
}

/// Buffers of one system call, reused.
pub struct Sender {
    vectors: Box<[libc::iovec; MAX_BATCH * PARTS]>,
    messages: Box<[libc::mmsghdr; MAX_BATCH]>,
}

// SAFETY: the pointers inside are only used during `send`, which sets them anew.
unsafe impl Send for Sender {}

impl Sender {
    /// Returns an empty one.
    pub fn new() -> Self {
        // SAFETY: both are plain C data for which zero is a value.
        unsafe { Sender { vectors: Box::new(std::mem::zeroed()), messages: Box::new(std::mem::zeroed()) } }
    }

    /// Sends `frames` (at most [`MAX_BATCH`]) in order and reports each as it is done: its index, and whether the
    /// kernel took it. Never blocks.
    pub fn send<'a>(
        &mut self,
        socket: BorrowedFd<'_>,
        frames: impl Iterator<Item = Parts<'a>>,
        mut done: impl FnMut(usize, io::Result<()>),
    ) {
        let mut count = 0;
        let vectors = self.vectors.chunks_exact_mut(PARTS);
        for ((frame, message), vectors) in frames.zip(self.messages.iter_mut()).zip(vectors) {
            let mut used = 0;
            for part in frame.0.iter().filter(|part| !part.is_empty()) {
                vectors[used] =
                    libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
                used += 1;
            }
            message.msg_hdr.msg_iov = vectors.as_mut_ptr();
            message.msg_hdr.msg_iovlen = used;
            count += 1;
        }
        let mut first = 0;
        let mut retries = 3;
        while first < count {
            // SAFETY: the messages point to vectors, and those to frames, that live for the call; the kernel only
            // reads the frames.
            let sent = unsafe {
                libc::sendmmsg(
                    socket.as_raw_fd(),
                    self.messages[first..].as_mut_ptr(),
                    (count - first) as u32,
                    libc::MSG_DONTWAIT,
                )
            };
            if sent > 0 {
                for index in first..first + sent as usize {
                    done(index, Ok(()));
                }
                first += sent as usize;
                continue;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::ENOBUFS) if retries > 0 => retries -= 1,
                _ => {
                    done(first, Err(error));
                    first += 1;
                }
            }
        }
    }
}
