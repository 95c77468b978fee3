//! System calls that no server and no player needs, refused by seccomp(2).
//!
//! A refused call fails with EPERM, as it would without a capability: programs that ask for one and can work
//! without it continue.

use nix::libc;

use crate::error::{EngineError, Result};
use crate::sys::check;

/// Mounts and namespaces, the kernel itself, other processes' keys, and interfaces in which the kernel had
/// many faults. ptrace(2) is not among them: it reaches no further than the side's own processes, and crash
/// handlers need it.
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
    libc::SYS_quotactl_fd,
    // Calls that watch other processes' use of the machine's files, and the kernel's log.
    libc::SYS_fanotify_init,
    libc::SYS_syslog,
    // Its kernel threads work outside a side's bounds.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

/// Memory outside a side's files and processes, without any bound. C libraries and programs that find no such
/// call take a file in /dev/shm or /tmp.
const MISSING: &[libc::c_long] = &[libc::SYS_memfd_create, libc::SYS_memfd_secret, libc::SYS_clone3];

/// For fcntl: a lease makes other openers of the file wait, and a notice reveals others' actions in a folder.
const REFUSED_COMMANDS: [libc::c_int; 2] = [libc::F_SETLEASE, libc::F_NOTIFY];

/// A program that crashes starts the machine's handler of such events, with its rights and outside the side,
/// unless this limit is 1 (fs/coredump.c). It must stay.
const KEPT_LIMIT: libc::c_int = libc::RLIMIT_CORE as libc::c_int;

/// Sockets of other families are not in a network namespace (vsock reaches the machine's host), or no program of a flow
/// needs them.
const FAMILIES: [libc::c_int; 5] =
    [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_PACKET];

/// `AUDIT_ARCH_...` (linux/audit.h) of this build. Calls of another, such as those of 32-bit programs, have other numbers,
/// and socketcall(2) among them has arguments that a filter cannot read.
const NATIVE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The lower half of the first argument: `flags` of clone and unshare, `domain` of socket.
const FIRST: u32 = if cfg!(target_endian = "little") { 16 } else { 20 };
/// The same of the second: the command of fcntl, the limit of prlimit.
const SECOND: u32 = FIRST + 8;
/// The same of the third: where the new value for prlimit is. Both halves are 0 where it asks for the old one.
const THIRD: u32 = SECOND + 8;
/// Calls of x32 have this bit; nothing is built for it, and no other call has so high a number.
const X32: u32 = 0x4000_0000;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const NO_FAMILY: u32 = libc::SECCOMP_RET_ERRNO | libc::EAFNOSUPPORT as u32;
const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
/// C libraries fall back from clone3 to clone, with flags that a filter can read.
const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;

/// Refuses the calls from now on, to this process and all that it starts. It must have set no_new_privs.
pub fn refuse() -> Result<()> {
    let mut program = program();
    if program.is_empty() {
        return Ok(());
    }
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: `filter` points to the stated number of instructions.
    let done =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const filter) };
    check(done as i32).map(drop).map_err(|e| {
        EngineError::io("refuse system calls", &e).remedy("this needs a kernel with CONFIG_SECCOMP_FILTER")
    })
}

