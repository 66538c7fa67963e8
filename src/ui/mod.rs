//! What a person at a terminal meets beside the report: colour, progress, a question.
//!
//! Nothing here looks at the process by itself: whether there is a terminal and what the environment says is asked
//! once, where the program starts, and passed down. So the library can be embedded and every decision can be tested.

pub mod color;
pub mod confirm;
pub mod progress;

/// The width for output that goes to no terminal.
pub const PIPED_WIDTH: usize = 100;

/// How many columns to write for: the terminal's, within what is readable, or [`PIPED_WIDTH`].
pub fn width(is_terminal: bool) -> usize {
    match terminal_size::terminal_size() {
        Some((terminal_size::Width(columns), _)) if is_terminal => usize::from(columns).clamp(40, 140),
        _ => PIPED_WIDTH,
    }
}
