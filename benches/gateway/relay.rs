//! The floor of the overhead table: a relay that copies bytes between its client and a child process, and knows nothing. Two
//! threads with plain reads and writes, since nothing that a program can do between two pipes takes less.

use std::io::{Read, Write, stdin, stdout};
use std::process::{Command, Stdio};
use std::thread;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = arguments.split_first().expect("a command to relay to");
    let mut child = Command::new(command)
        .args(rest)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let (to_child, from_child) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
    thread::spawn(move || copy(stdin().lock(), to_child));
    // The standard output of this library is buffered by lines, which each write ends here.
    copy(from_child, stdout().lock());
    let _ = child.kill();
    let _ = child.wait();
}

fn copy(mut from: impl Read, mut to: impl Write) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..length]).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}
