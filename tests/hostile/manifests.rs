//! Large and hostile inputs: each is read, or refused with a clear error, in bounded memory.

#[cfg(unix)]
use std::io::Write;
use std::io::{self, Read};
use std::process::Command;
#[cfg(unix)]
use std::process::Stdio;

use gantry_core::manifest::{Spans, load};
use gantry_core::problem::Problem;
use gantry_core::resource::Step;

use crate::support::Gantry;

fn from_stdin(stdin: impl Read) -> Result<gantry_core::manifest::LoadedManifests, Vec<Problem>> {
    load(&["-".to_owned()], &mut Some(stdin))
}

/// A CRD of about 25 KB with text that resembles real CRDs.
fn crd(number: usize) -> String {
    let mut text = format!(
        "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: kind{number}s.example.com\n\
         spec:\n  versions:\n  - name: v1\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n"
    );
    for field in 0..110 {
        text.push_str(&format!(
            "          field{field}:\n            description: |-\n              What field {field} is good for: a sentence \
             that is as long as these sentences are.\n              More info: https://example.com/docs\n            \
             type: string\n            maxLength: {field}\n            enum: [\"a\", 'b', c]\n"
        ));
    }
    text
}

/// Produces `count` documents one after the other, so the test itself holds only one in memory.
struct Stream {
    count: usize,
    number: usize,
    current: io::Cursor<Vec<u8>>,
    make: fn(usize) -> String,
}

impl Stream {
    fn new(count: usize, make: fn(usize) -> String) -> Self {
        Stream { count, number: 0, current: io::Cursor::default(), make }
    }
}

impl Read for Stream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.current.read(out)?;
        if read > 0 || self.number == self.count {
            return Ok(read);
        }
        self.current = io::Cursor::new((self.make)(self.number).into_bytes());
        self.number += 1;
        self.current.read(out)
    }
}

fn read_stream(megabytes: usize) {
    let count = megabytes * 1_000_000 / crd(0).len();
    let loaded = from_stdin(Stream::new(count, crd)).unwrap();
    assert_eq!(loaded.manifests.len(), count);
    let last = loaded.manifests.last().unwrap();
    assert_eq!(last.object.name, format!("kind{}s.example.com", count - 1));
    assert_eq!(last.origin.document, count);
    let path: Vec<Step> = vec!["spec".into(), "versions".into(), 0.into(), "name".into()];
    let found = Spans::parse(&last.origin).locate(&path);
    let line = last.origin.source.text().lines().nth(found.location.line - 1).unwrap();
    assert_eq!(line, "  - name: v1");
}

#[test]
fn a_stream_of_100_megabytes_is_read() {
    read_stream(100);
}

#[test]
fn ten_thousand_documents_are_read() {
    let small = |number| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m{number}}}\n---\n");
    let loaded = from_stdin(Stream::new(10_000, small)).unwrap();
    assert_eq!(loaded.manifests.len(), 10_000);
    assert_eq!(loaded.manifests[9_999].origin.line, 9_999 * 4 + 1);
    assert_eq!(loaded.manifests[9_999].origin.document, 10_000);
}

#[test]
fn a_list_of_ten_thousand_items_is_read_and_searched() {
    let item = |number| match number {
        0 => "apiVersion: v1\nkind: List\nitems:\n".to_owned(),
        _ => format!("- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: m{number}\n"),
    };
    let loaded = from_stdin(Stream::new(10_001, item)).unwrap();
    assert_eq!(loaded.manifests.len(), 10_000);
    // Finding the positions of many items must not read the whole list for each of them.
    for manifest in loaded.manifests.iter().step_by(10) {
        let found = Spans::parse(&manifest.origin).locate(&["metadata".into(), "name".into()]);
        assert_eq!((found.location.line, found.location.column), (manifest.origin.line + 3, 5));
    }
}

#[test]
fn ten_thousand_broken_documents_give_ten_thousand_errors() {
    let broken = |number| format!("a{number}: [\n---\n");
    assert_eq!(from_stdin(Stream::new(10_000, broken)).unwrap_err().len(), 10_000);
}

#[test]
fn an_alias_bomb_is_refused() {
    let level = |number| match number {
        0 => "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(),
        _ => format!("a{number}: &a{number} [{}]\n", vec![format!("*a{}", number - 1); 10].join(", ")),
    };
    let problems = from_stdin(Stream::new(20, level)).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message.contains("expand to too much data"), "{}", problems[0]);
    assert!(problems[0].at.as_ref().is_some_and(|at| at.line > 1));
}

#[test]
fn a_document_with_ten_thousand_levels_is_refused() {
    for (open, close) in [
        ("[", "]"),
        ("{\"a\":", "}"),
        ("- ", ""),
        ("? ", ""),
        ("{\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[", "]}"),
    ] {
        let text = format!("{}1{}", open.repeat(10_000), close.repeat(10_000));
        let problems = from_stdin(text.as_bytes()).unwrap_err();
        assert!(problems[0].message.contains("levels deep"), "{open}: {}", problems[0]);
    }
}

