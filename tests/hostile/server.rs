//! No answer of a server makes gantry hang, panic or exhaust the memory.
//!
//! The server is the test's own: these tests cover faults, not semantics. Each run has an address space limit, so
//! unbounded memory use fails instead of exhausting this machine.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{Bed, Gantry, Mock, Output, Reply, Request, crd_yaml};
use serde_json::json;

/// Far more than a run needs, and far less than an endless answer would need.
const MOST_KIB: u64 = 2 << 20;

struct Run {
    bed: Bed,
    server: Mock,
}

impl Run {
    /// A deploy of these manifests.
    fn deploy(manifests: &str, plan: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let bed = Bed::new();
        bed.write("manifests.yaml", manifests);
        Run { bed, server: Mock::start(plan) }
    }

    /// A deploy of one ConfigMap; the plan applies to the request that reads it.
    fn reading(does: impl Fn() -> Reply + Send + Sync + 'static) -> Self {
        let is_read = |asked: &Request| asked.method == "GET" && asked.path.ends_with("/configmaps/a");
        Self::deploy(CONFIG_MAP, move |asked| is_read(asked).then(&does))
    }

    fn gantry(&self) -> Gantry {
        self.bed.deploy(self.server.kubeconfig(self.bed.folder.path(), "unused"), &[]).memory_limit(MOST_KIB)
    }

    /// Asserts that it fails with this error, and that nothing was written.
    #[track_caller]
    fn fails(&self, gantry: Gantry, message: &str) -> Output {
        let run = gantry.run();
        run.code(1).contains_nowhere("panicked");
        let said = format!("{}{}", run.stdout, run.stderr);
        let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors, [format!("error: {message}")], "{run}");
        assert!(!self.server.requests().iter().any(Request::is_write), "{run}");
        run
    }
}

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {key: x}\n";

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

fn endless(head: &str, again: impl Into<Vec<u8>>) -> Reply {
    Reply::Endless(head.as_bytes().to_vec(), again.into(), Duration::ZERO)
}

#[test]
fn an_endless_body_is_an_error() {
    let text = "x".repeat(1 << 20);
    let text_too = text.clone();
    let run = Run::reading(move || endless(&format!("{HEAD}\r\n{{\"a\": \""), text.clone()));
    let url = run.server.url().to_owned();
    run.fails(run.gantry(), &format!("the response from {url} is larger than 8 MiB; gantry stopped reading it"));

    // The limit for refusals is lower; for the requests at the start of every run, it is higher.
    let run = Run::reading(move || endless("HTTP/1.1 500 X\r\ncontent-type: text/plain\r\n\r\n", text_too.clone()));
    let url = run.server.url().to_owned();
    run.fails(run.gantry(), &format!("the response from {url} is larger than 4 MiB; gantry stopped reading it"));
    let first = |asked: &Request| asked.path == "/api/v1";
    let run = Run::deploy(CONFIG_MAP, move |asked| {
        first(asked).then(|| endless(&format!("{HEAD}\r\n["), "0,".repeat(1 << 19)))
    });
    let url = run.server.url().to_owned();
    run.fails(run.gantry(), &format!("the response from {url} is larger than 64 MiB; gantry stopped reading it"));
}

#[test]
fn a_compressed_body_that_is_larger_than_memory_is_an_error() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let script = "printf '{\"a\": \"'; head -c 300000000 /dev/zero | tr '\\0' x";
    let packed = folder.path().join("packed");
    let status = Command::new("sh").args(["-c", &format!("({script}) | gzip -1 > \"$0\"")]).arg(&packed).status();
    assert!(status.expect("run gzip").success());
    let packed = std::fs::read(packed).expect("what gzip wrote");
    let head = format!("{HEAD}content-encoding: gzip\r\ncontent-length: {}\r\n\r\n", packed.len());
    let answer = [head.into_bytes(), packed].concat();
    let run = Run::reading(move || Reply::Bytes(answer.clone()));
    // gantry requests no compression from a loopback address; this address is another name for this machine.
    let url = run.server.url().replace("127.0.0.1", "0.0.0.0");
    let kubeconfig = crate::support::changed(
        run.bed.folder.path(),
        &run.server.kubeconfig(run.bed.folder.path(), "unused"),
        |cluster, _| cluster["server"] = json!(url),
    );
    let gantry = run.bed.deploy(kubeconfig, &[]).memory_limit(MOST_KIB);
    run.fails(gantry, &format!("the response from {url} is larger than 8 MiB; gantry stopped reading it"));
}

