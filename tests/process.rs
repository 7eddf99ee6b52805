//! Programs in processes of their own.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// Names the program that a child process is to run.
const PROGRAM: &str = "BURN_DETERMINISTIC_PROGRAM";

/// The program's arguments, one a line.
const ARGUMENTS: &str = "BURN_DETERMINISTIC_ARGUMENTS";

/// What the backend writes on standard error when a run is not what it should be.
const WARNINGS: [&str; 2] = ["outside the deterministic route", "NOT deterministic"];

/// The program that this process is to run, in a child.
pub fn requested() -> Option<String> {
    std::env::var(PROGRAM).ok()
}

/// The arguments of the program that this process is to run.
pub fn arguments() -> Vec<String> {
    std::env::var(ARGUMENTS).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Hands a value to the process that started this one.
pub fn report(name: &str, value: impl Display) {
    // The test harness leaves its own line open.
    println!("\n{name}: {value}");
}

/// A program to be run in a process of its own.
pub struct Program {
    spelled: String,
    command: Command,
}

impl Program {
    /// One of this suite's programs, or of the repository's examples.
    pub fn new(name: &str) -> Self {
        let mut command = Command::new(suite());
        command.args(["--exact", "program", "--nocapture", "--test-threads=1"]).env(PROGRAM, name);
        Self { spelled: name.to_owned(), command }
    }

    /// With arguments, for a program that has some.
    pub fn arguments(mut self, arguments: &[&str]) -> Self {
        self.spelled.push_str(&format!(" {}", arguments.join(" ")));
        self.command.env(ARGUMENTS, arguments.join("\n"));
        self
    }

    /// With an environment variable of its own.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.spelled.push_str(&format!(" with {name}={}", value.as_ref().display()));
        self.command.env(name, value);
        self
    }

    /// In another working folder.
    pub fn folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Started by a shell, after `script` has run in it.
    pub fn after(self, script: &str) -> Self {
        self.started_by(&["sh", "-c"], script)
    }

    /// As [`after`](Self::after), in namespaces of its own, where the script may mount file systems.
    pub fn unshared(self, script: &str) -> Self {
        self.started_by(&["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"], script)
    }

    fn started_by(self, shell: &[&str], script: &str) -> Self {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).arg(format!("{script} && exec \"$0\" \"$@\""));
        command.arg(self.command.get_program()).args(self.command.get_args());
        command.envs(self.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Self { spelled: format!("{} after `{script}`", self.spelled), command }
    }

    /// Starts the program, to be killed; what it prints can be read as it comes.
    pub fn start(mut self) -> Child {
        let command = self.command.stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().unwrap_or_else(|error| panic!("starting {}: {error}", self.spelled))
    }

    /// Starts the program, to be killed, when nobody reads what it prints.
    pub fn start_silent(mut self) -> Child {
        let command = self.command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap_or_else(|error| panic!("starting {}: {error}", self.spelled))
    }

    /// Runs the program.
    ///
    /// # Panics
    ///
    /// With all it printed, when it fails.
    pub fn run(self) -> Output {
        let (status, output) = self.end();
        assert!(status.success(), "{status}: {output}");
        output
    }

    /// Runs the program, which is to fail by itself.
    ///
    /// # Panics
    ///
    /// With all it printed, when it does not.
    pub fn fail(self) -> Output {
        let (status, output) = self.end();
        assert!(status.code().is_some_and(|code| code != 0), "{status}: {output}");
        output
    }

    fn end(mut self) -> (ExitStatus, Output) {
        let output = self.command.output().unwrap_or_else(|error| panic!("starting {}: {error}", self.spelled));
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let (status, stdout, stderr) = (output.status, text(output.stdout), text(output.stderr));
        (status, Output { spelled: self.spelled, stdout, stderr })
    }
}

fn suite() -> PathBuf {
    std::env::current_exe().expect("the path of this test binary")
}

/// What a program printed.
pub struct Output {
    spelled: String,
    stdout: String,
    stderr: String,
}

impl Output {
    /// A value that the program [reported](report).
    pub fn reported(&self, name: &str) -> &str {
        let mut values = self.stdout.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        values.next_back().unwrap_or_else(|| panic!("no line `{name}: ..` from {self}"))
    }

    /// Requires that the backend complained of nothing.
    pub fn assert_quiet(&self) {
        for warning in WARNINGS {
            assert!(!self.stderr.contains(warning), "a warning from {self}");
        }
    }

    /// The digest of what the program trained, of which the backend must not have complained.
    pub fn digest(&self) -> &str {
        self.assert_quiet();
        self.reported("digest")
    }

    /// Requires the digest of another run.
    pub fn assert_digest(&self, expected: &Output) {
        let (digest, other) = (self.digest(), expected.digest());
        assert!(digest == other, "digests differ\n{digest} of {self}\n{other} of {expected}");
    }

    /// What the program wrote on standard output.
    pub fn stdout(&self) -> &str {
        &self.stdout
    }

    /// What the program wrote on standard error.
    pub fn stderr(&self) -> &str {
        &self.stderr
    }
}

impl Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { spelled, stdout, stderr } = self;
        write!(f, "{spelled}\n--- stdout\n{stdout}--- stderr\n{stderr}---")
    }
}

/// An empty folder that goes away with this value.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("burn-deterministic-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left lies where temporary files lie.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Keeps every core busy as long as it lives.
pub struct Load {
    done: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    pub fn new() -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let cores = thread::available_parallelism().map_or(2, usize::from);
        let busy = || {
            let done = done.clone();
            thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        Self { threads: (0..cores).map(|_| busy()).collect(), done }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that only counts does not panic.
            let _ = thread.join();
        }
    }
}
