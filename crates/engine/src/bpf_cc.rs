//! Congestion controls that the kernel lacks, given to it as BPF programs (struct_ops).
//!
//! Registered by a link, which the kernel takes back when its last descriptor closes: at our end, or at our death.

use std::path::PathBuf;

use crate::error::{EngineError, Result};

/// Arguments of `bpf-cc`.
#[derive(clap::Args)]
pub struct BpfCcArgs {
    /// The congestion control.
    #[arg(value_parser = ["vegas"], required_unless_present = "object")]
    control: Option<String>,
    /// A BPF object with one congestion control (struct_ops), in place of ours.
    #[arg(long, value_name = "FILE", conflicts_with = "control")]
    object: Option<PathBuf>,
    /// The name to register it under, unique on the machine.
    #[arg(long, value_parser = kernel_name)]
    name: String,
}

/// TCP_CA_NAME_MAX (include/net/tcp.h) is 16, with the closing zero.
const NAME_MOST: usize = 15;

impl BpfCcArgs {
    fn what(&self) -> String {
        match (&self.object, &self.control) {
            (Some(file), _) => format!("give the kernel {} as {}", file.display(), self.name),
            (None, control) => {
                format!("give the kernel {} as {}", control.as_deref().unwrap_or_default(), self.name)
            }
        }
    }
}

fn kernel_name(text: &str) -> std::result::Result<String, String> {
    let fits = (1..=NAME_MOST).contains(&text.len());
    if fits && text.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_') {
        Ok(text.to_owned())
    } else {
        Err(format!("a name of 1 to {NAME_MOST} lower-case letters, digits and underscores is needed"))
    }
}

/// Registers the control, prints a line, and holds it until stdin closes.
#[cfg(not(feature = "bpf"))]
pub fn run(args: &BpfCcArgs) -> Result<()> {
    Err(EngineError::new(args.what(), "this streamgauge-engine was built without BPF programs")
        .remedy(
            "build it where clang and libelf's headers are: `make setup` as root installs them in a checkout",
        )
        .code(4))
}

#[cfg(feature = "bpf")]
pub use with_bpf::run;

#[cfg(feature = "bpf")]
mod with_bpf {
    use std::io::{Read, stdin};
    use std::path::Path;
    use std::sync::Mutex;

    use libbpf_rs::{ErrorKind, Link, MapCore, MapType, ObjectBuilder, PrintLevel, set_print};
    use serde_json::json;

    use super::{BpfCcArgs, EngineError, Result};

    static VEGAS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/vegas.bpf.o"));
    /// The most bytes of an object that is read.
    const MOST_BYTES: u64 = 16 << 20;
    /// Size of `struct tcp_congestion_ops`' member `name`.
    const NAME_BYTES: usize = 16;
    const BTF: &str = "/sys/kernel/btf/vmlinux";
    /// First kernel with struct_ops that a link can hold.
    const LEAST_KERNEL: (u32, u32) = (6, 4);

    /// Messages of libbpf and of the kernel's verifier.
    static SAID: Mutex<String> = Mutex::new(String::new());

    /// Registers the control, prints a line, and holds it until stdin closes.
    pub fn run(args: &BpfCcArgs) -> Result<()> {
        let what = args.what();
        examine_kernel(&what)?;
        let object = match &args.object {
            None => VEGAS.to_vec(),
            Some(file) => read(&what, file)?,
        };
        set_print(Some((PrintLevel::Warn, |_, text| {
            SAID.lock().expect("no panic holds it").push_str(&text)
        })));
        let link = register(&object, &args.name, &what)?;
        crate::lines::say(
            &json!({"event": "ready", "control": args.control, "object": args.object, "name": args.name}),
        );
        let _ = std::io::copy(&mut stdin().lock().by_ref(), &mut std::io::sink());
        drop(link);
        Ok(())
    }

    fn read(what: &str, file: &Path) -> Result<Vec<u8>> {
        let failed = |error: &std::io::Error| EngineError::io(what, error).at(file).code(3);
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(file).map_err(|error| failed(&error))?;
        opened.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        if bytes.len() as u64 > MOST_BYTES {
            let why = format!("{} has more than {MOST_BYTES} bytes", file.display());
            return Err(EngineError::new(what, why).remedy("strip it with llvm-strip -g").code(3));
        }
        Ok(bytes)
    }