#[test]
fn an_answer_that_arrives_byte_by_byte_ends_at_the_time_limit() {
    let drip = |head: &str, drop: &str| Reply::Endless(head.into(), drop.into(), Duration::from_millis(20));
    for (head, drop) in [
        (format!("{HEAD}\r\n"), " "),
        (HEAD.to_owned(), "x"),
        ("".to_owned(), "HTTP/1.1 100 Continue\r\n\r\n"),
        (format!("{HEAD}transfer-encoding: chunked\r\n\r\n"), "1\r\n \r\n"),
    ] {
        let run = Run::reading(move || drip(&head, drop));
        let gantry = run.gantry().env("GANTRY_TIMEOUTS__REQUEST", "1s");
        run.fails(gantry, &format!("no answer from {} within 1 s", run.server.address()));
    }
    let run = Run::reading(|| Reply::Hang);
    let gantry = run.gantry().env("GANTRY_TIMEOUTS__REQUEST", "1s");
    run.fails(gantry, &format!("no answer from {} within 1 s", run.server.address()));
}

#[test]
fn endless_headers_are_an_error() {
    let lines = format!("x-filler: {}\r\n", "y".repeat(1000));
    for again in [lines, "x".repeat(1 << 16), "a: b\r\n".repeat(1000)] {
        let run = Run::reading(move || endless("HTTP/1.1 200 OK\r\n", again.clone()));
        let url = run.server.url().to_owned();
        run.fails(run.gantry(), &format!("{url} does not answer like a Kubernetes API server (not valid HTTP)"));
    }
    for bytes in [
        "SSH-2.0-OpenSSH_9.6\r\n",
        "\0\0\0\0",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
    ] {
        let run = Run::reading(|| Reply::Bytes(bytes.into()));
        let url = run.server.url().to_owned();
        run.fails(run.gantry(), &format!("{url} does not answer like a Kubernetes API server (not valid HTTP)"));
    }
}

#[test]
fn objects_that_cannot_be_parsed_are_an_error() {
    let object = |data: &str| {
        format!(
            r#"{{"kind": "ConfigMap", "metadata": {{"name": "a", "uid": "u", "resourceVersion": "1"}}, "data": {data}}}"#
        )
    };
    for data in ["[".repeat(1 << 20) + &"]".repeat(1 << 20), "1e999".to_owned(), r#""\ud800""#.to_owned()] {
        let answer = object(&data);
        let what = if data.starts_with('[') { "JSON nested too deeply" } else { "not an object" };
        let run = Run::reading(move || Reply::Answer(200, "application/json", answer.clone()));
        let url = run.server.url().to_owned();
        run.fails(run.gantry(), &format!("{url} does not answer like a Kubernetes API server (200, {what})"));
    }
}

/// A proxy that asks for a login answers with JSON, too.
#[test]
fn discovery_that_is_not_a_discovery_document_is_an_error() {
    for body in ["{}", "[]", r#"{"error": "login required"}"#, r#"{"kind": "Status", "status": "Success"}"#] {
        let run = Run::deploy(CONFIG_MAP, move |asked| {
            (asked.path == "/api/v1").then(|| Reply::Answer(200, "application/json", body.into()))
        });
        let url = run.server.url().to_owned();
        let message = format!("{url} does not answer like a Kubernetes API server (200, not a resource list)");
        run.fails(run.gantry(), &message);
    }
}

