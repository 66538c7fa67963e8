//! What a report shows to people, apart from the markup: the base of the human report, Markdown, HTML and plain texts.
//!
//! ```text
//! causes    findings with the same cause as one
//! groups    what is shown together
//! phrases   what a finding says
//! flow      objects in one line
//! excerpt   the line that a finding points to, and positions in long lines
//! harm      the objects that suffer
//! library   what a bump of a library changes as one
//! presets   the verdict of each preset
//! counts    how many, and how many of them are shown
//! operators what OLM installs
//! overview  many clusters side by side
//! verdict   the last line
//! ```

pub mod causes;
pub mod counts;
pub mod excerpt;
pub mod flow;
pub mod groups;
pub mod harm;
pub mod library;
mod line_index;
pub mod operators;
pub mod overview;
pub mod phrases;
pub mod presets;
pub mod verdict;

use std::sync::Arc;

pub use line_index::LineIndex;

/// The lines of the files that findings and problems point to.
pub trait Excerpts {
    /// A line, counted from 1, without its line break. `None` if the file or the line is unavailable.
    fn line(&self, file: &str, line: usize) -> Option<&str>;

    /// The index of a long line, kept for the next finding in it. `None` if the line is short, or no index is kept.
    fn index(&self, _file: &str, _line: usize) -> Option<Arc<LineIndex>> {
        None
    }
}

/// The command of the report, which determines the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportPurpose {
    /// `gantry deploy`.
    Deploy,
    /// `gantry delete`.
    Delete,
    /// `--dry-run` of deploy or delete.
    DryRun,
    /// `gantry check`.
    Check,
    /// `gantry diff`.
    Diff,
}
