//! Contents of a commit, all read from one `git cat-file`.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStdin, ChildStdout};

use crate::program::Failure;

/// What is at a name.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    /// A file, if it is not longer than was allowed.
    File(Vec<u8>),
    TooLong,
    /// A folder, by the hash of its tree.
    Folder(String),
    /// Nothing: a link that leads nowhere is that, too.
    Nothing,
    /// A link that leads out of the repository, and where to.
    Outside(String),
    /// The commit has it, and the clone does not.
    Missing,
}

/// A running `git cat-file --batch --follow-symlinks`.
pub struct Blobs {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    most: usize,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub enum Ask {
    /// By its hash.
    Hash(String),
    /// By commit and path, links on the way and at the end followed. A path with a line break cannot be asked for.
    Path { commit: String, path: Vec<u8> },
}

impl Ask {
    fn line(&self) -> Vec<u8> {
        match self {
            Ask::Hash(hash) => format!("{hash}\n").into_bytes(),
            Ask::Path { commit, path } => [commit.as_bytes(), b":", path, b"\n"].concat(),
        }
    }
}

impl Blobs {
    pub const COMMAND: [&'static str; 3] = ["cat-file", "--batch", "--follow-symlinks"];

    /// Contents longer than `most` bytes are passed over.
    pub fn new(stdin: Option<ChildStdin>, stdout: ChildStdout, most: usize) -> Result<Self, Failure> {
        let stdin = stdin.ok_or_else(|| broken("its standard input is missing"))?;
        Ok(Blobs { stdin, stdout: BufReader::with_capacity(1 << 16, stdout), most })
    }

    /// Reads all of them, and gives each to `take` in their order.
    pub async fn read(&mut self, asks: &[Ask], mut take: impl FnMut(usize, Content)) -> Result<(), Failure> {
        let Blobs { stdin, stdout, most } = self;
        // Git answers as it is asked, and a pipe holds little: both ends have to move.
        let asking = async {
            for ask in asks {
                stdin.write_all(&ask.line()).await?;
            }
            stdin.flush().await
        };
        let reading = async {
            for (index, ask) in asks.iter().enumerate() {
                take(index, content(stdout, ask, *most).await?);
            }
            Ok(())
        };
        tokio::try_join!(asking, reading).map(drop).map_err(Failure::Broken)
    }
}

fn broken(message: &str) -> Failure {
    Failure::Broken(io::Error::other(message.to_owned()))
}

/// One answer: `HASH TYPE SIZE`, a line break, the content, a line break; or what else there is to say.
async fn content(from: &mut (impl AsyncBufReadExt + Unpin), ask: &Ask, most: usize) -> io::Result<Content> {
    let mut line = Vec::new();
    (&mut *from).take(1 << 16).read_until(b'\n', &mut line).await?;
    let line = String::from_utf8_lossy(line.strip_suffix(b"\n").ok_or_else(|| wrong("it ended"))?).into_owned();
    if line.ends_with(" missing") {
        return Ok(if matches!(ask, Ask::Hash(_)) { Content::Missing } else { Content::Nothing });
    }
    if line.ends_with(" submodule") {
        return Ok(Content::Nothing);
    }
    let (head, size) = line.rsplit_once(' ').ok_or_else(|| wrong("its answer cannot be read"))?;
    let size: u64 = size.parse().map_err(|_| wrong("its answer cannot be read"))?;
    let content = match head {
        "symlink" => Content::Outside(String::from_utf8_lossy(&bytes(from, size.min(4096)).await?).into_owned()),
        "dangling" | "loop" | "notdir" => Content::Nothing,
        _ => match head.split_once(' ') {
            Some((hash, "tree")) => Content::Folder(hash.to_owned()),
            Some((_, "blob")) if size > most as u64 => Content::TooLong,
            Some((_, "blob")) => Content::File(bytes(from, size).await?),
            _ => return Err(wrong("it answers neither a file nor a folder")),
        },
    };
    let left = match &content {
        Content::File(_) => 0,
        Content::Outside(_) => size - size.min(4096),
        _ => size,
    };
    tokio::io::copy(&mut (&mut *from).take(left), &mut tokio::io::sink()).await?;
    match from.read_u8().await? {
        b'\n' => Ok(content),
        _ => Err(wrong("its answer cannot be read")),
    }
}

async fn bytes(from: &mut (impl AsyncRead + Unpin), size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    from.take(size).read_to_end(&mut bytes).await?;
    if bytes.len() as u64 == size { Ok(bytes) } else { Err(wrong("it ended")) }
}

fn wrong(message: &str) -> io::Error {
    io::Error::other(message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answer(text: &[u8], ask: &Ask) -> io::Result<Content> {
        content(&mut BufReader::new(text), ask, 10).await
    }

    #[tokio::test]
    async fn each_answer_of_git_is_understood() {
        let hash = Ask::Hash("a".into());
        let path = Ask::Path { commit: "c".into(), path: b"p".to_vec() };
        assert_eq!(answer(b"a blob 3\nx\ny\n", &hash).await.unwrap(), Content::File(b"x\ny".to_vec()));
        assert_eq!(answer(b"a blob 11\n01234567890\n", &hash).await.unwrap(), Content::TooLong);
        assert_eq!(answer(b"b tree 3\nxyz\n", &path).await.unwrap(), Content::Folder("b".into()));
        assert_eq!(answer(b"a missing\n", &hash).await.unwrap(), Content::Missing);
        assert_eq!(answer(b"c:p missing\n", &path).await.unwrap(), Content::Nothing);
        assert_eq!(answer(b"symlink 4\n/etc\n", &path).await.unwrap(), Content::Outside("/etc".into()));
        assert_eq!(answer(b"dangling 3\nc:p\n", &path).await.unwrap(), Content::Nothing);
        for broken in [&b"a blob 3\nxy"[..], b"a blob 2\nxyz\n", b"a commit 1\nx\n", b"a blob\n", b"", b"a blob -1\n"] {
            assert!(answer(broken, &hash).await.is_err(), "{broken:?}");
        }
    }
}