/// The answer to a dry run is the object as it would be stored, and gantry reads it, too.
#[test]
fn a_dry_run_with_a_nonsense_answer_is_an_error() {
    for body in ["", "garbage", "[1", r#"{"a": 1e999}"#] {
        let run = Run::deploy(CONFIG_MAP, move |asked| {
            asked.query.contains("dryRun=All").then(|| Reply::Answer(200, "application/json", body.into()))
        });
        run.server.put("/api/v1/namespaces/default", json!({"metadata": {"name": "default", "uid": "n"}}));
        let run = run.gantry().args(["--preflight", "AdmissionDryRun"]).run();
        run.code(1).stdout_contains("does not answer like a Kubernetes API server").contains_nowhere("panicked");
    }
}

fn crd(name: &str, field: &str) -> String {
    crd_yaml("example.com", name, &format!("spec: {field}"))
}

/// The answer to a list: no objects, and a continue token.
fn page(token: &str) -> Reply {
    Reply::json(200, json!({"kind": "List", "metadata": {"continue": token}, "items": []}))
}

#[test]
fn an_endless_list_of_crds_is_an_error() {
    // This many objects are listed instead of read one by one.
    let manifests: Vec<String> = (0..129).map(|number| crd(&format!("sample{number}"), "{type: string}")).collect();
    let manifests = manifests.join("---\n");
    let is_list =
        |asked: &Request| asked.path.ends_with("/customresourcedefinitions") && asked.query.contains("limit=");
    let says = |run: &Run, why: &str| {
        let url = run.server.url().to_owned();
        run.fails(
            run.gantry(),
            &format!("{url} sends an endless list of customresourcedefinitions.apiextensions.k8s.io: {why}"),
        );
        let lists = run.server.requests().into_iter().filter(is_list).count();
        assert!(lists <= 103, "{lists}");
    };
    let run = Run::deploy(&manifests, move |asked| is_list(asked).then(|| page("same")));
    says(&run, "its continue token points back to an earlier page");
    let count = AtomicUsize::new(0);
    let turn = move || count.fetch_add(1, Ordering::Relaxed);
    let run = Run::deploy(&manifests, move |asked| is_list(asked).then(|| page(["a", "b"][turn() % 2])));
    says(&run, "its continue token points back to an earlier page");
    let count = AtomicUsize::new(0);
    let next = move || count.fetch_add(1, Ordering::Relaxed).to_string();
    let run = Run::deploy(&manifests, move |asked| is_list(asked).then(|| page(&next())));
    says(&run, "page after page is empty");
    let run = Run::deploy(&manifests, move |asked| is_list(asked).then(|| page(&"x".repeat(1 << 20))));
    says(&run, "its continue token is too long");
}

/// Returns the server's answer to a request, or `None` for the answer of a real server.
type Plan = Box<dyn Fn(&Request) -> Option<Reply> + Send + Sync>;