/// A schema can be nested as deeply as the JSON parser allows, and no deeper: every recursion over it has enough stack.
#[test]
fn a_schema_of_a_hundred_levels_is_judged() {
    // The number of document levels for each of these nestings.
    for (open, close, levels) in [
        (r#"{"type":"array","items":"#, "}", 1),
        (r#"{"type":"object","additionalProperties":"#, "}", 1),
        (r#"{"type":"object","properties":{"a":"#, "}}", 2),
        (r#"{"type":"integer","not":"#, "}", 1),
        (r#"{"type":"integer","allOf":["#, "]}", 2),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let live = folder.path().join("live");
        std::fs::create_dir(&live).unwrap();
        let times = 110 / levels;
        let is_value = open.contains("not") || open.contains("allOf");
        for (file, minimum) in [(live.join("crd.json"), ""), (folder.path().join("desired.json"), r#""minimum":3"#)] {
            let leaf = match (is_value, minimum) {
                (true, minimum) => format!("{{{minimum}}}"),
                (false, "") => r#"{"type":"integer"}"#.to_owned(),
                (false, minimum) => format!(r#"{{"type":"integer",{minimum}}}"#),
            };
            let spec = format!("{}{leaf}{}", open.repeat(times), close.repeat(times));
            let crd = format!(
                r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"as.a.io"}},
                "spec":{{"group":"a.io","scope":"Namespaced","names":{{"kind":"A","plural":"as"}},"versions":[{{"name":"v1",
                "served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","properties":{{"spec":{spec}}}}}}}}}]}}}}"#
            );
            std::fs::write(file, crd).unwrap();
        }
        let output = Command::new(env!("CARGO_BIN_EXE_gantry"))
            .args([
                "check",
                "-f",
                "desired.json",
                "--preflight",
                "CRDUpgradeSafety,CustomResourceValidation",
                "--target",
            ])
            .arg("dir:live")
            .env_clear()
            .env("HOME", folder.path())
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(3), "{open}: {output:?}");
    }
}

/// One long line, one long key, one long text: the cost must be proportional to the length.
#[test]
fn long_lines_are_read() {
    let long = "x".repeat(8 << 20);
    let text = format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{{\"name\":\"a\"}},\"data\":{{\"k\":\"{long}\"}}}}"
    );
    assert_eq!(from_stdin(text.as_bytes()).unwrap().manifests[0].raw.json().len(), text.len());
    let keys: String = (0..100_000).map(|key| format!("  key{key}: {key}\n")).collect();
    let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n{keys}");
    let loaded = from_stdin(text.as_bytes()).unwrap();
    let found = Spans::parse(&loaded.manifests[0].origin).locate(&["data".into(), "key99999".into()]);
    assert_eq!(found.location.line, 100_004);
}

/// Runs the built binary on these manifests from standard input, with this many MiB for its data: what it allocates and
/// the stacks of its threads.
#[cfg(unix)]
fn check_within(mebibytes: usize, manifests: impl Fn(&mut dyn Write) -> io::Result<()>) -> (Option<i32>, String) {
    let cluster = tempfile::tempdir().unwrap();
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -d {} && exec \"$0\" \"$@\"", mebibytes * 1024), env!("CARGO_BIN_EXE_gantry")])
        .args(["check", "-f", "-", "--target"])
        .arg(format!("dir:{}", cluster.path().display()))
        .env_clear()
        .env("HOME", cluster.path())
        // Each further arena of the allocator reserves unused address space, of a size that varies between runs.
        .envs([("TOKIO_WORKER_THREADS", "2"), ("MALLOC_ARENA_MAX", "1")])
        .current_dir(cluster.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = io::BufWriter::with_capacity(1 << 20, child.stdin.take().unwrap());
    // A child that exits before it has read everything closes the pipe; its exit code shows why.
    let _ = manifests(&mut stdin).and_then(|()| stdin.flush());
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

#[cfg(unix)]
#[test]
fn markers_without_documents_cost_no_memory() {
    let (code, said) = check_within(500, |out| (0..4_000_000).try_for_each(|_| out.write_all(b"---\n")));
    assert_eq!(
        (code, said.as_str()),
        (Some(1), "error: no objects found in -\n  = help: the files are empty or contain only comments\n")
    );
}

#[cfg(unix)]
#[test]
fn more_documents_than_a_cluster_holds_are_refused() {
    let (code, said) = check_within(500, |out| (0..4_000_000).try_for_each(|_| out.write_all(b"{}\n")));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.starts_with("error: more than the limit of 250000 documents per source"), "{said}");
}

/// 42,000 objects and 40 MB, a fifth of the largest supported stream: gantry holds the text in memory, and little more.
/// Much of the limit is memory that threads map and never touch, and the program itself, which is about 80 MiB without
/// optimisation.
#[cfg(unix)]
#[test]
fn very_many_objects_need_little_more_memory_than_their_text() {
    let value = "x".repeat(60);
    let data: String = (0..12).map(|key| format!("  key{key}: {value}\n")).collect();
    let (code, said) = check_within(200, |out| {
        (0..42_000).try_for_each(|number| {
            write!(out, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-{number}\ndata:\n{data}")
        })
    });
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Planned: 42000 create"), "{said}");
}

/// kubectl writes `data` before `kind`, so a download that was cut off does not say that it is a Secret.
#[test]
fn a_secret_that_is_cut_off_is_not_quoted() {
    for text in [
        "apiVersion: v1\ndata:\n  password: Z2VoZWlt\n  passwo",
        r#"{"apiVersion":"v1","data":{"password":"Z2VoZWlt","passwo"#,
        "{\n    \"apiVersion\": \"v1\",\n    \"data\": {\n        \"password\": \"Z2VoZWlt\",\n        \"passwo",
    ] {
        for format in ["human", "json", "sarif", "github", "html"] {
            let run = Gantry::new().args(["check", "-f", "-", "--target", "dir:.", "-o", format]).stdin(text).run();
            run.code(1).contains_nowhere("Z2VoZWlt").contains_nowhere("passwo");
        }
    }
}
