//! Files for the samples.

use std::collections::BTreeMap;

use crate::Excerpts;

/// The files that the samples name.
pub struct SampleFiles(BTreeMap<&'static str, Vec<String>>);

impl Excerpts for SampleFiles {
    fn line(&self, file: &str, line: usize) -> Option<&str> {
        self.0.get(file)?.get(line.checked_sub(1)?).map(String::as_str)
    }
}

pub fn files() -> SampleFiles {
    let mut crd: Vec<String> = (1..=50).map(|n| format!("# line {n}")).collect();
    let mut set = |line: usize, text: &str| crd[line - 1] = text.into();
    set(23, "              properties:");
    set(24, "                spec:");
    set(25, "                replicas:");
    set(26, "                  type: integer");
    set(27, "                  description: how many");
    set(28, "                  minimum: 2");
    set(44, "                spec:");
    let lines = |text: &str| text.split('\n').map(str::to_owned).collect::<Vec<_>>();
    SampleFiles(BTreeMap::from([
        ("manifests/crd.yaml", crd),
        ("hostile.yaml", lines("a: b\n\u{1b}[31m\t  \u{202e}key: \u{1b}[2Jvalue\r")),
        ("wide.yaml", lines("spec:\n  日本語: {名前: string, size: 3}")),
        (
            "one-line.json",
            vec![format!("{{\"a\":[{}],\"target\":1,\"b\":[{}]}}", "1,".repeat(5000), "2,".repeat(5000))],
        ),
        (
            "secret.yaml",
            lines(
                "apiVersion: v1\nkind: Secret\nstringData:\n  password: hunter2\n  bad\n---\nkind: ConfigMap\n  bad: 1",
            ),
        ),
    ]))
}