#[test]
fn an_endless_list_of_objects_is_an_error() {
    let is_list = |asked: &Request| asked.path.ends_with("/samples") && asked.query.contains("limit=");
    let expired = |token: &str| {
        let metadata = json!({"continue": token});
        Reply::json(
            410,
            json!({"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure",
            "message": "The provided continue parameter is too old", "reason": "Expired", "code": 410}),
        )
    };
    let count = |asked: &Request| {
        asked.query.split("continue=").nth(1).map_or(0, |token| token.parse::<u32>().unwrap_or(0)) + 1
    };
    let says = |plan: Plan, why: &str| {
        let run = Run::deploy(&crd("sample", "{type: string, maxLength: 1}"), plan);
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/samples.example.com";
        let live: serde_json::Value = serde_yaml::from_str(&crd("sample", "{type: string}")).expect("YAML");
        let mut live = live;
        live["metadata"]["uid"] = json!("u");
        live["metadata"]["resourceVersion"] = json!("1");
        live["status"] = json!({"storedVersions": ["v1"]});
        run.server.put(path, live);
        // The live CRD has no managed fields, so a deploy would conflict with `before-first-apply`.
        let out = run.gantry().args(["--preflight", "CustomResourceValidation", "--force-conflicts"]).run();
        // The report wraps lines.
        let said = out.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(why), "{why}\n{out}");
        out.code(1).contains_nowhere("panicked");
        let lists = run.server.requests().into_iter().filter(is_list).count();
        assert!((2..=210).contains(&lists), "{lists} lists\n{out}");
    };
    let nowhere = |why: &str| format!("sends an endless list of samples.example.com: {why}");
    says(
        Box::new(move |asked| is_list(asked).then(|| page("same"))),
        &nowhere(
            "its continue token points back to an \
        earlier page",
        ),
    );
    says(
        Box::new(move |asked| is_list(asked).then(|| page(&count(asked).to_string()))),
        &nowhere("page after page is empty"),
    );
    // Expired, restarted, an object, expired, …
    let renewed = move |asked: &Request| {
        let number = count(asked);
        let item =
            json!({"apiVersion": "example.com/v1", "kind": "sample", "metadata": {"name": "x", "namespace": "n"}});
        match number % 2 {
            0 => expired(&number.to_string()),
            _ => {
                Reply::json(200, json!({"kind": "List", "metadata": {"continue": number.to_string()}, "items": [item]}))
            }
        }
    };
    says(
        Box::new(move |asked| is_list(asked).then(|| renewed(asked))),
        &nowhere("the server keeps dropping its snapshot"),
    );
    says(Box::new(move |asked| is_list(asked).then(|| expired(""))), "twice while gantry read it");
}

/// A page of large objects is requested again with fewer objects.
#[test]
fn a_page_that_is_too_large_is_requested_again_smaller() {
    let manifests: Vec<String> = (0..129).map(|number| crd(&format!("sample{number}"), "{type: string}")).collect();
    let is_list =
        |asked: &Request| asked.path.ends_with("/customresourcedefinitions") && asked.query.contains("limit=");
    let large = move |asked: &Request| match asked.query.contains("limit=100") {
        true => endless(&format!("{HEAD}\r\n{{\"a\": \""), "x".repeat(1 << 20)),
        false => Reply::json(200, json!({"kind": "List", "metadata": {}, "items": []})),
    };
    let run = Run::deploy(&manifests.join("---\n"), move |asked| is_list(asked).then(|| large(asked)));
    run.gantry().arg("--dry-run").run().code(0);
    let lists: Vec<String> = run.server.requests().into_iter().filter(is_list).map(|asked| asked.query).collect();
    assert_eq!(lists, ["limit=100", "limit=10"]);
}

/// One request waits for a server that stays overloaded; the others are sent once.
#[test]
fn a_server_that_stays_busy_is_an_error() {
    let manifests: Vec<String> =
        (0..100).map(|number| CONFIG_MAP.replace("name: a", &format!("name: a{number}"))).collect();
    let is_read = |asked: &Request| asked.method == "GET" && asked.path.contains("/configmaps/");
    let run = Run::deploy(&manifests.join("---\n"), move |asked| {
        is_read(asked).then(|| Reply::refuse(429, "TooManyRequests", "Too many requests, please try again later."))
    });
    let out = run.gantry().run();
    out.code(1).stderr_contains("is overloaded (429); gave up after several attempts").contains_nowhere("panicked");
    let reads = run.server.requests().into_iter().filter(is_read).count();
    // Sixteen requests run at the same time, and each of them waits.
    assert!((100..=16 * 6 + 100).contains(&reads), "{reads}");
}

const TOKEN: &str = "t0ken-of+the/depl0yer-4711";
const VALUE: &str = "c0rrect/horse+battery staple";

