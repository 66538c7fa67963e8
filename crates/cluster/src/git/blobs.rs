//! Reads file contents of a commit from a single `git cat-file` process.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use gantry_core::program::ProgramError;

/// What exists at a path or hash.
#[derive(Debug, PartialEq, Eq)]
pub enum GitObjectContent {
    /// A file that is not longer than the limit.
    File(Vec<u8>),
    TooLong,
    /// All files together are longer than the limit.
    TooMuch,
    /// A folder, with the hash of its tree.
    Folder(String),
    /// The path does not exist, or is a dangling link.
    Nothing,
    /// A link that leads out of the repository, with its destination.
    Outside(String),
    /// The commit refers to this object, but the clone does not contain it.
    Missing,
}

/// A running `git cat-file --batch --follow-symlinks`.
pub struct Blobs {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    max_bytes: usize,
    /// The number of bytes that may still be returned.
    left: u64,
}

/// The maximum total size of the files that are kept in memory, in bytes. A commit can have one large file at many
/// paths.
pub const MAX_BYTES_IN_ALL: u64 = 512 << 20;

/// A request for one object.
#[derive(Debug, Clone)]
pub enum BlobRequest {
    /// By hash.
    Hash(String),
    /// By commit and path; links in the path and at its end are followed. A path with a line break cannot be requested.
    Path { commit: String, path: Vec<u8> },
}

impl BlobRequest {
    fn line(&self) -> Vec<u8> {
        match self {
            BlobRequest::Hash(hash) => format!("{hash}\n").into_bytes(),
            BlobRequest::Path { commit, path } => [commit.as_bytes(), b":", path, b"\n"].concat(),
        }
    }
}

