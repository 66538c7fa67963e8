//! A stream of blobs: YAML documents or concatenated JSON objects, optionally compressed with gzip.
//!
//! Only one blob is in memory at a time. YAML and JSON are distinguished as in Kubernetes' `YAMLOrJSONDecoder`.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;

use flate2::bufread::MultiGzDecoder;
use gantry_yaml as yaml;
use memchr::memmem;
use serde::Deserialize;
use serde_json::Deserializer;

use crate::blob::Blob;
use crate::error::OlmError;
use crate::json::RawFields;

/// The maximum size of a blob, in bytes.
pub const MOST_BYTES_OF_BLOB: usize = 32 << 20;
/// The maximum uncompressed size of a catalog, in bytes.
pub const MOST_BYTES: u64 = 1 << 30;
/// The maximum number of blobs of a catalog. The largest public ones have some tens of thousands.
pub const MOST_BLOBS: usize = 1_000_000;
/// The minimum number of bytes that are read at once.
const CHUNK: usize = 256 << 10;
/// The magic number of gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Why a catalog cannot be read, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
#[non_exhaustive]
pub struct CatalogReadError {
    /// The line of the error, from 1; if that is unknown, the line on which the blob begins.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// Reads a stream to its end and calls `each` with every blob.
///
/// # Errors
/// The first error, including those that `each` returns.
pub fn read(input: impl Read, each: &mut dyn FnMut(&Blob<'_>) -> Result<(), OlmError>) -> Result<(), CatalogReadError> {
    let mut blobs = 0;
    let each = &mut |blob: &Blob<'_>| {
        blobs += 1;
        if blobs > MOST_BLOBS {
            return Err(format!("the catalog has more than {MOST_BLOBS} blobs").into());
        }
        each(blob)
    };
    let mut input = BufReader::with_capacity(CHUNK, input);
    let is_packed = input.fill_buf().map_err(|error| failed(1, &error))?.starts_with(&GZIP);
    match is_packed {
        true => Stream::new(MultiGzDecoder::new(input)).read(each),
        false => Stream::new(input).read(each),
    }
}

fn failed(line: usize, error: &io::Error) -> CatalogReadError {
    CatalogReadError { line, message: format!("cannot be read: {error}") }
}

struct Stream<R> {
    input: R,
    buffer: Vec<u8>,
    /// The start of the unconsumed text in the buffer.
    start: usize,
    /// The end of the text in the buffer.
    end: usize,
    is_at_end: bool,
    /// The number of bytes that may still be read.
    left: u64,
    /// The line at `start`.
    line: usize,
}

impl<R: Read> Stream<R> {
    fn new(input: R) -> Self {
        Stream { input, buffer: Vec::new(), start: 0, end: 0, is_at_end: false, left: MOST_BYTES, line: 1 }
    }

