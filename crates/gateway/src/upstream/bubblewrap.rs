//! How a program is started in a sandbox: with `bwrap`, the command of bubblewrap, and `prlimit`, that of util-linux.
//!
//! `bwrap` begins with an empty file system in new namespaces and shows in it what it is told. `prlimit` is run within, where
//! the system counts the processes of the sandbox alone. What either needs and does not find stops the start: a server that
//! is to have a sandbox is never started without one.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use tokio::process::Command;

use super::executable::{self, Executable, SYSTEM};
use super::sandbox::{Home, Network, Reach, Right, Sandbox};

/// The command that limits what a process may use. It is looked for in the sandbox, and so not on the `PATH`.
const PRLIMIT: &str = "/usr/bin/prlimit";

/// Files of the system that programs look up names, zones, libraries and certificates in. Nothing else of `/etc` is shown:
/// it has keys.
const ETC: [&str; 23] = [
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/timezone",
];

/// Files that programs find their way into the network with.
const ETC_NETWORK: [&str; 5] = ["/etc/gai.conf", "/etc/host.conf", "/etc/hosts", "/etc/resolv.conf", "/etc/services"];

/// Where a temporary home is.
const TEMPORARY_HOME: &str = "/home/sandbox";

/// Bytes of a folder in memory: a temporary home, `/tmp`; and of shared memory.
const TEMPORARY_BYTES: &str = "268435456";
const SHARED_BYTES: &str = "67108864";

/// The `PATH` in a sandbox, behind the folders of the program itself.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";

/// How long the trial of a sandbox may take.
const TRIAL: Duration = Duration::from_secs(10);

/// Characters of what `bwrap` says about itself that are shown.
const LONGEST_REASON: usize = 160;

/// A program cannot be started in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SandboxError {
    #[error("a sandbox needs Linux")]
    NoLinux,
    #[error("`bwrap`, which makes the sandbox, is not on the PATH")]
    NoBubblewrap,
    #[error("`{PRLIMIT}`, which limits what is in the sandbox, is not installed")]
    NoLimits,
    #[error("the system refuses the sandbox ({0})")]
    Refused(String),
    #[error("`{0}` is not a program that can be found")]
    NoProgram(String),
    #[error("`sandbox.{field}` names {}, which does not exist", path.display())]
    Missing { field: &'static str, path: PathBuf },
    #[error("`sandbox.folder` is {}, which is not a folder", .0.display())]
    NoFolder(PathBuf),
    #[error("the thread that starts programs has ended")]
    Stopped,
}

impl SandboxError {
    /// What to do about it.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::NoLinux => "run the server in a container, and set `sandbox: false` for it",
            Self::NoBubblewrap => "install bubblewrap 0.8 or newer: `apt-get install bubblewrap`",
            Self::NoLimits => "install util-linux: `apt-get install util-linux`",
            Self::Refused(_) => {
                "allow user namespaces for the gateway's user (see the page Security of the documentation), or run the \
                 server in a container and set `sandbox: false` for it"
            }
            Self::NoProgram(_) => "install it, or write its full path",
            Self::Missing { .. } => "create it, or remove it from the list",
            Self::NoFolder(_) => "create it: `mkdir -p -m 700`",
            Self::Stopped => "start the gateway again",
        }
    }

    /// What is wrong and what to do.
    pub(super) fn whole(&self) -> String {
        format!("{self}; {}", self.remedy())
    }
}

/// What a program is started with.
pub(crate) struct Launch {
    /// The command of bubblewrap.
    bwrap: PathBuf,
    executable: Executable,
}