/// The form in which a server can return a text that it was sent, and the part of it that must not be shown.
fn altered(text: &str) -> Vec<(String, String)> {
    let percent: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let escapes: String = text.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let lines = text.chars().map(|c| format!("{c}\n")).collect();
    let (head, tail) = text.split_at(text.len() / 2);
    let encode = |text: &str| {
        let mut child = Command::new("base64")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("run base64");
        std::io::Write::write_all(&mut child.stdin.take().expect("piped"), text.as_bytes()).expect("its input");
        let out = child.wait_with_output().expect("its output").stdout;
        String::from_utf8(out).expect("base64").trim().to_owned()
    };
    let (with_user, within) = (encode(&format!("user:{text}")), encode(&format!("{{\"value\": \"{text}\"}}")));
    let secret = [with_user[8..].to_owned(), within[16..within.len() - 4].to_owned()];
    let mut altered = vec![(with_user, secret[0].clone()), (within, secret[1].clone())];
    let whole = [
        text.to_owned(),
        percent,
        escapes.clone(),
        escapes.replace('\\', "\\\\"),
        lines,
        format!("{head}..."),
        format!("...{tail}"),
        format!("{head}\"\n + \"{tail}"),
        encode(text),
        format!("{:?}", text.as_bytes()).replace(',', ""),
    ];
    altered.extend(whole.map(|words| (words.clone(), words)));
    altered
}

/// The altered texts in the output: as they were sent, and in their escaped form.
#[track_caller]
fn is_hidden(run: &Output, text: &str, altered: &str) {
    run.contains_nowhere("panicked");
    let letters = |text: &str| text.chars().filter(|c| c.is_ascii_alphanumeric()).collect::<String>();
    let said = letters(&format!("{}{}", run.stdout, run.stderr));
    for secret in [letters(text), letters(altered)] {
        for part in secret.as_bytes().windows(12) {
            let part = String::from_utf8_lossy(part);
            assert!(!said.contains(&*part), "{part} of {altered}\n{run}");
        }
    }
    assert!(said.contains("hidden"), "{altered}\n{run}");
}

#[test]
fn messages_of_the_server_never_show_our_own_token() {
    for (words, secret) in altered(TOKEN) {
        let said = words.clone();
        let run = Run::deploy(CONFIG_MAP, move |asked| {
            assert!(!asked.path.starts_with('/') || asked.headers["authorization"] == format!("Bearer {TOKEN}"));
            asked.is_write().then(|| Reply::refuse(500, "InternalError", &format!("who is {said}?")))
        });
        let out = run.bed.deploy(run.server.kubeconfig(run.bed.folder.path(), TOKEN), &[]).run();
        is_hidden(out.code(1), TOKEN, &secret);
    }
    // The fields in which a server can also return text.
    let absent = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}"#;
    let warning = format!(
        "HTTP/1.1 404 X\r\nwarning: 299 - \"{TOKEN} is deprecated\"\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{absent}",
        absent.len()
    );
    let kind = Reply::Answer(200, Box::leak(format!("text/{TOKEN}").into_boxed_str()), "x".into());
    for does in [Reply::Bytes(warning.into()), kind] {
        let run = Run::reading(move || does.clone());
        let out = run.bed.deploy(run.server.kubeconfig(run.bed.folder.path(), TOKEN), &[]).run();
        is_hidden(&out, TOKEN, TOKEN);
    }
}

#[test]
fn messages_of_the_server_never_show_values_of_secrets() {
    let manifest = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: default}}\nstringData: {{password: {VALUE}}}\n"
    );
    for (words, secret) in altered(VALUE) {
        let said = words.clone();
        let run = Run::deploy(&manifest, move |asked| {
            asked.is_write().then(|| Reply::refuse(422, "Invalid", &format!("the password is {said}, which is weak")))
        });
        is_hidden(run.gantry().run().code(1), VALUE, &secret);
    }
}
