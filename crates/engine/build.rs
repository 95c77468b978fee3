//! Compiles the congestion controls for the kernel, if they are wanted.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let wanted = std::env::var_os("CARGO_FEATURE_BPF").is_some();
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-changed=bpf");
    if !(wanted && linux) {
        return;
    }
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let object = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("vegas.bpf.o");
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    // -g for the type information (BTF) by which kernel types are found; bpfel: x86-64 and arm64 are
    // little-endian. The type information names its source by a path, which is independent of the build
    // folder.
    let outcome = Command::new(&clang)
        .args(["-target", "bpfel", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-c"])
        .arg(format!("-ffile-prefix-map={here}=."))
        .arg("bpf/vegas.bpf.c")
        .arg("-o")
        .arg(object)
        .status();
    match outcome {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} did not compile bpf/vegas.bpf.c ({status})"),
        Err(error) => panic!(
            "{clang}: {error}; install clang (Debian, Ubuntu: apt-get install clang), name one in CLANG, or build \
             without the feature bpf"
        ),
    }
}