impl Launch {
    /// Finds the program and what makes the sandbox, where the gateway's `environment` has the `PATH` and the home.
    ///
    /// # Errors
    /// Something is not there.
    pub(crate) fn find(
        sandbox: &Sandbox,
        command: &str,
        env: &BTreeMap<String, String>,
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, SandboxError> {
        if !cfg!(target_os = "linux") {
            return Err(SandboxError::NoLinux);
        }
        let own = environment("PATH").unwrap_or_default();
        let path = env.get("PATH").map_or(own.as_os_str(), OsStr::new);
        let bwrap = executable::find("bwrap", &own, None).ok_or(SandboxError::NoBubblewrap)?;
        if !Path::new(PRLIMIT).is_file() {
            return Err(SandboxError::NoLimits);
        }
        for (path, right) in &sandbox.paths {
            if !path.exists() {
                let field = if *right == Right::Read { "read" } else { "write" };
                return Err(SandboxError::Missing { field, path: path.clone() });
            }
        }
        let cwd = match &sandbox.home {
            Home::Kept(folder) if !folder.is_dir() => return Err(SandboxError::NoFolder(folder.clone())),
            Home::Kept(folder) => Some(folder.as_path()),
            Home::Temporary => None,
        };
        let file = executable::find(command, path, cwd).ok_or_else(|| SandboxError::NoProgram(command.to_owned()))?;
        // A service may be started without the variable, and has a home all the same.
        let home = environment("HOME").map(PathBuf::from).or_else(std::env::home_dir);
        let executable = Executable::of(&file, path, home.as_deref(), &[&sandbox.configuration]);
        Ok(Self { bwrap, executable })
    }

    /// What the sandbox lets through.
    pub(crate) fn reach(&self, sandbox: &Sandbox) -> Reach {
        sandbox.reach(&self.executable.needs.iter().cloned().collect::<Vec<_>>())
    }

    /// Whether what is at `path` can be seen by the program.
    pub(crate) fn shows(&self, sandbox: &Sandbox, path: &Path) -> bool {
        let of_program = self.executable.needs.iter().map(PathBuf::as_path);
        let mut shown = SYSTEM.iter().chain(&ETC).map(Path::new).chain(of_program);
        sandbox.shows(path) || shown.any(|shown| path.starts_with(shown))
    }

    /// Makes such a sandbox once and starts nothing of the server in it. A trial that went well is not made again.
    ///
    /// # Errors
    /// The system refuses it, with what `bwrap` says.
    pub(crate) async fn try_out(&self, sandbox: &Sandbox) -> Result<(), SandboxError> {
        static DONE: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];
        let done = &DONE[usize::from(sandbox.network == Network::OfTheMachine)];
        if done.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut arguments = namespaces(sandbox.network);
        system(sandbox.network, &mut arguments);
        put(&mut arguments, &["--", PRLIMIT, "--version"]);
        let mut trial = Command::new(&self.bwrap);
        trial.args(arguments).env_clear().stdin(Stdio::null()).kill_on_drop(true);
        let refused = |reason: &str| {
            let reason = reason.lines().next().unwrap_or("it gives no reason").trim();
            SandboxError::Refused(reason.chars().take(LONGEST_REASON).collect())
        };
        match tokio::time::timeout(TRIAL, trial.output()).await {
            Err(_) => Err(refused("it does not end")),
            Ok(Err(error)) => Err(refused(&error.to_string())),
            Ok(Ok(output)) if !output.status.success() => Err(refused(&String::from_utf8_lossy(&output.stderr))),
            Ok(Ok(_)) => {
                done.store(true, Ordering::Release);
                Ok(())
            }
        }
    }

    /// The command that starts the program, and all of its environment: that of its own entry, and what says where it is.
    pub(super) fn command(
        &self,
        sandbox: &Sandbox,
        args: &[String],
        env: &BTreeMap<String, String>,
    ) -> (Command, BTreeMap<OsString, OsString>) {
        let mut command = Command::new(&self.bwrap);
        command.args(self.arguments(sandbox, args));
        let home = match &sandbox.home {
            Home::Temporary => OsString::from(TEMPORARY_HOME),
            Home::Kept(folder) => folder.clone().into(),
        };
        let folders = self.executable.folders.iter().map(|folder| folder.as_os_str());
        let path = folders.chain([OsStr::new(PATH)]).collect::<Vec<_>>().join(OsStr::new(":"));
        let places = [("HOME".into(), home), ("PATH".into(), path)];
        (command, places.into_iter().chain(env.iter().map(|(name, value)| (name.into(), value.into()))).collect())
    }

