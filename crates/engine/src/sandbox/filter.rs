//! System calls that no server and no player needs, refused by seccomp(2).
//!
//! A refused call fails with EPERM, as it would for want of a capability, so that programs which ask for one and can do
//! without go on.

use nix::libc;

use crate::error::{EngineError, Result};
use crate::sys::check;

/// Mounts and namespaces, the kernel itself, other processes' keys, and interfaces of which the kernel had many faults.
/// ptrace(2) is not among them: it reaches no further than the side's own processes, and crash handlers need it.
const REFUSED: &[libc::c_long] = &[
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_open_by_handle_at,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
];

/// The same of 32-bit programs on x86-64, by the numbers of arch/x86/entry/syscalls/syscall_32.tbl.
#[cfg(target_arch = "x86_64")]
const REFUSED_32: &[libc::c_long] = &[
    21, 22, 51, 52, 87, 88, 115, 128, 129, 131, 217, 283, 286, 287, 288, 336, 342, 346, 350, 357, 374, 428,
    429, 430, 431, 432, 433, 442,
];

/// What one architecture's calls are called by.
struct Numbers {
    /// `AUDIT_ARCH_...` (linux/audit.h).
    architecture: u32,
    refused: &'static [libc::c_long],
    unshare: u32,
    clone: u32,
    clone3: u32,
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURES: [Numbers; 2] = [
    Numbers {
        architecture: 0xc000_003e,
        refused: REFUSED,
        unshare: libc::SYS_unshare as u32,
        clone: libc::SYS_clone as u32,
        clone3: libc::SYS_clone3 as u32,
    },
    Numbers { architecture: 0x4000_0003, refused: REFUSED_32, unshare: 310, clone: 120, clone3: 435 },
];
#[cfg(target_arch = "aarch64")]
const ARCHITECTURES: [Numbers; 1] = [Numbers {
    architecture: 0xc000_00b7,
    refused: REFUSED,
    unshare: libc::SYS_unshare as u32,
    clone: libc::SYS_clone as u32,
    clone3: libc::SYS_clone3 as u32,
}];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURES: [Numbers; 0] = [];

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The lower half of the first argument: `flags` of clone and unshare.
const FLAGS: u32 = if cfg!(target_endian = "little") { 16 } else { 20 };
/// Calls of x32 have this bit; nothing is built for it, and no other call has so high a number.
const X32: u32 = 0x4000_0000;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
/// C libraries fall back to clone, whose flags a filter can read.
const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// Refuses the calls from now on, to this process and all that it starts. It must have set no_new_privs.
pub fn refuse() -> Result<()> {
    let mut program = program();
    if program.is_empty() {
        return Ok(());
    }
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: `filter` points to as many instructions as said.
    let done =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const filter) };
    check(done as i32).map(drop).map_err(|e| {
        EngineError::io("refuse system calls", &e).remedy("this needs a kernel with CONFIG_SECCOMP_FILTER")
    })
}

fn program() -> Vec<libc::sock_filter> {
    let mut program = Vec::new();
    for numbers in &ARCHITECTURES {
        let body = of(numbers);
        program.push(load(ARCHITECTURE));
        // Past this architecture's part, whose length may be more than a conditional jump can say.
        program.push(jump(libc::BPF_JEQ, numbers.architecture, 1, 0));
        program.push(statement(libc::BPF_JMP | libc::BPF_JA, body.len() as u32));
        program.extend(body);
    }
    if !program.is_empty() {
        // An architecture that this one's kernel may run and that has no list here.
        program.push(answer(ENOSYS));
    }
    program
}

/// The part for one architecture; it ends with an answer.
fn of(numbers: &Numbers) -> Vec<libc::sock_filter> {
    let mut body = vec![load(NUMBER)];
    let mut answer_if = |number: u32, then: u32| {
        body.push(jump(libc::BPF_JEQ, number, 0, 1));
        body.push(answer(then));
    };
    for &number in numbers.refused {
        answer_if(number as u32, EPERM);
    }
    answer_if(numbers.clone3, ENOSYS);
    body.push(jump(libc::BPF_JGE, X32, 0, 1));
    body.push(answer(ENOSYS));
    // Of clone and unshare those that make a user namespace: it would give a program capabilities to try.
    body.push(jump(libc::BPF_JEQ, numbers.clone, 1, 0));
    body.push(jump(libc::BPF_JEQ, numbers.unshare, 0, 2));
    body.push(load(FLAGS));
    body.push(jump(libc::BPF_JSET, libc::CLONE_NEWUSER as u32, 1, 0));
    body.push(answer(ALLOW));
    body.push(answer(EPERM));
    body
}

fn load(offset: u32) -> libc::sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

fn answer(with: u32) -> libc::sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, with)
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Skips `then` instructions if the comparison holds, else `otherwise`.
fn jump(comparison: u32, k: u32, then: u8, otherwise: u8) -> libc::sock_filter {
    let code = (libc::BPF_JMP | comparison | libc::BPF_K) as u16;
    libc::sock_filter { code, jt: then, jf: otherwise, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel would.
    fn verdict(architecture: u32, number: u32, flags: u32) -> u32 {
        let program = program();
        let (mut at, mut value) = (0usize, 0u32);
        loop {
            let one = program[at];
            let code = u32::from(one.code);
            at += 1;
            let compared = |holds: bool| usize::from(if holds { one.jt } else { one.jf });
            if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS {
                value = [number, architecture, 0, 0, flags, 0][one.k as usize / 4];
            } else if code == libc::BPF_RET | libc::BPF_K {
                return one.k;
            } else if code == libc::BPF_JMP | libc::BPF_JA {
                at += one.k as usize;
            } else if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K {
                at += compared(value == one.k);
            } else if code == libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K {
                at += compared(value >= one.k);
            } else {
                assert_eq!(code, libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K);
                at += compared(value & one.k != 0);
            }
        }
    }

    #[test]
    fn every_architecture_refuses_its_calls_and_no_others() {
        for numbers in &ARCHITECTURES {
            let say = |number: u32, flags: u32| verdict(numbers.architecture, number, flags);
            for number in 0..600 {
                let refused = numbers.refused.contains(&libc::c_long::from(number));
                let expected = match number {
                    _ if refused => EPERM,
                    _ if number == numbers.clone3 => ENOSYS,
                    _ => ALLOW,
                };
                assert_eq!(say(number, 0), expected, "{number} of {:x}", numbers.architecture);
            }
            let user = libc::CLONE_NEWUSER as u32;
            let thread = (libc::CLONE_VM | libc::CLONE_THREAD) as u32;
            for number in [numbers.clone, numbers.unshare] {
                assert_eq!(say(number, user | libc::CLONE_NEWNET as u32), EPERM);
                assert_eq!(say(number, thread), ALLOW);
            }
            assert_eq!(say(numbers.refused[0] as u32, user), EPERM);
        }
        #[cfg(target_arch = "x86_64")]
        assert_eq!(verdict(ARCHITECTURES[0].architecture, X32 | 165, 0), ENOSYS);
        assert_eq!(verdict(1, 0, 0), ENOSYS, "an architecture without a list");
    }
}
