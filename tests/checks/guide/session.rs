//! One run of a procedure: a folder with the files of the page, a CRD, a namespace, and a webhook that can convert.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::transcript::{Piece, Shown, pieces};
use crate::support::{Webhook, control_plane};

/// How long the output may be different from what the page shows. The server needs a moment to use a new schema.
const PATIENCE: Duration = Duration::from_secs(20);

/// Commands that are run once.
const WRITES: [&str; 7] = [
    "gantry deploy",
    "gantry migrate",
    "kubectl apply",
    "kubectl replace",
    "kubectl patch",
    "kubectl label",
    "kubectl delete",
];

/// The plural and singular names in a command of kubectl. Other groups of the server have the same names.
static RESOURCE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r" (backups?) ").expect("a pattern"));

static CA_BUNDLE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"caBundle: \S+").expect("a pattern"));

pub(super) struct Session {
    folder: TempDir,
    /// The CRD around the examples, up to the schema of `spec`.
    template: String,
    /// Names of the page, and what stands for them on the server. They have the same length, so that lines wrap the
    /// same.
    names: Vec<(&'static str, String)>,
    webhook: Webhook,
    code: i32,
}

impl Session {
    pub(super) fn new(template: &[&str]) -> Session {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let names = vec![
            ("example.com", format!("exam{number:03}.com")),
            ("team-a", format!("tea{number:03}")),
            ("backup-system", format!("backup-sys{number:03}")),
        ];
        let host = format!("backup-webhook.{}.svc", names[2].1);
        let webhook = Webhook::with_own_ca(&[host], |review| Webhook::answer(review, convert));
        for (_, namespace) in &names[1..] {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            control_plane().apply_yaml(&object.to_string());
        }
        let template = template.join("\n") + "\n";
        Session { folder: TempDir::new().expect("a folder"), template, names, webhook, code: 0 }
    }

    /// Deploys release 1, and applies the objects of the users.
    pub(super) fn set_up(&mut self, start: &str) {
        for piece in pieces(start) {
            if let Piece::BlockEnd(lines) = piece {
                self.add_file(&lines);
            }
        }
        for command in ["gantry deploy -f release-1", "kubectl apply -f users"] {
            let output = self.run(command);
            assert_eq!(self.code, 0, "{command}: {output}");
        }
    }

    /// Writes the files of a text and runs its commands. Returns the text with the outputs, and adds those that the page
    /// does not show to `wrong`.
    pub(super) fn follow(&mut self, text: &str, wrong: &mut Vec<String>) -> String {
        let mut fresh = String::new();
        let mut pieces = pieces(text).into_iter().peekable();
        while let Some(piece) = pieces.next() {
            match piece {
                Piece::Line(line) => fresh.push_str(&format!("{line}\n")),
                Piece::BlockEnd(lines) => self.add_file(&lines),
                Piece::Command(shown) => {
                    let output = self.output_of(&shown);
                    let is_asked = |next: &Piece| matches!(next, Piece::Command(next) if next.command == "echo $?");
                    if self.code != 0 && shown.command.starts_with("gantry") && !pieces.peek().is_some_and(is_asked) {
                        wrong.push(format!("$ {}\nits exit code {} is not shown", shown.command, self.code));
                    }
                    let is_right = shown.is_output(&output);
                    let expected = shown.output.join("\n");
                    fresh.push_str(&shown.with_output(if is_right { &expected } else { &output }));
                    if !is_right {
                        wrong.push(format!("$ {}\n{output}--- the page shows\n{expected}\n", shown.command));
                    }
                }
            }
        }
        fresh
    }

    /// The output of a command, as soon as it is what the page shows.
    fn output_of(&mut self, shown: &Shown) -> String {
        let command = shown.command;
        if command == "echo $?" {
            return format!("{}\n", self.code);
        }
        let is_write = WRITES.iter().any(|write| command.starts_with(write));
        let attempt = match is_write {
            true if command.starts_with("gantry") => return self.run(command),
            true => format!("{command} --dry-run=server"),
            false => command.to_owned(),
        };
        let patience = if std::env::var_os("UPDATE_DOCS").is_some() { PATIENCE / 10 } else { PATIENCE };
        let deadline = Instant::now() + patience;
        loop {
            let output = self.run(&attempt);
            let output = if is_write { without_marks_of_dry_run(&output) } else { output };
            if shown.is_output(&output) || Instant::now() > deadline {
                return if is_write { self.run(command) } else { output };
            }
        }
    }