    /// The arguments of `bwrap`.
    fn arguments(&self, sandbox: &Sandbox, args: &[String]) -> Vec<OsString> {
        let mut arguments = namespaces(sandbox.network);
        put(&mut arguments, &["--die-with-parent"]);
        system(sandbox.network, &mut arguments);
        put(&mut arguments, &["--size", SHARED_BYTES, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]);
        put(&mut arguments, &["--size", TEMPORARY_BYTES, "--tmpfs", "/tmp"]);
        // What is within another path comes behind it, and so holds there.
        let mut shown: BTreeMap<&Path, Right> = BTreeMap::new();
        shown.extend(self.executable.needs.iter().map(|path| (path.as_path(), Right::Read)));
        shown.extend(sandbox.paths.iter().map(|(path, right)| (path.as_path(), *right)));
        let home = match &sandbox.home {
            Home::Temporary => {
                put(&mut arguments, &["--size", TEMPORARY_BYTES, "--tmpfs", TEMPORARY_HOME]);
                Path::new(TEMPORARY_HOME)
            }
            Home::Kept(folder) => {
                shown.insert(folder, Right::Write);
                folder
            }
        };
        for (path, right) in shown {
            let way = if right == Right::Read { "--ro-bind" } else { "--bind" };
            arguments.extend([OsString::from(way), path.into(), path.into()]);
        }
        put(&mut arguments, &["--remount-ro", "/", "--chdir"]);
        arguments.push(home.into());
        put(&mut arguments, &["--", PRLIMIT]);
        let limits = [("data", sandbox.memory.bytes()), ("nproc", sandbox.processes.into()), ("core", 0)];
        arguments.extend(limits.map(|(name, most)| format!("--{name}={most}").into()));
        put(&mut arguments, &["--"]);
        arguments.push(self.executable.file.clone().into());
        arguments.extend(args.iter().map(Into::into));
        arguments
    }
}

fn put(arguments: &mut Vec<OsString>, texts: &[&str]) {
    arguments.extend(texts.iter().map(OsString::from));
}

/// New namespaces and no rights: what is in them cannot make others.
fn namespaces(network: Network) -> Vec<OsString> {
    let mut arguments = Vec::new();
    let unshared = ["user", "ipc", "pid", "uts", "cgroup-try"].map(|name| format!("--unshare-{name}").into());
    arguments.extend(unshared);
    if network == Network::None {
        put(&mut arguments, &["--unshare-net"]);
    }
    put(&mut arguments, &["--disable-userns", "--cap-drop", "ALL", "--new-session", "--hostname", "sandbox"]);
    arguments
}

/// The folders of the system, for reading, and those that are made anew.
fn system(network: Network, arguments: &mut Vec<OsString>) {
    let of_network: &[&str] = if network == Network::OfTheMachine { &ETC_NETWORK } else { &[] };
    for path in SYSTEM.iter().chain(&ETC).chain(of_network) {
        put(arguments, &["--ro-bind-try", path, path]);
    }
    put(arguments, &["--proc", "/proc", "--dev", "/dev"]);
}