    fn register(object: &[u8], name: &str, what: &str) -> Result<Link> {
        let failed = |error: libbpf_rs::Error| explain(what, &error);
        let mut builder = ObjectBuilder::default();
        let mut program = builder.open_memory(object).map_err(failed)?;
        let mut tables = 0;
        for mut map in program.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
            tables += 1;
            let Some(table) = map.initial_value_mut().filter(|table| table.len() >= NAME_BYTES) else {
                continue;
            };
            table[..NAME_BYTES].fill(0);
            table[..name.len()].copy_from_slice(name.as_bytes());
        }
        if tables != 1 {
            let why = format!("the object has {tables} tables of struct_ops");
            return Err(EngineError::new(what, why)
                .remedy("give it exactly one struct tcp_congestion_ops, in SEC(\".struct_ops\") or \".struct_ops.link\"")
                .code(2));
        }
        let mut program = program.load().map_err(failed)?;
        let mut table =
            program.maps_mut().find(|map| map.map_type() == MapType::StructOps).expect("it has one");
        // The link keeps table and programs in the kernel when the object is dropped.
        table.attach_struct_ops().map_err(failed)
    }

    fn examine_kernel(what: &str) -> Result<()> {
        let lacking = |why: String, remedy: &str| EngineError::new(what, why).remedy(remedy).code(4);
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let release = release.trim();
        if version(release).is_some_and(|found| found < LEAST_KERNEL) {
            let (major, minor) = LEAST_KERNEL;
            return Err(lacking(
                format!(
                    "this kernel ({release}) is older than {major}.{minor}, the first with links to BPF tables"
                ),
                &format!("boot {major}.{minor} or newer, or load the kernel's own module if it has one"),
            ));
        }
        if !Path::new(BTF).exists() {
            return Err(lacking(
                format!("this kernel has no type information ({BTF})"),
                "boot one with CONFIG_DEBUG_INFO_BTF, or load the kernel's own module if it has one",
            ));
        }
        Ok(())
    }

    /// Returns the major and minor number of a kernel release.
    pub(super) fn version(release: &str) -> Option<(u32, u32)> {
        let mut parts = release.split(|c: char| !c.is_ascii_digit());
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    }

    fn explain(what: &str, error: &libbpf_rs::Error) -> EngineError {
        let said = SAID.lock().expect("no panic holds it").clone();
        // The verifier refuses a program with EACCES, too; it has a log then.
        if error.kind() == ErrorKind::PermissionDenied && !said.contains("LOAD LOG") {
            return EngineError {
                errno: Some(nix::libc::EPERM),
                ..EngineError::new(what, "the kernel refused")
            }
            .remedy("run as root, in a container with --privileged (CAP_BPF, CAP_NET_ADMIN)")
            .code(4);
        }
        if error.kind() == ErrorKind::AlreadyExists {
            return EngineError::new(what, "the name is taken").remedy("choose another").code(2);
        }
        crate::lines::complain(said.trim_end());
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        EngineError::new(what, format!("{error} ({last})")).remedy("stderr has the kernel's log").code(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_such_as_the_kernel_takes() {
        assert_eq!(kernel_name("sg_vegas_0123ab").unwrap(), "sg_vegas_0123ab");
        for bad in ["", "sixteen_chars_ab", "Vegas", "a b", "a/b", "größe"] {
            assert!(kernel_name(bad).unwrap_err().contains("15"), "{bad}");
        }
    }

    #[cfg(feature = "bpf")]
    #[test]
    fn releases_are_read_as_distributions_write_them() {
        use super::with_bpf::version;
        assert_eq!(version("6.18.44-fc-v595"), Some((6, 18)));
        assert_eq!(version("6.1.0-56-amd64"), Some((6, 1)));
        assert_eq!(version("5.15+"), Some((5, 15)));
        assert_eq!(version("odd"), None);
    }
}