    /// The output on both streams, with the names of the page.
    fn run(&mut self, command: &str) -> String {
        let command = match command.starts_with("kubectl ") {
            true => RESOURCE.replace_all(command, " $1.example.com ").into_owned(),
            false => command.to_owned(),
        };
        // kubectl merges custom resources without a schema, but asks for the one of all kinds (OpenAPI v2), which takes
        // the server a second after each change of a CRD.
        let command = command.replace("kubectl apply ", "kubectl apply --openapi-patch=false ");
        let gantry = Path::new(env!("CARGO_BIN_EXE_gantry"));
        let kubectl = gantry_testbed::kubectl();
        let folders = [gantry, &kubectl].map(|program| program.parent().expect("a folder").display().to_string());
        // A new one for each command: kubectl remembers which versions are served.
        let home = TempDir::new().expect("a home");
        let output = Command::new("sh")
            .args(["-c", &format!("{} 2>&1", self.on_server(&command))])
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", home.path())
            .env("KUBECONFIG", control_plane().kubeconfig("admin"))
            .env("PATH", format!("{}:/usr/bin:/bin", folders.join(":")))
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        self.code = output.status.code().expect("an exit code");
        self.on_page(String::from_utf8(output.stdout).expect("UTF-8"))
    }

    fn on_server(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (page, server)| text.replace(page, server))
    }

    fn on_page(&self, text: String) -> String {
        let text = text.replace(&format!(":{}/", self.webhook.port()), ":443/");
        self.names.iter().fold(text, |text, (page, server)| text.replace(server, page))
    }

    /// Writes the file that the first line of a block names.
    fn add_file(&self, lines: &[&str]) {
        let [first, lines @ ..] = lines else { return };
        let Some(name) = first.strip_prefix("# ").filter(|name| name.ends_with(".yaml")) else { return };
        let excerpt = lines.join("\n") + "\n";
        let text = if name.ends_with("/crd.yaml") { self.whole_crd(&excerpt) } else { excerpt };
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, self.on_server(&self.reaching_webhook(&text))).expect("a file");
    }

    /// The CRD around the schema of `spec`, or around the versions.
    fn whole_crd(&self, excerpt: &str) -> String {
        let (around, indent) = match excerpt.starts_with("versions:") {
            true => (self.template.split_inclusive("\n").take_while(|line| *line != "  versions:\n").collect(), 2),
            false => (self.template.clone(), 12),
        };
        let indent = " ".repeat(indent);
        around + &excerpt.lines().map(|line| format!("{indent}{line}\n")).collect::<String>()
    }

    /// The page has the Service of a cluster with Pods. The API server of the test reaches a port on loopback.
    fn reaching_webhook(&self, text: &str) -> String {
        let conversion = self.webhook.conversion();
        let ca_bundle = conversion["webhook"]["clientConfig"]["caBundle"].as_str().expect("a CA bundle");
        let text = CA_BUNDLE.replace_all(text, format!("caBundle: {ca_bundle}"));
        let text = text.replace("type: ClusterIP", "type: ExternalName\n  externalName: localhost");
        text.replace("port: 443", &format!("port: {}", self.webhook.port()))
    }

    /// Name and spec of each object at a version.
    pub(super) fn specs(&self, version: &str) -> Vec<(String, Value)> {
        let path = format!("/apis/example.com/{version}/namespaces/team-a/backups");
        let (status, list) = control_plane().get(&self.on_server(&path));
        assert_eq!(status, 200, "{list:#}");
        let items = list["items"].as_array().expect("a list").iter();
        items.map(|item| (item["metadata"]["name"].as_str().unwrap_or_default().into(), item["spec"].clone())).collect()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/backups.example.com";
        control_plane().delete(&self.on_server(path));
    }
}

/// What kubectl would print if it wrote.
fn without_marks_of_dry_run(output: &str) -> String {
    // The first server-side apply takes over an annotation in a second request, which depends on the first.
    let is_mark = |line: &&str| line.starts_with("Warning: failed to migrate kubectl.kubernetes.io/");
    let lines = output.lines().filter(|line| !is_mark(line));
    lines.map(|line| format!("{}\n", line.trim_end_matches(" (server dry run)"))).collect()
}

/// v2 has `retention` in place of `keep` in v1.
fn convert(mut object: Value, wanted: &str) -> Value {
    let (from, to) = if wanted.ends_with("/v2") { ("keep", "retention") } else { ("retention", "keep") };
    if let Some(value) = object["spec"].as_object_mut().and_then(|spec| spec.remove(from)) {
        object["spec"][to] = value;
    }
    object["apiVersion"] = wanted.into();
    object
}
