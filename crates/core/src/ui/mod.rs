//! Terminal output other than the report: colour, progress, a question.
//!
//! Nothing here inspects the process: the program checks the terminal and the environment once at the start and passes
//! the results down. So the library can be embedded, and every decision can be tested.

pub mod color;
pub mod confirm;
pub mod progress;

/// The width, in columns, for output that does not go to a terminal.
pub const PIPED_WIDTH: usize = 100;

/// The width, in columns: that of the terminal, limited to a readable range, or [`PIPED_WIDTH`].
/// `columns` is the variable `COLUMNS`, which counts for output that does not go to a terminal.
pub fn width(is_terminal: bool, columns: Option<&str>) -> usize {
    match terminal_size::terminal_size() {
        Some((terminal_size::Width(columns), _)) if is_terminal => usize::from(columns).clamp(40, 140),
        _ => {
            let columns = columns.and_then(|columns| columns.parse::<usize>().ok());
            columns.map_or(PIPED_WIDTH, |columns| columns.clamp(40, 1000))
        }
    }
}