/// Does `start` on a thread that lasts as long as this process. `bwrap` ends what it has started when the thread ends that
/// has started `bwrap`, and those of the runtime come and go.
///
/// # Errors
/// There is no such thread any more.
pub(super) fn on_lasting_thread<T: Send + 'static>(
    start: impl FnOnce() -> T + Send + 'static,
) -> Result<T, SandboxError> {
    type Work = Box<dyn FnOnce() + Send>;
    static THREAD: OnceLock<Option<mpsc::Sender<Work>>> = OnceLock::new();
    let thread = THREAD.get_or_init(|| {
        let (works, waiting) = mpsc::channel::<Work>();
        let named = std::thread::Builder::new().name("sandboxes".to_owned());
        named.spawn(move || waiting.into_iter().for_each(|work| work())).ok().map(|_| works)
    });
    let (done, result) = mpsc::sync_channel(1);
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| SandboxError::Stopped)?;
    let work = move || {
        let _entered = runtime.enter();
        let _ = done.send(start());
    };
    thread.as_ref().and_then(|thread| thread.send(Box::new(work)).ok()).ok_or(SandboxError::Stopped)?;
    result.recv().map_err(|_| SandboxError::Stopped)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::config::file::GatewayConfig;
    use crate::upstream::config::{Confinement, Target};

    /// The sandbox of the server `a` of a configuration in `/conf`.
    fn sandbox(text: &str) -> Sandbox {
        let config = GatewayConfig::parse(text, Path::new("/conf"), &|_| Some("/from/environment".to_owned())).unwrap();
        match &config.upstreams["a"].target {
            Target::Stdio { confinement: Confinement::Sandbox(sandbox), .. } => (**sandbox).clone(),
            other => panic!("{other:?}"),
        }
    }

    fn launch(needs: &[&str]) -> Launch {
        let executable = Executable {
            file: PathBuf::from("/opt/node/bin/node"),
            needs: needs.iter().map(PathBuf::from).collect(),
            folders: vec![PathBuf::from("/opt/node/bin")],
        };
        Launch { bwrap: PathBuf::from("/usr/bin/bwrap"), executable }
    }

    /// The arguments, an option with its values a line.
    fn lines(arguments: &[OsString]) -> String {
        let mut text = String::new();
        for argument in arguments {
            let argument = argument.to_str().unwrap();
            let begins = argument.starts_with("--") || text.ends_with("--");
            text.push_str(if text.is_empty() {
                ""
            } else if begins {
                "\n"
            } else {
                " "
            });
            text.push_str(argument);
        }
        text
    }

    #[test]
    fn everything_that_a_sandbox_lets_through_is_in_its_arguments() {
        let sandbox = sandbox(
            "upstreams: {a: {command: node, args: [/srv/s.js], sandbox: {network: true, read: [/srv, '${env:X}/a'], \
             write: [/srv/data, ../shared], folder: own/a, memory: 512MiB, processes: 64}}}",
        );
        let arguments = launch(&["/opt/node"]).arguments(&sandbox, &["/srv/s.js".to_owned(), "--flag".to_owned()]);
        insta::assert_snapshot!(lines(&arguments), @r"
        --unshare-user
        --unshare-ipc
        --unshare-pid
        --unshare-uts
        --unshare-cgroup-try
        --disable-userns
        --cap-drop ALL
        --new-session
        --hostname sandbox
        --die-with-parent
        --ro-bind-try /usr /usr
        --ro-bind-try /bin /bin
        --ro-bind-try /sbin /sbin
        --ro-bind-try /lib /lib
        --ro-bind-try /lib32 /lib32
        --ro-bind-try /lib64 /lib64
        --ro-bind-try /etc/alternatives /etc/alternatives
        --ro-bind-try /etc/ca-certificates /etc/ca-certificates
        --ro-bind-try /etc/crypto-policies /etc/crypto-policies
        --ro-bind-try /etc/fonts /etc/fonts
        --ro-bind-try /etc/group /etc/group
        --ro-bind-try /etc/ld.so.cache /etc/ld.so.cache
        --ro-bind-try /etc/ld.so.conf /etc/ld.so.conf
        --ro-bind-try /etc/ld.so.conf.d /etc/ld.so.conf.d
        --ro-bind-try /etc/locale.alias /etc/locale.alias
        --ro-bind-try /etc/localtime /etc/localtime
        --ro-bind-try /etc/magic /etc/magic
        --ro-bind-try /etc/mime.types /etc/mime.types
        --ro-bind-try /etc/nsswitch.conf /etc/nsswitch.conf
        --ro-bind-try /etc/os-release /etc/os-release
        --ro-bind-try /etc/passwd /etc/passwd
        --ro-bind-try /etc/pki/ca-trust /etc/pki/ca-trust
        --ro-bind-try /etc/pki/tls/cert.pem /etc/pki/tls/cert.pem
        --ro-bind-try /etc/pki/tls/certs /etc/pki/tls/certs
        --ro-bind-try /etc/pki/tls/openssl.cnf /etc/pki/tls/openssl.cnf
        --ro-bind-try /etc/protocols /etc/protocols
        --ro-bind-try /etc/ssl/certs /etc/ssl/certs
        --ro-bind-try /etc/ssl/openssl.cnf /etc/ssl/openssl.cnf
        --ro-bind-try /etc/timezone /etc/timezone
        --ro-bind-try /etc/gai.conf /etc/gai.conf
        --ro-bind-try /etc/host.conf /etc/host.conf
        --ro-bind-try /etc/hosts /etc/hosts
        --ro-bind-try /etc/resolv.conf /etc/resolv.conf
        --ro-bind-try /etc/services /etc/services
        --proc /proc
        --dev /dev
        --size 67108864
        --tmpfs /dev/shm
        --remount-ro /dev
        --size 268435456
        --tmpfs /tmp
        --bind /conf/own/a /conf/own/a
        --ro-bind /from/environment/a /from/environment/a
        --ro-bind /opt/node /opt/node
        --bind /shared /shared
        --ro-bind /srv /srv
        --bind /srv/data /srv/data
        --remount-ro /
        --chdir /conf/own/a
        --
        /usr/bin/prlimit
        --data=536870912
        --nproc=64
        --core=0
        --
        /opt/node/bin/node /srv/s.js
        --flag
        ");
    }

    #[test]
    fn a_sandbox_of_which_nothing_is_said_lets_nothing_through() {
        let sandbox = sandbox("upstreams: {a: {command: node, sandbox: true}}");
        let launch = launch(&[]);
        let arguments = lines(&launch.arguments(&sandbox, &[]));
        let of_system = |line: &&str| !line.starts_with("--ro-bind-try");
        insta::assert_snapshot!(arguments.lines().filter(of_system).collect::<Vec<_>>().join("\n"), @r"
        --unshare-user
        --unshare-ipc
        --unshare-pid
        --unshare-uts
        --unshare-cgroup-try
        --unshare-net
        --disable-userns
        --cap-drop ALL
        --new-session
        --hostname sandbox
        --die-with-parent
        --proc /proc
        --dev /dev
        --size 67108864
        --tmpfs /dev/shm
        --remount-ro /dev
        --size 268435456
        --tmpfs /tmp
        --size 268435456
        --tmpfs /home/sandbox
        --remount-ro /
        --chdir /home/sandbox
        --
        /usr/bin/prlimit
        --data=1073741824
        --nproc=128
        --core=0
        --
        /opt/node/bin/node
        ");
        let env = BTreeMap::from([("TOKEN".to_owned(), "t".to_owned())]);
        let (_, env) = launch.command(&sandbox, &[], &env);
        insta::assert_snapshot!(format!("{env:?}"), @r#"{"HOME": "/home/sandbox", "PATH": "/opt/node/bin:/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", "TOKEN": "t"}"#);
        insta::assert_snapshot!(launch.reach(&sandbox), @"in a sandbox: no network; reads the system; home in memory; 1 GiB a process, 128 processes");
    }

    #[test]
    fn what_is_missing_is_named_with_what_to_do() {
        let sandbox = sandbox("upstreams: {a: {command: node, sandbox: {read: [/no/such/path]}}}");
        let nothing = |_: &str| None;
        let env = BTreeMap::new();
        let found = Launch::find(&sandbox, "no-such-program", &env, &nothing).err().unwrap();
        let shown = found.whole();
        // Which of the two it is depends on the machine.
        assert!(shown.contains("bubblewrap") || shown.contains("/no/such/path"), "{shown}");
    }
}
