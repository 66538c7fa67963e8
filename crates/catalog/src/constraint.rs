//! The range language of a ClusterExtension's `version`: that of Masterminds/semver v3.5.0.
//!
//! Error texts and results are the library's, including its quirks (`^*` matches only 0.0.0); a test compares them with
//! the library.

use std::cmp::Ordering;
use std::sync::LazyLock;

use gantry_k8s_cel::gotext::quote;
use regex::{Captures, Regex};

use super::error::OlmError;
use super::version::SemanticVersion;
use gantry_k8s_cel::golang::semver::is_digits;

/// The maximum length of a range that the library accepts, in bytes.
const MOST_BYTES: usize = 512;
/// The maximum number of alternatives.
const MOST_GROUPS: usize = 32;
/// The maximum length of a version in a range, in bytes.
const MOST_BYTES_OF_VERSION: usize = 256;

/// The library's pattern of a version in a range; the `|` in its classes is the library's mistake.
const VERSION: &str = r"v?([0-9|xX*]+)(\.[0-9|xX*]+)?(\.[0-9|xX*]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";
/// The operators in the library's order, including the empty one.
const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";
/// What Go's `\s` matches.
const BLANK: &str = r"[\t\n\f\r ]";

static COMPARISON: LazyLock<Regex> = LazyLock::new(|| regex("^S*(O)S*(V)S*$"));
static COMPARISONS: LazyLock<Regex> = LazyLock::new(|| regex("(O)S*(V)"));
static GROUP: LazyLock<Regex> = LazyLock::new(|| regex("^(S*(O)S*(V)S*)((?:S+|,S*)(O)S*(V)S*)*$"));
static HYPHEN: LazyLock<Regex> = LazyLock::new(|| regex("S*(V)S+-S+(V)S*"));

/// A range of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint {
    /// One of the groups must hold.
    groups: Vec<ConstraintGroup>,
}

/// Comparisons that must all hold.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ConstraintGroup {
    comparisons: Vec<ConstraintComparison>,
    /// Whether one of them compares with a pre-release: otherwise no pre-release matches.
    takes_pre_releases: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ConstraintComparison {
    operator: ConstraintOperator,
    number: [u64; 3],
    pre: String,
    open: FirstOpenPart,
}

