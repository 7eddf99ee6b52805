//! Programs of a few operations, above the tensor API, as a user writes them: plain Burn with autotune and fusion against
//! burn-deterministic.
//!
//! Each side is a process, which keeps what it has compiled and tuned from one program to the next. The two take turns
//! as standard input tells them.

mod works;

use crate::agreement::{Agreement, disagreement};
use crate::measure::{elapsed, medians};
use crate::side::{EmptyFolder, Side};
use crate::table::Table;
use anyhow::{Context, Result, ensure};
use burn::prelude::*;
use burn::tensor::TensorData;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;
use works::{Program, WORKS};

const SEED: u64 = 812;

/// The processes of both sides.
#[derive(Default)]
pub struct Programs(Option<[Server; 2]>);

impl Programs {
    /// Adds the times of the programs that `table` wants.
    pub fn compare(&mut self, table: &mut Table, samples: usize) -> Result<()> {
        for (name, _) in WORKS {
            if !table.wants(name) {
                continue;
            }
            eprintln!("{name}..");
            let servers = match &mut self.0 {
                Some(servers) => servers,
                none => none.insert([Server::start(Side::Burn)?, Server::start(Side::Here)?]),
            };
            let [burn, here] = &mut *servers;
            let results = match burn.results(name).and_then(|of_burn| Ok([of_burn, here.results(name)?])) {
                Ok(results) => results,
                Err(error) => {
                    // As where a device lacks a type: the other rows can be measured.
                    table.not_comparable(name, error.to_string());
                    self.0 = None;
                    continue;
                }
            };
            if let Some(disagreement) = disagreement(Agreement::Elements, &results) {
                table.not_comparable(name, disagreement);
                continue;
            }
            let mut failure = None;
            let times = medians(samples, |way, runs| {
                servers[way].time(runs).unwrap_or_else(|error| {
                    failure = Some(error);
                    Duration::MAX / 2
                })
            });
            if let Some(failure) = failure {
                return Err(failure);
            }
            table.operation(name, times, None);
        }
        Ok(())
    }
}

/// A process of one side.
struct Server {
    side: Side,
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    _caches: EmptyFolder,
}

impl Server {
    fn start(side: Side) -> Result<Self> {
        let caches = EmptyFolder::new()?;
        let mut command = side.command("--serve", &caches)?;
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("starting a side's process")?;
        let requests = process.stdin.take().context("its input is a pipe")?;
        let answers = BufReader::new(process.stdout.take().context("its output is a pipe")?);
        Ok(Self { side, process, requests, answers, _caches: caches })
    }

    /// Prepares the program `name` and runs it once.
    fn results(&mut self, name: &str) -> Result<Vec<TensorData>> {
        let answer = self.ask(name)?;
        // A tensor's values, a semicolon after each tensor.
        answer
            .split_terminator(';')
            .map(|values| {
                let values = values.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
                Ok(TensorData::from(values.as_slice()))
            })
            .collect()
    }

    /// How long so many runs of the program take.
    fn time(&mut self, runs: u32) -> Result<Duration> {
        let seconds = self.ask(&runs.to_string())?.trim().parse()?;
        Ok(Duration::from_secs_f64(seconds))
    }

    fn ask(&mut self, request: &str) -> Result<String> {
        writeln!(self.requests, "{request}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        ensure!(answer.ends_with('\n'), "the process of `{}` ended at `{request}`", self.side.name());
        Ok(answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Answers [`Server`] until the input ends.
pub fn serve(side: Side) -> Result<()> {
    let device = side.enter(SEED)?;
    let mut program: Option<Program> = None;
    for request in std::io::stdin().lines() {
        let request = request?;
        let answer = match request.parse::<u32>() {
            Ok(runs) => {
                let program = program.as_ref().context("a program's name comes before its runs")?;
                time(program, runs, &device)?.as_secs_f64().to_string()
            }
            Err(_) => {
                // The last one's memory first.
                program = None;
                device.memory_cleanup();
                let (_, prepare) =
                    WORKS.iter().find(|(name, _)| *name == request).with_context(|| format!("no `{request}`"))?;
                results(program.insert(prepare(&device)))
            }
        };
        println!("{answer}");
    }
    Ok(())
}

/// Waits for each run, so that no result is dropped before it is computed: fusion would leave it out.
fn time(program: &Program, runs: u32, device: &Device) -> Result<Duration> {
    let mut outcome = Ok(());
    let time = elapsed(|| {
        for _ in 0..runs {
            let results = program();
            outcome = device.sync();
            drop(results);
        }
    });
    outcome?;
    Ok(time)
}

fn results(program: &Program) -> String {
    let mut answer = String::new();
    for result in program() {
        for value in result.values() {
            answer += &value.to_string();
            answer.push(' ');
        }
        answer.push(';');
    }
    answer
}
