//! `scripts/instructions` beside recorded counts, with programs of this test in place of the compiler and of valgrind.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::support::{Files, checkout};

/// The compiler of the recorded counts.
const RECORDED: &str = "rustc 1.95.0 (59807616e 2026-04-14)";

/// Exit code and standard output of the script where the compiler is `compiler`, the one hot function takes `count`
/// instructions, and 1000 are recorded.
fn compared(compiler: &str, count: u64) -> (i32, String) {
    let files = Files::new();
    let program = |name: &str, text: String| {
        let path = files.write(name, format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("bin/rustc", format!("echo '{compiler}'"));
    program("bin/uname", "echo x86_64".to_owned());
    program("bin/valgrind", format!("echo '==7== Collected : {count}' >&2"));
    program("hot", "echo search".to_owned());
    files.write("benches/instructions/counts.txt", format!("{RECORDED}\nsearch 1000\n"));
    files.write("scripts/instructions", fs::read(checkout().join("scripts/instructions")).unwrap());
    let path = format!("{}:{}", files.path("bin").display(), std::env::var("PATH").unwrap());
    let mut script = Command::new("bash");
    script.arg(files.path("scripts/instructions")).arg("./hot").env("PATH", path);
    let output = script.output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn counts_of_the_recorded_compiler_are_compared() {
    let (code, shown) = compared(RECORDED, 1005);
    assert!(code == 0 && shown.contains("same"), "{code}: {shown}");
    let (code, shown) = compared(RECORDED, 1020);
    assert!(code == 1 && shown.contains("more: FAILED"), "{code}: {shown}");
    let (code, shown) = compared(RECORDED, 900);
    assert!(code == 0 && shown.contains("less: record it"), "{code}: {shown}");
}

#[test]
fn counts_of_another_compiler_are_shown_and_neither_pass_nor_fail() {
    // Another build of the same version is another compiler.
    for other in ["rustc 1.96.0 (aaaaaaaaa 2026-06-01)", "rustc 1.95.0 (bbbbbbbbb 2026-04-15)"] {
        for count in [900, 1000, 5000] {
            let (code, shown) = compared(other, count);
            let expected = format!("counts of another compiler ({other}, recorded with {RECORDED}) are not comparable");
            assert!(code == 3 && shown.starts_with(&expected) && shown.contains(&count.to_string()), "{code}: {shown}");
        }
    }
}
