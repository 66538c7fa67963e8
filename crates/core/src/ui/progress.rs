//! Progress on stderr during long operations: reading, checking, applying, waiting.
//!
//! Stages are shown only on a terminal, because spinners are useless in a log file. Without a terminal, every call
//! costs one branch, so callers can report each object. A finished stage is erased from the screen. In a log file, only
//! waits have lines.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::text;

/// The maximum length of a note in characters, so progress stays on one line.
const LONGEST_NOTE: usize = 60;
/// The template key for the lines below.
const BELOW: &str = "below";

/// Creates stages, which show nothing unless there is a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressDisplay {
    /// Stages are drawn on a terminal.
    Drawn,
    /// Waits are logged line by line.
    Logged,
    /// Nothing is shown.
    Hidden,
}

impl ProgressDisplay {
    /// The display for standard error: `is_quiet` wins over everything else.
    pub fn new(is_terminal: bool, is_quiet: bool) -> Self {
        match (is_terminal, is_quiet) {
            (_, true) => ProgressDisplay::Hidden,
            (true, false) => ProgressDisplay::Drawn,
            (false, false) => ProgressDisplay::Logged,
        }
    }

    /// Whether waits are logged line by line.
    pub fn is_logged(self) -> bool {
        self == ProgressDisplay::Logged
    }

    /// Whether anything shows what is awaited, so that it is worth finding out.
    pub fn shows_waits(self) -> bool {
        self != ProgressDisplay::Hidden
    }

    /// Starts a stage, for example `reading live objects`. When it is dropped, it ends and its line is erased.
    pub fn stage(&self, what: &str, total: Option<usize>) -> ProgressStage {
        if *self != ProgressDisplay::Drawn {
            return ProgressStage { bar: None, below: Arc::default() };
        }
        let bar = ProgressBar::with_draw_target(total.map(|total| total as u64), ProgressDrawTarget::stderr());
        let below = Arc::default();
        bar.set_style(style(total.is_some(), &below));
        bar.set_prefix(text::sanitize(what).into_owned());
        // The spinner turns during a slow response, so the user can see that gantry does not hang.
        bar.enable_steady_tick(Duration::from_millis(120));
        ProgressStage { bar: Some(bar), below }
    }
}

fn style(counted: bool, below: &StageLines) -> ProgressStyle {
    let below = Arc::clone(below);
    let write_below = move |_: &ProgressState, out: &mut dyn Write| {
        for line in below.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // An error does not matter: the next tick draws the line again.
            let _ = write!(out, "\n  {line}");
        }
    };
    let template = if counted {
        "{spinner} {prefix} {pos}/{len} {wide_msg}{below}"
    } else {
        "{spinner} {prefix} {human_pos} {wide_msg}{below}"
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    style.with_key(BELOW, write_below)
}

/// One stage of the run. It can be shared between threads.
#[derive(Debug)]
pub struct ProgressStage {
    bar: Option<ProgressBar>,
    below: StageLines,
}

/// The lines that are drawn below the line of the stage.
type StageLines = Arc<Mutex<Vec<String>>>;

impl ProgressStage {
    /// Sets the number of finished items, and the total if it is known.
    pub fn set(&self, done: usize, total: Option<usize>) {
        let Some(bar) = &self.bar else { return };
        if let Some(total) = total
            && bar.length() != Some(total as u64)
        {
            bar.set_length(total as u64);
            bar.set_style(style(true, &self.below));
        }
        bar.set_position(done as u64);
    }

    /// Increments the number of finished items.
    pub fn advance(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    /// Shows the current item, for example the name of an object.
    pub fn note(&self, note: &str) {
        if let Some(bar) = &self.bar {
            let note = text::sanitize(note);
            bar.set_message(text::cut(&note, LONGEST_NOTE).into_owned());
        }
    }

    /// Shows other running items below, one per line; an empty list removes the lines.
    pub fn show_below<'l>(&self, lines: impl IntoIterator<Item = &'l str>) {
        if self.bar.is_none() {
            return;
        }
        // A line that wraps would not be erased. The lines are indented by two columns.
        let columns = super::width(true, None).saturating_sub(3);
        let fit = |line: &str| text::cut_to_width(&text::sanitize(line), columns);
        *self.below.lock().unwrap_or_else(PoisonError::into_inner) = lines.into_iter().map(fit).collect();
    }

    /// Runs a function that writes to the terminal, while the stage's line is hidden.
    pub fn aside(&self, write: impl FnOnce()) {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Ends the stage and clears its line, like dropping it.
    pub fn finish(self) {}
}

impl Drop for ProgressStage {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(total: Option<u64>) -> ProgressStage {
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::hidden());
        ProgressStage { bar: Some(bar), below: Arc::default() }
    }

    #[test]
    fn no_progress_is_shown_without_a_terminal() {
        let stage = ProgressDisplay::Logged.stage("reading", Some(3));
        assert!(stage.bar.is_none());
        stage.set(1, Some(3));
        stage.note("x");
        stage.finish();
    }

    #[test]
    fn both_templates_are_valid() {
        for counted in [true, false] {
            let bar = ProgressBar::hidden();
            bar.set_style(style(counted, &Arc::default()));
        }
        assert!(ProgressStyle::with_template("{spinner} {prefix} {pos}/{len} {wide_msg}{below}").is_ok());
        assert!(ProgressStyle::with_template("{spinner} {prefix} {human_pos} {wide_msg}{below}").is_ok());
    }

    #[test]
    fn a_stage_counts_and_learns_its_total_late() {
        let stage = hidden(None);
        stage.set(2, None);
        stage.advance();
        stage.set(4, Some(9));
        let bar = stage.bar.as_ref().expect("made above");
        assert_eq!((bar.position(), bar.length()), (4, Some(9)));
    }

    #[test]
    fn notes_of_a_stage_are_escaped_and_short() {
        let stage = hidden(Some(1));
        stage.note(&format!("\u{1b}[2J{}", "x".repeat(500)));
        let message = stage.bar.as_ref().expect("made above").message();
        assert!(message.starts_with("\\u{1b}[2Jxxx") && message.chars().count() == LONGEST_NOTE, "{message}");
    }

    #[test]
    fn lines_below_a_stage_are_escaped_and_fit_the_width() {
        let stage = hidden(Some(1));
        stage.show_below(["a\u{1b}[2Jb", &"ä".repeat(500)]);
        let lines = stage.below.lock().unwrap().clone();
        assert_eq!(lines[0], "a\\u{1b}[2Jb");
        assert!(text::width(&lines[1]) < super::super::width(true, None) && lines[1].ends_with('…'), "{lines:?}");
    }

    #[test]
    fn a_stage_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<ProgressStage>();
        shared::<ProgressDisplay>();
    }
}