    fn read(mut self, each: &mut dyn FnMut(&Blob<'_>) -> Result<(), OlmError>) -> Result<(), CatalogReadError> {
        self.skip_blanks()?;
        if self.rest().first() != Some(&b'{') {
            return self.read_yaml(each);
        }
        let mut count = 0;
        while !self.rest().is_empty() {
            match self.read_json(each)? {
                Ok(()) => count += 1,
                // YAML can begin with a brace as well, but after two JSON objects it is JSON.
                Err(_) if count <= 1 => return self.read_yaml(each),
                Err(error) => return Err(error),
            }
            self.skip_blanks()?;
        }
        Ok(())
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn error(&self, message: impl Into<String>) -> CatalogReadError {
        CatalogReadError { line: self.line, message: message.into() }
    }

    /// Reads at least as many bytes as are in the buffer: a blob is parsed again after each read, so doubling keeps the
    /// total time linear.
    fn fill(&mut self) -> Result<(), CatalogReadError> {
        let there = self.end - self.start;
        if there > MOST_BYTES_OF_BLOB {
            let most = MOST_BYTES_OF_BLOB >> 20;
            return Err(self.error(format!("a blob is larger than {most} MiB")));
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, there);
        // One byte more than the maximum shows that the blob is too large.
        let wanted = there.max(CHUNK).min(MOST_BYTES_OF_BLOB + 1 - there);
        self.buffer.resize(there + wanted, 0);
        while self.end < self.buffer.len() {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.is_at_end = true;
                    break;
                }
                Ok(count) => {
                    self.end += count;
                    self.left = self.left.saturating_sub(count as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(self.line, &error)),
            }
        }
        match self.left {
            0 => Err(self.error(format!("the catalog is larger than {} GiB", MOST_BYTES >> 30))),
            _ => Ok(()),
        }
    }

    /// Skips `count` bytes.
    fn consume(&mut self, count: usize) {
        self.line += memchr::memchr_iter(b'\n', &self.buffer[self.start..self.start + count]).count();
        self.start += count;
        // Frees the memory that a large blob needed.
        if self.start == self.end && self.buffer.len() > 4 * CHUNK {
            self.buffer = Vec::new();
            (self.start, self.end) = (0, 0);
        }
    }

    fn skip_blanks(&mut self) -> Result<(), CatalogReadError> {
        loop {
            let blanks = self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.consume(blanks);
            if !self.rest().is_empty() || self.is_at_end {
                return Ok(());
            }
            self.fill()?;
        }
    }

    /// The next JSON object. The inner error is a syntax error: the text may not be JSON.
    fn read_json(
        &mut self,
        each: &mut dyn FnMut(&Blob<'_>) -> Result<(), OlmError>,
    ) -> Result<Result<(), CatalogReadError>, CatalogReadError> {
        loop {
            let text = &self.buffer[self.start..self.end];
            let mut values = Deserializer::from_slice(text).into_iter::<RawFields>();
            let error = match values.next() {
                Some(Ok(fields)) => {
                    let length = values.byte_offset();
                    let Ok(text) = std::str::from_utf8(&text[..length]) else {
                        return Err(self.error("it is not UTF-8"));
                    };
                    let blob = Blob::new(text, fields).map_err(|message| self.error(message))?;
                    each(&blob).map_err(|message| self.error(message))?;
                    self.consume(length);
                    return Ok(Ok(()));
                }
                Some(Err(error)) => error,
                None => return Ok(Ok(())),
            };
            if !error.is_eof() || self.is_at_end {
                let line = self.line + error.line().saturating_sub(1);
                return Ok(Err(CatalogReadError { line, message: yaml::explain_json(&error) }));
            }
            self.fill()?;
        }
    }

    fn read_yaml(mut self, each: &mut dyn FnMut(&Blob<'_>) -> Result<(), OlmError>) -> Result<(), CatalogReadError> {
        loop {
            let document = self.document()?;
            if document.is_empty() {
                return Ok(());
            }
            let Ok(text) = std::str::from_utf8(&self.buffer[document.clone()]) else {
                return Err(self.error("it is not UTF-8"));
            };
            // OLM does not skip an empty document either.
            let json = yaml::to_json(text)
                .map_err(|error| CatalogReadError {
                    line: self.line + error.line.saturating_sub(1),
                    message: error.message,
                })?
                .ok_or_else(|| self.error("object '' is missing root schema field"))?;
            let mut deserializer = Deserializer::from_str(&json.text);
            let fields =
                RawFields::deserialize(&mut deserializer).map_err(|error| self.error(yaml::explain_json(&error)))?;
            let blob = Blob::new(&json.text, fields).map_err(|message| self.error(message))?;
            each(&blob).map_err(|message| self.error(message))?;
            self.consume(document.len());
            self.skip_separator()?;
        }
    }

    /// The range of the next YAML document in the buffer: up to a line that begins with `---`. If the first line does,
    /// it belongs to the document.
    fn document(&mut self) -> Result<Range<usize>, CatalogReadError> {
        let mut looked_at = 0;
        loop {
            let rest = self.rest();
            if let Some(at) = memmem::find(&rest[looked_at..], b"\n---") {
                return Ok(self.start..self.start + looked_at + at + 1);
            }
            if self.is_at_end {
                return Ok(self.start..self.end);
            }
            // The end of the buffer may split a separator.
            looked_at = rest.len().saturating_sub(3);
            self.fill()?;
        }
    }

    /// Skips the line that separates two documents.
    fn skip_separator(&mut self) -> Result<(), CatalogReadError> {
        let end = loop {
            match memchr::memchr(b'\n', self.rest()) {
                Some(at) => break at + 1,
                None if self.is_at_end => break self.rest().len(),
                None => self.fill()?,
            }
        };
        let line = String::from_utf8_lossy(self.rest()[..end].strip_prefix(b"---").unwrap_or_default());
        match line.trim() {
            "" => {}
            comment if comment.starts_with('#') => {}
            other => return Err(self.error(format!("invalid Yaml document separator: {other}"))),
        }
        self.consume(end);
        Ok(())
    }
}
