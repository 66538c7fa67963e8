//! A commit of a git repository as a target, and a path in it.

use std::fmt;
use std::str::FromStr;

use super::InvalidOption;

/// The default for a missing side of `A...B`.
const HEAD: &str = "HEAD";

/// `git:REV[:PATH]`: the manifests of a commit stand in for the live objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSpec {
    /// The commit.
    pub revision: GitRevision,
    /// A path from the root of the repository, separated by `/`; `None` for the paths of `-f`.
    pub path: Option<String>,
}

/// The commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitRevision {
    /// Any revision that git accepts: a branch, a tag, `HEAD~1`, a hash.
    Commit(String),
    /// `A...B`: the merge base of the two. Without `B`, it is `HEAD`.
    MergeBase(String, String),
}

impl fmt::Display for GitRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GitRevision::Commit(revision) => f.write_str(revision),
            GitRevision::MergeBase(one, other) if other == HEAD => write!(f, "{one}..."),
            GitRevision::MergeBase(one, other) => write!(f, "{one}...{other}"),
        }
    }
}

impl fmt::Display for GitSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            None => write!(f, "git:{}", self.revision),
            Some(path) if path.is_empty() => write!(f, "git:{}:.", self.revision),
            Some(path) => write!(f, "git:{}:{path}", self.revision),
        }
    }
}

impl GitSpec {
    /// `REV,REV…[:PATH]`: the same path of several commits, each once.
    ///
    /// # Errors
    /// One of them is no revision.
    pub fn parse_several(text: &str) -> Result<Vec<GitSpec>, InvalidOption> {
        let end = end_of_revision(text).unwrap_or(text.len());
        let (revisions, path) = text.split_at(end);
        let mut specs = Vec::new();
        let mut depth = 0_usize;
        let is_between = |character: char| {
            match character {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            character == ',' && depth == 0
        };
        for revision in revisions.split(is_between) {
            let spec: GitSpec = format!("{}{path}", revision.trim()).parse()?;
            if !specs.contains(&spec) {
                specs.push(spec);
            }
        }
        Ok(specs)
    }
}

impl FromStr for GitSpec {
    type Err = InvalidOption;

    fn from_str(text: &str) -> Result<Self, InvalidOption> {
        let (revision, path) = match end_of_revision(text) {
            Some(end) => (&text[..end], Some(&text[end + 1..])),
            None => (text, None),
        };
        let path = path.map(git_path).transpose()?;
        let sides = revision.split_once("...").map(|(one, other)| (one, if other.is_empty() { HEAD } else { other }));
        let revision = match sides {
            Some((one, other)) => {
                GitRevision::MergeBase(git_revision(if one.is_empty() { HEAD } else { one })?, git_revision(other)?)
            }
            None => GitRevision::Commit(git_revision(revision)?),
        };
        Ok(GitSpec { revision, path })
    }
}

/// The byte offset of the colon before the path: the first colon that is not within braces, as in `HEAD@{10:30}`.
fn end_of_revision(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.char_indices().find_map(|(at, character)| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => return Some(at),
            _ => {}
        }
        None
    })
}

/// Checks that git cannot interpret the revision as an option or a range of commits.
fn git_revision(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("a revision is missing after git:".into());
    }
    if text.starts_with('-') {
        return Err(format!("{text:?} is not a revision: a revision does not start with -"));
    }
    if text.contains("..") || text.starts_with('^') {
        return Err(format!(
            "{text:?} is a range of commits, not one commit; use A...B for the merge base of two branches"
        ));
    }
    if text.contains(char::is_control) {
        return Err(format!("{text:?} is not a revision"));
    }
    Ok(text.to_owned())
}

/// Checks and normalizes a path within the repository.
fn git_path(text: &str) -> Result<String, String> {
    let steps: Vec<&str> = text.split('/').filter(|step| !matches!(*step, "" | ".")).collect();
    if text.starts_with('/') || steps.contains(&"..") {
        return Err(format!(
            "the path {text:?} is not relative to the root of the repository; use a path such as deploy/crds"
        ));
    }
    if text.is_empty() {
        return Err("a path is missing after the revision; . is the whole repository".into());
    }
    Ok(steps.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_commits_share_a_path() {
        let texts = |text: &str| -> Vec<String> {
            GitSpec::parse_several(text).unwrap().iter().map(ToString::to_string).collect()
        };
        assert_eq!(texts("v1,v2, v1:a,b.yaml"), ["git:v1:a,b.yaml", "git:v2:a,b.yaml"]);
        assert_eq!(texts("main@{1,2},v1..."), ["git:main@{1,2}", "git:v1..."]);
        assert!(GitSpec::parse_several("v1,").is_err() && GitSpec::parse_several("v1,-x").is_err());
    }

    #[test]
    fn a_commit_is_named_by_a_revision_and_a_path() {
        let parsed = |text: &str| {
            let GitSpec { revision, path } = text.parse().unwrap();
            (revision.to_string(), path)
        };
        let path = |text: &str| Some(text.to_owned());
        assert_eq!(parsed("main"), ("main".into(), None));
        assert_eq!(parsed("v1.2:deploy//crds/"), ("v1.2".into(), path("deploy/crds")));
        assert_eq!(parsed("HEAD~1:./a.yaml"), ("HEAD~1".into(), path("a.yaml")));
        assert_eq!(parsed("main:a:b.yaml"), ("main".into(), path("a:b.yaml")));
        assert_eq!(parsed("main@{10:30}:x"), ("main@{10:30}".into(), path("x")));
        assert_eq!(parsed("main:."), ("main".into(), path("")));
        assert_eq!(parsed("main..."), ("main...".into(), None));
        assert_eq!(parsed("...main"), ("HEAD...main".into(), None));
        assert_eq!(parsed("a...b:x"), ("a...b".into(), path("x")));
        for text in [
            "",
            ":x",
            "main:",
            "-x",
            "--output=x",
            "a..b",
            "^a",
            "a...-b",
            "main:/x",
            "main:../x",
            "main:a/../../x",
            "a\nb",
        ] {
            assert!(text.parse::<GitSpec>().is_err(), "{text}");
        }
    }
}