fn program() -> Vec<libc::sock_filter> {
    let Some(native) = NATIVE else { return Vec::new() };
    let mut program = vec![load(ARCHITECTURE), jump(libc::BPF_JEQ, native, 1, 0), answer(KILL), load(NUMBER)];
    let mut answer_if = |number: libc::c_long, then: u32| {
        program.push(jump(libc::BPF_JEQ, number as u32, 0, 1));
        program.push(answer(then));
    };
    for &number in REFUSED {
        answer_if(number, EPERM);
    }
    for &number in MISSING {
        answer_if(number, ENOSYS);
    }
    program.push(jump(libc::BPF_JGE, X32, 0, 1));
    program.push(answer(ENOSYS));
    let mut families = vec![load(FIRST)];
    for family in FAMILIES {
        families.push(jump(libc::BPF_JEQ, family as u32, 0, 1));
        families.push(answer(ALLOW));
    }
    families.push(answer(NO_FAMILY));
    program.push(jump(libc::BPF_JEQ, libc::SYS_socket as u32, 1, 0));
    program.push(jump(libc::BPF_JEQ, libc::SYS_socketpair as u32, 0, families.len() as u8));
    program.extend(families);
    let mut commands = vec![load(SECOND)];
    for command in REFUSED_COMMANDS {
        commands.push(jump(libc::BPF_JEQ, command as u32, 0, 1));
        commands.push(answer(EPERM));
    }
    commands.push(answer(ALLOW));
    program.push(jump(libc::BPF_JEQ, libc::SYS_fcntl as u32, 0, commands.len() as u8));
    program.extend(commands);
    for (number, which) in [(libc::SYS_setrlimit, FIRST), (libc::SYS_prlimit64, SECOND)] {
        let mut limit = vec![load(which), jump(libc::BPF_JEQ, KEPT_LIMIT as u32, 1, 0), answer(ALLOW)];
        if number == libc::SYS_prlimit64 {
            limit.extend([load(THIRD), jump(libc::BPF_JEQ, 0, 0, 3)]);
            limit.extend([load(THIRD ^ 4), jump(libc::BPF_JEQ, 0, 0, 1), answer(ALLOW)]);
        }
        limit.push(answer(EPERM));
        program.push(jump(libc::BPF_JEQ, number as u32, 0, limit.len() as u8));
        program.extend(limit);
    }
    // Among clone and unshare those that make a user namespace: it would give a program capabilities to try.
    program.push(jump(libc::BPF_JEQ, libc::SYS_clone as u32, 1, 0));
    program.push(jump(libc::BPF_JEQ, libc::SYS_unshare as u32, 0, 2));
    program.push(load(FIRST));
    program.push(jump(libc::BPF_JSET, libc::CLONE_NEWUSER as u32, 1, 0));
    program.push(answer(ALLOW));
    program.push(answer(EPERM));
    program
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

    /// Runs the program as the kernel would, on a call with its first three arguments, and the upper half of the third.
    fn verdict(architecture: u32, number: libc::c_long, arguments: [u32; 4]) -> u32 {
        let program = program();
        let (mut at, mut value) = (0usize, 0u32);
        loop {
            let one = program[at];
            let code = u32::from(one.code);
            at += 1;
            let compared = |holds: bool| usize::from(if holds { one.jt } else { one.jf });
            if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS {
                let [first, second, third, high] = arguments;
                value =
                    [number as u32, architecture, 0, 0, first, 0, second, 0, third, high][one.k as usize / 4];
            } else if code == libc::BPF_RET | libc::BPF_K {
                return one.k;
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
    #[cfg(target_endian = "little")]
    fn calls_are_refused_and_no_others() {
        let Some(native) = NATIVE else { return };
        let say_all = |number: libc::c_long, arguments: [i32; 4]| {
            verdict(native, number, arguments.map(|argument| argument as u32))
        };
        let say = |number: libc::c_long, first: i32, second: i32| say_all(number, [first, second, 0, 0]);
        for number in 0..600 {
            let expected = match number {
                _ if REFUSED.contains(&number) => EPERM,
                _ if MISSING.contains(&number) => ENOSYS,
                libc::SYS_socket | libc::SYS_socketpair => NO_FAMILY,
                _ => ALLOW,
            };
            assert_eq!(say(number, 0, 0), expected, "{number}");
        }
        for number in [libc::SYS_clone, libc::SYS_unshare] {
            assert_eq!(say(number, libc::CLONE_NEWUSER | libc::CLONE_NEWNET, 0), EPERM);
            assert_eq!(say(number, libc::CLONE_VM | libc::CLONE_THREAD, 0), ALLOW);
        }
        for number in [libc::SYS_socket, libc::SYS_socketpair] {
            let families: Vec<i32> = (0..100).filter(|&family| say(number, family, 0) == ALLOW).collect();
            assert_eq!(families, FAMILIES);
        }
        let refused: Vec<i32> =
            (0..2000).filter(|&command| say(libc::SYS_fcntl, 0, command) == EPERM).collect();
        assert_eq!(refused, REFUSED_COMMANDS);
        for limit in 0..16 {
            let expected = if limit == KEPT_LIMIT { EPERM } else { ALLOW };
            assert_eq!(say(libc::SYS_setrlimit, limit, 0), expected);
            for [low, high] in [[4096, 0], [0, 1]] {
                assert_eq!(say_all(libc::SYS_prlimit64, [0, limit, low, high]), expected);
            }
            assert_eq!(say(libc::SYS_prlimit64, 0, limit), ALLOW, "it only asks");
        }
        assert_eq!(say(165 | i64::from(X32), 0, 0), ENOSYS);
        for foreign in [0x4000_0003, 0x4000_0028, 1] {
            assert_eq!(verdict(foreign, libc::SYS_read, [0; 4]), KILL);
        }
    }
}
