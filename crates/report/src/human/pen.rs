//! A writer with colours and line wrapping.

use std::io::{self, Write};

use super::HumanOptions;
use gantry_core::finding::Severity;
use gantry_core::text;
use gantry_core::ui::color::{Paint, TextRole};

pub struct Pen<'a> {
    pub paint: Paint,
    pub width: usize,
    pub wraps_titles: bool,
    /// Whether anything was written: a blank line separates, but does not begin.
    pub begun: bool,
    is_other_cluster: bool,
    has_kubectl: bool,
    out: &'a mut dyn Write,
}

impl<'a> Pen<'a> {
    pub fn new(options: &HumanOptions, out: &'a mut dyn Write) -> Self {
        let HumanOptions { color, width, wraps_titles, is_other_cluster, .. } = *options;
        Pen { paint: Paint::new(color), width, wraps_titles, begun: false, is_other_cluster, has_kubectl: false, out }
    }

    /// Writes one line of text that is already sanitized.
    pub fn line(&mut self, line: &str) -> io::Result<()> {
        self.begun = true;
        self.has_kubectl |= line.contains("kubectl ");
        writeln!(self.out, "{}", line.trim_end())
    }

    /// What commands of kubectl above need so that they use the cluster of this run.
    pub fn cluster_of_kubectl(&self) -> Option<&'static str> {
        let is_needed = self.has_kubectl && self.is_other_cluster;
        is_needed.then_some(
            "Give kubectl the same --context and --kubeconfig as gantry, or the other flags that name its cluster.",
        )
    }

    /// A blank line, if there is something to separate from.
    pub fn blank(&mut self) -> io::Result<()> {
        if self.begun { writeln!(self.out) } else { Ok(()) }
    }

    /// Writes text after a prefix, wrapped at the width. Further lines are indented by the width of the prefix, which
    /// is `columns`, because the prefix may contain colour codes.
    pub fn wrapped(&mut self, prefix: &str, columns: usize, text: &str) -> io::Result<()> {
        // On a very narrow terminal do not wrap: the terminal does it better.
        let room = self.width.saturating_sub(columns).max(40);
        for (index, line) in text::wrap(text, room).into_iter().enumerate() {
            match index {
                0 => self.line(&format!("{prefix}{line}"))?,
                _ => self.line(&format!("{}{line}", " ".repeat(columns)))?,
            }
        }
        Ok(())
    }

    /// Writes items after a prefix, separated by commas and wrapped only between items.
    pub fn listed(&mut self, prefix: &str, columns: usize, items: &[String]) -> io::Result<()> {
        let room = self.width.saturating_sub(columns).max(40);
        let mut lines = vec![String::new()];
        for (index, item) in items.iter().enumerate() {
            let item = if index + 1 < items.len() { format!("{item},") } else { item.clone() };
            match lines.last_mut() {
                Some(line) if line.is_empty() => line.push_str(&item),
                Some(line) if text::width(line) + 1 + text::width(&item) <= room => line.push_str(&format!(" {item}")),
                _ => lines.push(item),
            }
        }
        for (index, line) in lines.iter().enumerate() {
            match index {
                0 => self.line(&format!("{prefix}{line}"))?,
                _ => self.line(&format!("{}{line}", " ".repeat(columns)))?,
            }
        }
        Ok(())
    }

    /// `  --> file:line:column`, with the arrow aligned to the excerpt that follows.
    pub fn write_arrow(&mut self, gutter: usize, place: &str) -> io::Result<()> {
        let arrow = self.paint.text(TextRole::Frame, "-->");
        self.line(&format!("{}{arrow} {place}", " ".repeat(gutter)))
    }
}

/// The style of a severity.
pub fn severity_role(severity: Severity) -> TextRole {
    match severity {
        Severity::Error => TextRole::Error,
        Severity::Warning => TextRole::Warning,
        Severity::Info => TextRole::Info,
        Severity::Waived | Severity::Known => TextRole::Faint,
    }
}

/// `1 error, 2 warnings`: the severities that occur, the worst first.
pub fn severities(found: impl Iterator<Item = Severity>) -> String {
    let mut counts = [0_usize; 5];
    for severity in found {
        counts[severity as usize] += 1;
    }
    let [errors, warnings, infos, waived, known] = counts;
    let mut words = Vec::new();
    for (number, word) in [(errors, "error"), (warnings, "warning"), (infos, "info")] {
        if number > 0 {
            words.push(text::count(number, word));
        }
    }
    for (number, word) in [(waived, "waived"), (known, "known")] {
        if number > 0 {
            words.push(format!("{number} {word}"));
        }
    }
    words.join(", ")
}
