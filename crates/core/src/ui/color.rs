//! Decides once whether to use colour, and defines the styles of the output.
//!
//! owo-colors can read the environment itself, but there `FORCE_COLOR` beats `NO_COLOR`, and an override is global.
//! Instead, [`decide`] is a pure function, and its result is passed on as a [`Paint`].

use owo_colors::Style;

use crate::options::ColorChoice;

/// Whether to write colour to a stream: `--color` decides unless it is `auto`, then the environment, then the stream.
///
/// `NO_COLOR` beats `FORCE_COLOR` and `CLICOLOR_FORCE`: a user who sets it cannot read the escapes. An empty variable
/// counts as unset.
pub fn decide(choice: ColorChoice, env: impl Fn(&str) -> Option<String>, is_terminal: bool) -> bool {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    let forced = |name: &str| set(name).is_some_and(|value| value != "0" && value != "false");
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR").is_some() => false,
        ColorChoice::Auto if forced("FORCE_COLOR") || forced("CLICOLOR_FORCE") => true,
        ColorChoice::Auto => is_terminal && set("TERM").as_deref() != Some("dumb"),
    }
}

/// The role of a piece of text, which determines its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextRole {
    /// The word `error`, and what else is red.
    Error,
    /// The word `warning`.
    Warning,
    /// The word `info`, and other notes.
    Info,
    /// What is as it should be.
    Good,
    /// The lines and bars around an excerpt.
    Frame,
    /// A title.
    Heading,
    /// What matters less than the text beside it.
    Faint,
}

/// Applies styles if colour is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    on: bool,
}

impl Paint {
    /// Writes styles if `on`, and otherwise plain text.
    pub fn new(on: bool) -> Self {
        Paint { on }
    }

    /// Whether styles are written.
    pub fn is_on(self) -> bool {
        self.on
    }

    /// `text` in the style of `role`.
    pub fn text(self, role: TextRole, text: &str) -> String {
        if !self.on || text.is_empty() {
            return text.to_owned();
        }
        let style = match role {
            TextRole::Error => Style::new().bright_red().bold(),
            TextRole::Warning => Style::new().yellow().bold(),
            TextRole::Info | TextRole::Frame => Style::new().bright_blue().bold(),
            TextRole::Good => Style::new().green().bold(),
            TextRole::Heading => Style::new().bold(),
            TextRole::Faint => Style::new().dimmed(),
        };
        style.style(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(choice: ColorChoice, variables: &[(&str, &str)], is_terminal: bool) -> bool {
        let env =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| String::from(*value));
        decide(choice, env, is_terminal)
    }

    #[test]
    fn the_flag_beats_the_environment_and_the_stream() {
        assert!(with(ColorChoice::Always, &[("NO_COLOR", "1"), ("TERM", "dumb")], false));
        assert!(!with(ColorChoice::Never, &[("FORCE_COLOR", "1")], true));
    }

    #[test]
    fn auto_follows_the_environment_then_the_stream() {
        let auto = |variables: &[(&str, &str)], is_terminal| with(ColorChoice::Auto, variables, is_terminal);
        assert!(auto(&[], true));
        assert!(!auto(&[], false));
        assert!(!auto(&[("NO_COLOR", "1")], true));
        assert!(auto(&[("NO_COLOR", "")], true), "an empty NO_COLOR counts as unset");
        assert!(auto(&[("FORCE_COLOR", "1")], false));
        assert!(auto(&[("CLICOLOR_FORCE", "1")], false));
        assert!(!auto(&[("FORCE_COLOR", "0")], false));
        assert!(!auto(&[("NO_COLOR", "1"), ("FORCE_COLOR", "1")], true), "NO_COLOR beats FORCE_COLOR");
        assert!(!auto(&[("TERM", "dumb")], true));
        assert!(auto(&[("TERM", "dumb"), ("FORCE_COLOR", "1")], true));
    }

    #[test]
    fn without_colour_text_stays_as_it_is() {
        assert_eq!(Paint::new(false).text(TextRole::Error, "no"), "no");
        let painted = Paint::new(true).text(TextRole::Error, "no");
        assert!(
            painted.starts_with('\u{1b}') && painted.contains("no") && painted.ends_with("\u{1b}[0m"),
            "{painted:?}"
        );
    }
}
