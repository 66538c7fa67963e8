//! `exec`: a check by a program that reads the plan and prints its findings.

use std::time::Duration;

use serde_json::{Value, json};

use super::answer::ProgramAnswer;
use super::{CustomCheckIdentity, KindEntry, ProgramEnvironment, input};
use crate::{Check, CheckFuture, CheckResult, Context, CouldNotCheck};
use gantry_core::program::{Program, ProgramError};
use gantry_core::text;
use gantry_deploy::config::ConfigReader;
use gantry_deploy::plan::Plan;

pub const KIND: KindEntry = KindEntry {
    key: "exec",
    summary: "a program that reads the plan as JSON on standard input and prints its findings",
    runs_programs: true,
    configure: |reader| {
        options(reader);
    },
    describe: |config| options(&mut ConfigReader::of_section("", "exec", config)).command.join(" "),
    build: |identity, config, surroundings| {
        let options = options(&mut ConfigReader::of_section("", "exec", config));
        Box::new(Exec { identity, options, surroundings: surroundings.clone() })
    },
};

/// The limit of the answer is this, plus twice the size of the input: a KRM function repeats all objects, indented.
const BASE_LIMIT: usize = 8 << 20;
/// The maximum number of characters of standard error that is shown.
const STDERR_SHOWN: usize = 600;

#[derive(Debug)]
struct ExecCheckOptions {
    command: Vec<String>,
    timeout: Duration,
    function_config: Option<Value>,
}

fn options(reader: &mut ConfigReader<'_>) -> ExecCheckOptions {
    let schema = json!({
        "description": "The program and its arguments. A relative path (with a slash) is relative to the folder of the \
            config file; a plain name is searched for in PATH.",
        "type": "array", "items": {"type": "string"}, "minItems": 1,
    });
    let mut command = Vec::new();
    if let Some(found) = reader.value("command", schema) {
        let value = found.to_value();
        let words = value.as_array().map(|words| words.iter().map(|word| word.as_str().map(str::to_owned)));
        match words.and_then(|words| words.collect::<Option<Vec<String>>>()) {
            Some(words) if words.first().is_some_and(|program| !program.is_empty()) => command = words,
            _ => reader.report_problem("command", found, "is not a list of strings, a program and its arguments"),
        }
    }
    reader.required("command", "name the program: command: [./check, --strict]");
    let timeout = reader.duration("timeout", "How long the program may take.", Duration::from_secs(30));
    let schema = json!({
        "description": "Passed to the program as functionConfig of its input.",
        "type": "object",
    });
    let mut function_config = None;
    if let Some(found) = reader.value("functionConfig", schema) {
        match found.to_value() {
            value @ Value::Object(_) => function_config = Some(value),
            _ => reader.report_problem("functionConfig", found, "is not a mapping"),
        }
    }
    ExecCheckOptions { command, timeout, function_config }
}

/// A check by a program.
struct Exec {
    identity: CustomCheckIdentity,
    options: ExecCheckOptions,
    surroundings: ProgramEnvironment,
}

impl Check for Exec {
    fn run<'a>(&'a self, context: Context<'a>) -> CheckFuture<'a> {
        Box::pin(async move {
            let _permit = self.surroundings.permits.acquire().await;
            let program = Program {
                command: &self.options.command,
                working_directory: &self.surroundings.working_directory,
                environment: &self.surroundings.environment,
                timeout: self.options.timeout,
                limit: BASE_LIMIT + 2 * size(context.plan),
            };
            let (answer, said) = program
                .run(|stdin| Box::pin(input::write(&context, self.options.function_config.as_ref(), stdin)))
                .await;
            let said = if context.redact { String::new() } else { last_line(&said) };
            let answer = answer.map_err(|failure| self.failed(&program, &failure, &said))?;
            let answer = ProgramAnswer::parse(&answer).map_err(|reason| {
                let message = format!("the answer of {} cannot be read: {reason}", self.name(&program));
                let help = format!("for the format of an answer, see: {}", super::DOCS);
                CouldNotCheck { message, help: Some(help_with_output(&help, &said)) }
            })?;
            if !said.is_empty() {
                context.notices.add(format!("{} says: {said}", self.identity.name));
            }
            let violations = answer.into_violations(&self.identity, context.plan, context.redact);
            Ok(CheckResult::checked(violations, Vec::new()))
        })
    }
}

impl Exec {
    fn name(&self, program: &Program<'_>) -> String {
        program.path().display().to_string()
    }

    fn failed(&self, program: &Program<'_>, failure: &ProgramError, said: &str) -> CouldNotCheck {
        let name = self.name(program);
        let at = self.identity.at.as_ref().map(|at| format!(" ({at})")).unwrap_or_default();
        let (message, help) = match failure {
            ProgramError::NotStarted(error) => {
                let help = match error.kind() {
                    std::io::ErrorKind::NotFound => {
                        "check that the program and the interpreter in its first line exist"
                    }
                    std::io::ErrorKind::PermissionDenied => "make it executable: chmod +x",
                    _ => "check that it is a program",
                };
                (format!("{name} cannot be started: {error}"), format!("{help}{at}"))
            }
            ProgramError::TimedOut => (
                format!("{name} did not end within {:?} and was stopped", self.options.timeout),
                format!("make it faster, or raise exec.timeout{at}"),
            ),
            ProgramError::TooLong => {
                let limit = program.limit >> 20;
                (format!("{name} answered more than {limit} MiB and was stopped"), "return only findings".to_owned())
            }
            ProgramError::Ended(status) => {
                let help = "a program that completed its check must exit with 0, whatever it found".to_owned();
                (format!("{name} failed ({status})"), help)
            }
            ProgramError::Broken(error) => {
                (format!("cannot communicate with {name}: {error}"), "run it again".to_owned())
            }
        };
        CouldNotCheck { message, help: Some(help_with_output(&help, said)) }
    }
}

fn help_with_output(help: &str, said: &str) -> String {
    if said.is_empty() { help.to_owned() } else { format!("{help}; it said: {said}") }
}

/// The end of a text, on one line.
fn last_line(text: &str) -> String {
    let text = text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" | ");
    let count = text.chars().count();
    let end: String = text.chars().skip(count.saturating_sub(STDERR_SHOWN)).collect();
    let end = text::sanitize(&end).into_owned();
    if count > STDERR_SHOWN { format!("…{end}") } else { end }
}

/// The size of the plan as JSON, in bytes.
fn size(plan: &Plan) -> usize {
    let live = |change: &gantry_deploy::plan::Change| change.live.as_ref().map_or(0, |live| live.raw.json().len());
    plan.changes.iter().map(|change| change.desired.raw.json().len() + live(change)).sum()
}