impl Blobs {
    pub const COMMAND: [&'static str; 3] = ["cat-file", "--batch", "--follow-symlinks"];

    /// Contents longer than `max_bytes` bytes, and those after `in_all` bytes, are skipped.
    pub fn new(
        stdin: Option<ChildStdin>,
        stdout: ChildStdout,
        max_bytes: usize,
        in_all: u64,
    ) -> Result<Self, ProgramError> {
        let stdin = stdin.ok_or_else(|| broken("its standard input is missing"))?;
        Ok(Blobs { stdin, stdout: BufReader::with_capacity(1 << 16, stdout), max_bytes, left: in_all })
    }

    /// Reads all of them, and passes each to `take` in order.
    pub async fn read(
        &mut self,
        requests: &[BlobRequest],
        mut take: impl FnMut(usize, GitObjectContent),
    ) -> Result<(), ProgramError> {
        let Blobs { stdin, stdout, max_bytes, left } = self;
        // Git responds while it reads requests, and a pipe's buffer is small, so writing and reading must run
        // concurrently.
        let sending = async {
            for request in requests {
                stdin.write_all(&request.line()).await?;
            }
            stdin.flush().await
        };
        let reading = async {
            for (index, request) in requests.iter().enumerate() {
                let content = content(stdout, request, *max_bytes, *left).await?;
                match &content {
                    GitObjectContent::File(bytes) => *left -= bytes.len() as u64,
                    // A smaller file after it is not read either.
                    GitObjectContent::TooMuch => *left = 0,
                    _ => {}
                }
                take(index, content);
            }
            Ok(())
        };
        tokio::try_join!(sending, reading).map(drop).map_err(ProgramError::Broken)
    }
}

fn broken(message: &str) -> ProgramError {
    ProgramError::Broken(io::Error::other(message.to_owned()))
}

/// Reads one response: `HASH TYPE SIZE`, a line break, the content, a line break; or a status line.
async fn content(
    from: &mut (impl AsyncBufReadExt + Unpin),
    request: &BlobRequest,
    max_bytes: usize,
    left: u64,
) -> io::Result<GitObjectContent> {
    let mut line = Vec::new();
    (&mut *from).take(1 << 16).read_until(b'\n', &mut line).await?;
    let line = String::from_utf8_lossy(line.strip_suffix(b"\n").ok_or_else(|| invalid_answer("it exited early"))?)
        .into_owned();
    if line.ends_with(" missing") {
        return Ok(if matches!(request, BlobRequest::Hash(_)) {
            GitObjectContent::Missing
        } else {
            GitObjectContent::Nothing
        });
    }
    if line.ends_with(" submodule") {
        return Ok(GitObjectContent::Nothing);
    }
    let (head, size) = line.rsplit_once(' ').ok_or_else(|| invalid_answer("its output cannot be parsed"))?;
    let size: u64 = size.parse().map_err(|_| invalid_answer("its output cannot be parsed"))?;
    let content = match head {
        "symlink" => {
            GitObjectContent::Outside(String::from_utf8_lossy(&bytes(from, size.min(4096)).await?).into_owned())
        }
        "dangling" | "loop" | "notdir" => GitObjectContent::Nothing,
        _ => match head.split_once(' ') {
            Some((hash, "tree")) => GitObjectContent::Folder(hash.to_owned()),
            Some((_, "blob")) if size > max_bytes as u64 => GitObjectContent::TooLong,
            Some((_, "blob")) if size > left => GitObjectContent::TooMuch,
            Some((_, "blob")) => GitObjectContent::File(bytes(from, size).await?),
            _ => return Err(invalid_answer("it returned neither a file nor a folder")),
        },
    };
    let left = match &content {
        GitObjectContent::File(_) => 0,
        GitObjectContent::Outside(_) => size - size.min(4096),
        _ => size,
    };
    tokio::io::copy(&mut (&mut *from).take(left), &mut tokio::io::sink()).await?;
    match from.read_u8().await? {
        b'\n' => Ok(content),
        _ => Err(invalid_answer("its output cannot be parsed")),
    }
}

async fn bytes(from: &mut (impl AsyncRead + Unpin), size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    from.take(size).read_to_end(&mut bytes).await?;
    if bytes.len() as u64 == size { Ok(bytes) } else { Err(invalid_answer("it exited early")) }
}

fn invalid_answer(message: &str) -> io::Error {
    io::Error::other(message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answer(text: &[u8], request: &BlobRequest) -> io::Result<GitObjectContent> {
        content(&mut BufReader::new(text), request, 10, 8).await
    }

    #[tokio::test]
    async fn each_answer_of_git_is_understood() {
        let hash = BlobRequest::Hash("a".into());
        let path = BlobRequest::Path { commit: "c".into(), path: b"p".to_vec() };
        assert_eq!(answer(b"a blob 3\nx\ny\n", &hash).await.unwrap(), GitObjectContent::File(b"x\ny".to_vec()));
        assert_eq!(answer(b"a blob 11\n01234567890\n", &hash).await.unwrap(), GitObjectContent::TooLong);
        assert_eq!(answer(b"a blob 9\n012345678\n", &hash).await.unwrap(), GitObjectContent::TooMuch);
        assert_eq!(answer(b"b tree 3\nxyz\n", &path).await.unwrap(), GitObjectContent::Folder("b".into()));
        assert_eq!(answer(b"a missing\n", &hash).await.unwrap(), GitObjectContent::Missing);
        assert_eq!(answer(b"c:p missing\n", &path).await.unwrap(), GitObjectContent::Nothing);
        assert_eq!(answer(b"symlink 4\n/etc\n", &path).await.unwrap(), GitObjectContent::Outside("/etc".into()));
        assert_eq!(answer(b"dangling 3\nc:p\n", &path).await.unwrap(), GitObjectContent::Nothing);
        for broken in [&b"a blob 3\nxy"[..], b"a blob 2\nxyz\n", b"a commit 1\nx\n", b"a blob\n", b"", b"a blob -1\n"] {
            assert!(answer(broken, &hash).await.is_err(), "{broken:?}");
        }
    }
}
