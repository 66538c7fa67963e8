//! The repository that contains the working directory, and the commits that revisions name.

use std::path::PathBuf;

use super::command::{self, Failed};
use gantry_core::manifest::shown_text;
use gantry_core::options::GitRevision;
use gantry_core::problem::{Problem, did_you_mean};

/// The most tags that an error names.
const NAMED_TAGS: usize = 5;

/// The properties of the repository that are needed here.
#[derive(Debug)]
pub struct Repository {
    /// Whether its history is truncated.
    is_shallow: bool,
    /// The root of the working tree, with links resolved; `None` for a bare repository.
    pub work_tree: Option<PathBuf>,
}

/// A commit that exists.
#[derive(Debug, Clone)]
pub struct Commit {
    pub hash: String,
    /// The name for messages: the revision if it names one commit.
    pub name: String,
    /// Warnings about other meanings of its name.
    pub notices: Vec<Problem>,
}

impl Commit {
    /// A prefix of the hash that identifies the commit.
    pub fn short_hash(&self) -> &str {
        self.hash.get(..12).unwrap_or(&self.hash)
    }
}

impl Repository {
    /// Finds the repository like git does.
    pub async fn find() -> Result<Self, Problem> {
        let answer = command::run(&["rev-parse", "--is-shallow-repository"]).await;
        let answer = answer.map_err(|failed| failed.problem())?;
        let is_shallow = String::from_utf8_lossy(&answer).trim() == "true";
        // The working directory need not be in the working tree: `GIT_WORK_TREE` can name any folder.
        let work_tree = match command::run(&["rev-parse", "--show-toplevel"]).await {
            Ok(answer) => {
                let path = PathBuf::from(command::os(answer.strip_suffix(b"\n").unwrap_or(&answer)));
                Some(path.canonicalize().unwrap_or(path))
            }
            Err(failed) if failed.said.contains("must be run in a work tree") => None,
            Err(failed) => return Err(failed.problem()),
        };
        Ok(Repository { is_shallow, work_tree })
    }

    /// The working directory, relative to the root of the repository.
    pub fn prefix(&self) -> PathBuf {
        let current = std::env::current_dir().and_then(|folder| folder.canonicalize());
        let within = current
            .ok()
            .zip(self.work_tree.as_ref())
            .and_then(|(folder, root)| folder.strip_prefix(root).map(PathBuf::from).ok());
        within.unwrap_or_default()
    }

    /// The commit that a revision names.
    pub async fn commit(&self, revision: &GitRevision) -> Result<Commit, Problem> {
        match revision {
            GitRevision::Commit(revision) => {
                let ResolvedCommit { hash, notice } = self.hash(revision, History::NotNeeded).await?;
                Ok(Commit { hash, name: shown_text(revision), notices: notice.into_iter().collect() })
            }
            GitRevision::MergeBase(one, other) => {
                let (left, right) = (self.hash(one, History::Needed).await?, self.hash(other, History::Needed).await?);
                let answer = match command::run(&["merge-base", &left.hash, &right.hash]).await {
                    Ok(answer) => String::from_utf8_lossy(&answer).trim().to_owned(),
                    // Git prints nothing if there is no merge base.
                    Err(failed) if failed.is_answer() && failed.said.is_empty() => String::new(),
                    Err(failed) => return Err(failed.problem()),
                };
                let name = answer.get(..12).unwrap_or_default().to_owned();
                let notices = [left.notice, right.notice].into_iter().flatten().collect();
                let commit = Commit { name, hash: answer, notices };
                if is_hash(&commit.hash) { Ok(commit) } else { Err(self.no_merge_base(one, other)) }
            }
        }
    }

    /// The commit with this name. A name cannot be an option: [`GitRevision`] rejects any that looks like one.
    async fn hash(&self, revision: &str, history: History) -> Result<ResolvedCommit, Problem> {
        match rev_parse(revision).await {
            Ok(Some(named)) => Ok(named),
            Ok(None) => Err(self.unknown(revision, history).await),
            Err(failed) if failed.said.contains("is ambiguous") => {
                let problem =
                    Problem::new(format!("{} is ambiguous: several objects have this short hash", quoted(revision)));
                Err(problem.help("use a longer hash"))
            }
            Err(failed) if failed.is_answer() && failed.said.contains("Needed a single revision") => {
                match dereferenced(&failed.said) {
                    Some(kind) => Err(Problem::new(format!("{} is a {kind}, not a commit", quoted(revision)))
                        .help("name a commit, a branch or a tag, followed by the path: --target git:REV:PATH")),
                    None => Err(self.unknown(revision, history).await),
                }
            }
            Err(failed) => Err(failed.problem()),
        }
    }