/// The first part of the version that is missing or a wildcard; all parts after it are open as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstOpenPart {
    Nothing,
    Patch,
    Minor,
    Major,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConstraintOperator {
    Equal,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

impl Constraint {
    /// Parses a range.
    ///
    /// # Errors
    /// The library's text.
    pub fn parse(text: &str) -> Result<Constraint, OlmError> {
        if text.len() > MOST_BYTES {
            return Err(format!("constraint string is too long (max {MOST_BYTES} bytes)").into());
        }
        let text = without_hyphens(text);
        let groups: Vec<&str> = text.split("||").collect();
        if groups.len() > MOST_GROUPS {
            return Err(format!("too many constraint groups (max {MOST_GROUPS})").into());
        }
        Ok(Constraint { groups: groups.into_iter().map(ConstraintGroup::parse).collect::<Result<_, String>>()? })
    }

    /// Whether the range contains the version.
    pub fn matches(&self, version: &SemanticVersion) -> bool {
        self.groups.iter().any(|group| {
            let is_of_interest = !version.is_pre_release() || group.takes_pre_releases;
            is_of_interest && group.comparisons.iter().all(|comparison| comparison.holds(version))
        })
    }

    /// Whether the range pins a single version.
    pub fn is_one_version(&self) -> bool {
        let is_exact = |one: &ConstraintComparison| {
            one.operator == ConstraintOperator::Equal && one.open == FirstOpenPart::Nothing
        };
        matches!(&self.groups[..], [ConstraintGroup { comparisons, .. }] if matches!(&comparisons[..], [one] if is_exact(one)))
    }

    /// Whether the range excludes the version only because it is a pre-release.
    pub fn matches_but_for_pre_release(&self, version: &SemanticVersion) -> bool {
        let holds = |group: &ConstraintGroup| group.comparisons.iter().all(|comparison| comparison.holds(version));
        !self.matches(version) && self.groups.iter().any(holds)
    }
}

impl ConstraintGroup {
    fn parse(text: &str) -> Result<ConstraintGroup, String> {
        if !GROUP.is_match(text) {
            return Err(improper_constraint(text));
        }
        let comparisons: Vec<ConstraintComparison> = COMPARISONS
            .find_iter(text)
            .map(|found| ConstraintComparison::parse(found.as_str()))
            .collect::<Result<_, _>>()?;
        let takes_pre_releases = comparisons.iter().any(|comparison| !comparison.pre.is_empty());
        Ok(ConstraintGroup { comparisons, takes_pre_releases })
    }
}

impl ConstraintComparison {
    fn parse(text: &str) -> Result<ConstraintComparison, String> {
        let found = COMPARISON.captures(text).ok_or_else(|| improper_constraint(text))?;
        let operator = match group(&found, 1) {
            "" | "=" => ConstraintOperator::Equal,
            "!=" => ConstraintOperator::NotEqual,
            ">" => ConstraintOperator::Greater,
            "<" => ConstraintOperator::Less,
            ">=" | "=>" => ConstraintOperator::GreaterOrEqual,
            "<=" | "=<" => ConstraintOperator::LessOrEqual,
            "~" | "~>" => ConstraintOperator::Tilde,
            _ => ConstraintOperator::Caret,
        };
        let parts = [3, 4, 5].map(|at| group(&found, at).trim_start_matches('.'));
        let open = match parts.iter().position(|part| matches!(*part, "" | "x" | "X" | "*")) {
            Some(0) => FirstOpenPart::Major,
            Some(1) => FirstOpenPart::Minor,
            Some(_) => FirstOpenPart::Patch,
            None => FirstOpenPart::Nothing,
        };
        let closed = match open {
            FirstOpenPart::Major => 0,
            FirstOpenPart::Minor => 1,
            FirstOpenPart::Patch => 2,
            FirstOpenPart::Nothing => 3,
        };
        let pre = group(&found, 6);
        // The length of the version that the library builds from it, which the library limits.
        let length = match open {
            FirstOpenPart::Nothing => group(&found, 2).len(),
            _ => parts[..closed].iter().map(|part| part.len() + 1).sum::<usize>() + 2 * (3 - closed) - 1 + pre.len(),
        };
        let failed = || "constraint parser error".to_owned();
        if length > MOST_BYTES_OF_VERSION {
            return Err(failed());
        }
        let mut number = [0; 3];
        for (number, part) in number.iter_mut().zip(&parts[..closed]) {
            *number =
                Some(part).filter(|part| is_digits(part)).and_then(|part| part.parse().ok()).ok_or_else(failed)?;
        }
        let pre = pre.strip_prefix('-').unwrap_or_default();
        if pre.split('.').any(|part| part.len() > 1 && part.starts_with('0') && is_digits(part)) {
            return Err(failed());
        }
        Ok(ConstraintComparison { operator, number, pre: pre.to_owned(), open })
    }

    /// Whether the comparison holds; pre-releases are compared like other versions.
    fn holds(&self, version: &SemanticVersion) -> bool {
        let order = self.order(version);
        match self.operator {
            ConstraintOperator::Equal if self.open == FirstOpenPart::Nothing => order == Ordering::Equal,
            ConstraintOperator::Equal | ConstraintOperator::Tilde => self.holds_tilde(version, order),
            ConstraintOperator::NotEqual => self.holds_not_equal(version, order),
            ConstraintOperator::Greater => self.holds_greater(version, order),
            ConstraintOperator::Less => order == Ordering::Less,
            ConstraintOperator::GreaterOrEqual => order != Ordering::Less,
            ConstraintOperator::LessOrEqual if self.open == FirstOpenPart::Nothing => order != Ordering::Greater,
            ConstraintOperator::LessOrEqual => {
                let [major, minor, _] = self.number;
                version.major < major
                    || version.major == major && (version.minor <= minor || self.open == FirstOpenPart::Minor)
            }
            ConstraintOperator::Caret => self.holds_caret(version, order),
        }
    }

    fn holds_not_equal(&self, version: &SemanticVersion, order: Ordering) -> bool {
        let [major, minor, _] = self.number;
        match self.open {
            FirstOpenPart::Patch | FirstOpenPart::Minor if version.major != major => true,
            FirstOpenPart::Minor => false,
            FirstOpenPart::Patch => {
                version.minor != minor || compare_pre(&version.pre_text(), &self.pre) != Ordering::Equal
            }
            FirstOpenPart::Nothing | FirstOpenPart::Major => order != Ordering::Equal,
        }
    }

    fn holds_greater(&self, version: &SemanticVersion, order: Ordering) -> bool {
        let [major, minor, _] = self.number;
        match self.open {
            FirstOpenPart::Nothing => order == Ordering::Greater,
            _ if version.major != major => version.major > major,
            FirstOpenPart::Minor => false,
            FirstOpenPart::Patch => version.minor > minor,
            FirstOpenPart::Major => order == Ordering::Greater,
        }
    }

    fn holds_tilde(&self, version: &SemanticVersion, order: Ordering) -> bool {
        let [major, minor, _] = self.number;
        if order == Ordering::Less {
            return false;
        }
        // ~0.0.0 matches everything.
        if self.number == [0; 3] && !matches!(self.open, FirstOpenPart::Minor | FirstOpenPart::Patch) {
            return true;
        }
        version.major == major && (version.minor == minor || self.open == FirstOpenPart::Minor)
    }

    fn holds_caret(&self, version: &SemanticVersion, order: Ordering) -> bool {
        let [major, minor, patch] = self.number;
        if order == Ordering::Less || version.major != major {
            return false;
        }
        if major > 0 || self.open == FirstOpenPart::Minor {
            return true;
        }
        if version.minor != minor {
            return false;
        }
        minor > 0 || self.open == FirstOpenPart::Patch || version.patch == patch
    }

    /// The order of the version relative to the version of the comparison.
    fn order(&self, version: &SemanticVersion) -> Ordering {
        [version.major, version.minor, version.patch].cmp(&self.number).then_with(|| {
            let pre = version.pre_text();
            pre.is_empty().cmp(&self.pre.is_empty()).then_with(|| compare_pre(&pre, &self.pre))
        })
    }
}

/// The order of two pre-releases. As in the library, a number that does not fit into 64 bits is compared as a word.
fn compare_pre(one: &str, other: &str) -> Ordering {
    let number = |part: &str| part.parse::<u64>().ok().filter(|_| is_digits(part));
    let (mut ones, mut others) = (one.split('.'), other.split('.'));
    loop {
        let (one, other) = match (ones.next(), others.next()) {
            (None, None) => return Ordering::Equal,
            (one, other) => (one.unwrap_or_default(), other.unwrap_or_default()),
        };
        let order = match (number(one), number(other)) {
            _ if one == other => Ordering::Equal,
            _ if one.is_empty() => Ordering::Less,
            _ if other.is_empty() => Ordering::Greater,
            (None, None) => one.cmp(other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) => one.cmp(&other),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// `1.2 - 1.4` as `>= 1.2, <= 1.4 `.
fn without_hyphens(text: &str) -> String {
    let mut rewritten = text.to_owned();
    for found in HYPHEN.captures_iter(text) {
        let comparisons = format!(">= {}, <= {} ", group(&found, 1), group(&found, 11));
        rewritten = rewritten.replacen(group(&found, 0), &comparisons, 1);
    }
    rewritten
}

/// The pattern with O, V and S replaced by the patterns of operators, versions and whitespace.
fn regex(pattern: &str) -> Regex {
    let parts = pattern.chars().map(|part| match part {
        'O' => OPERATORS.to_owned(),
        'V' => VERSION.to_owned(),
        'S' => BLANK.to_owned(),
        other => other.to_string(),
    });
    // The patterns are constants above; any test would fail on an invalid one.
    Regex::new(&parts.collect::<String>()).expect("a pattern")
}

fn improper_constraint(text: &str) -> String {
    format!("improper constraint: {}", quote(text))
}

fn group<'t>(found: &Captures<'t>, at: usize) -> &'t str {
    found.get(at).map_or("", |found| found.as_str())
}
