//! A process of a group that ends or hangs: an error in every other one, within the bound of silence.

use super::group::{Member, SILENCE, start_endless};
use std::process::Command;
use std::time::{Duration, Instant};

/// What an error of another process takes to be told, with time for a loaded machine.
const SOON: Duration = Duration::from_secs(8);

/// The errors of the processes that are left, in the order of their ranks.
fn errors(members: Vec<Member>, since: Instant) -> Vec<String> {
    let errors = members.into_iter().map(|member| {
        let reported = member.ends(&["error", "later"]);
        assert!(reported[1].starts_with("this group has ended: "), "{}", reported[1]);
        assert!(reported[1].contains(&reported[0]), "{reported:?}");
        reported[0].clone()
    });
    let errors = errors.collect();
    assert!(since.elapsed() < SILENCE + SOON, "{:?}", since.elapsed());
    errors
}

fn wants(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "{error}\nlacks\n{part}");
    }
}

#[test]
fn a_killed_process_is_named_by_all_others() {
    for killed in [1, 0] {
        let mut members = start_endless(3);
        members[killed].trains(2);
        let since = Instant::now();
        members[killed].child.kill().expect("a process to kill");
        drop(members.remove(killed));
        let errors = errors(members, since);
        for error in &errors {
            wants(error, &[&format!("the connection to rank {killed} (127.0.0.1:"), "has ended"]);
        }
        if killed == 1 {
            wants(&errors[1], &["rank 0 (127.0.0.1:", "has ended the group: "]);
        }
    }
}

#[cfg(unix)]
#[test]
fn a_process_that_hangs_is_named_by_all_others() {
    let mut members = start_endless(3);
    members[1].trains(2);
    let since = Instant::now();
    let id = members[1].child.id().to_string();
    assert!(Command::new("kill").args(["-STOP", &id]).status().expect("the command `kill`").success());
    let hung = members.remove(1);
    for error in errors(members, since) {
        wants(&error, &["rank 1 (127.0.0.1:", "has sent nothing for 2s"]);
    }
    assert!(since.elapsed() >= SILENCE / 2, "a process is given its time");
    drop(hung);
}