    async fn unknown(&self, revision: &str, history: History) -> Problem {
        let problem = Problem::new(format!("there is no commit {} in this repository", quoted(revision)));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'/' | b'-');
        let is_name = revision.bytes().all(plain) && !revision.starts_with("HEAD");
        let remote = format!("origin/{revision}");
        if is_name && rev_parse(&format!("refs/remotes/{remote}")).await.is_ok_and(|hash| hash.is_some()) {
            return problem.help(format!("did you mean {remote}? This branch does not exist locally"));
        }
        let (how_much, why) = match history {
            History::Needed => ("--unshallow", " and its history"),
            History::NotNeeded => ("--depth=1", ""),
        };
        match (self.is_shallow, is_name, revision.strip_prefix("origin/")) {
            (true, true, Some(branch)) => problem.help(format!(
                "this clone is shallow and lacks it; fetch it{why}: \
                 git fetch {how_much} origin {branch}:refs/remotes/{revision}"
            )),
            (true, true, None) => problem.help(format!(
                "this clone is shallow and lacks it; fetch it{why}: git fetch {how_much} origin {revision}, then use \
                 FETCH_HEAD"
            )),
            (true, false, _) => problem.help(
                "this clone is shallow: its history ends before that commit; fetch more of it: git fetch --deepen=50, \
                 or git fetch --unshallow",
            ),
            (false, ..) => match similar_revision(revision).await {
                Some(name) => problem.help(format!("did you mean {name:?}?")),
                None => match newest_tags().await.as_str() {
                    "" => problem.help("git branch --all and git tag list the available names"),
                    tags => problem.help(format!(
                        "the newest tags are {tags}; git branch --all and git tag list the available names"
                    )),
                },
            },
        }
    }

    fn no_merge_base(&self, one: &str, other: &str) -> Problem {
        let (one, other) = (quoted(one), quoted(other));
        match self.is_shallow {
            true => Problem::new(format!("this clone is shallow and lacks the merge base of {one} and {other}"))
                .help("fetch the rest of the history: git fetch --unshallow"),
            false => Problem::new(format!("{one} and {other} have no commit in common"))
                .help("name the commit to compare with: --target git:REV"),
        }
    }
}

/// Whether the ancestors of a commit are needed, too.
#[derive(Clone, Copy)]
enum History {
    Needed,
    NotNeeded,
}

/// A name, resolved to a commit.
struct ResolvedCommit {
    hash: String,
    /// A warning about other meanings of the name.
    notice: Option<Problem>,
}

/// Resolves a name to a commit; `None` if git prints something else.
async fn rev_parse(revision: &str) -> Result<Option<ResolvedCommit>, Failed> {
    let (answer, warnings) =
        command::run_with_warnings(&["rev-parse", "--verify", &format!("{revision}^{{commit}}")]).await?;
    let hash = String::from_utf8_lossy(&answer).trim().to_owned();
    if !is_hash(&hash) {
        return Ok(None);
    }
    let ambiguous =
        warnings.lines().find_map(|line| line.strip_suffix("' is ambiguous.")?.strip_prefix("warning: refname '"));
    let notice = match ambiguous {
        Some(name) => ambiguity(name).await,
        None => None,
    };
    Ok(Some(ResolvedCommit { hash, notice }))
}

/// The warning for a name that git reports as ambiguous; git uses the first meaning.
async fn ambiguity(name: &str) -> Option<Problem> {
    let names = ["tags", "heads", "remotes"].map(|kind| format!("refs/{kind}/{name}"));
    let arguments: Vec<&str> =
        ["for-each-ref", "--format=%(refname)"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let found = command::run(&arguments).await.ok()?;
    let found = String::from_utf8_lossy(&found).into_owned();
    let found: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| found.lines().any(|line| line == *name)).collect();
    let [taken, others @ ..] = found.as_slice() else { return None };
    let other = others.first()?;
    let message = format!(
        "{} is ambiguous: {} and {}; git uses the first",
        quoted(name),
        shown_text(taken),
        shown_text(&others.join(" and "))
    );
    Some(
        Problem::new(message)
            .help(format!("to compare with the other, use its full name: --target git:{}", shown_text(other))),
    )
}

/// The type of an object that is not a commit, from git's message: `blob`, `tree`.
fn dereferenced(said: &str) -> Option<&str> {
    let kind = said.split_once("dereferences to ")?.1.split_whitespace().next()?;
    ["blob", "tree", "tag"].contains(&kind).then_some(kind)
}

/// The branch or tag with the most similar name.
async fn similar_revision(revision: &str) -> Option<String> {
    let names = command::run(&["for-each-ref", "--format=%(refname:short)"]).await.ok()?;
    let names = String::from_utf8_lossy(&names).into_owned();
    did_you_mean(revision, names.lines()).map(shown_text)
}

/// The names of the newest tags, separated by commas; empty if there are none.
async fn newest_tags() -> String {
    let count = format!("--count={NAMED_TAGS}");
    let arguments = [
        "for-each-ref",
        "--format=%(refname:short)",
        "--sort=-version:refname",
        "--sort=-creatordate",
        &count,
        "refs/tags",
    ];
    let names = command::run(&arguments).await.unwrap_or_default();
    let names = String::from_utf8_lossy(&names).into_owned();
    names.lines().map(shown_text).collect::<Vec<_>>().join(", ")
}

fn is_hash(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn quoted(revision: &str) -> String {
    format!("{:?}", shown_text(revision))
}
