//! The HTML report in a browser.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use crate::formats::{gantry, repository};

fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|ran| ran.status.success())
}

/// The script of the repository opens the page and tests what a reader does with it.
#[test]
fn a_browser_shows_the_page() {
    let has_browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().any(starts);
    if !has_browser || !starts("python3") {
        // Not with `eprintln!`, whose text a test keeps for itself if it passes.
        let line = "skipped: a_browser_shows_the_page needs Chromium and Python 3 (apt-get install chromium)";
        writeln!(io::stderr(), "{line}").expect("standard error is open");
        return;
    }
    let repository = repository();
    let ran = gantry(&repository, &["check", "-f", "breaking", "--target", "dir:live", "-o", "html=page.html"]);
    assert_eq!(ran.status.code(), Some(3), "{}", String::from_utf8_lossy(&ran.stderr));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/html/check.py");
    let page = repository.path().join("deploy/page.html");
    let checked = Command::new("python3").arg(script).arg(page).output().expect("python3 starts");
    let (out, err) = (String::from_utf8_lossy(&checked.stdout), String::from_utf8_lossy(&checked.stderr));
    assert!(checked.status.success(), "{out}{err}");
    assert!(out.contains("findings, filtered in"), "{out}");
}

#[test]
fn the_page_of_the_same_input_is_the_same_at_the_same_time() {
    let repository = repository();
    let page = |seconds: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gantry"));
        command.args(["check", "-f", "safe", "--target", "dir:live", "-o", "html"]);
        command.current_dir(repository.path().join("deploy")).env_clear().env("SOURCE_DATE_EPOCH", seconds);
        String::from_utf8(command.output().expect("gantry runs").stdout).expect("text")
    };
    let first = page("1795219200");
    assert!(first.contains("<dt>Time</dt><dd>2026-11-21 00:00 UTC</dd>"), "{first:.4000}");
    assert!(first.contains("<dt>Command</dt><dd><code>gantry check -f safe --target dir:live -o html</code></dd>"));
    assert_eq!(first, page("1795219200"));
    assert_ne!(first, page("0"));
}

/// What the page says of the other presets is what runs with these presets say.
#[test]
fn the_row_of_presets_is_what_each_preset_says() {
    let repository = repository();
    let objects = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/html/objects.yaml");
    std::fs::copy(objects, repository.path().join("deploy/live/objects.yaml")).expect("a copy");
    let row = |preset: &str| -> Vec<String> {
        let ran =
            gantry(&repository, &["check", "-f", "breaking", "--target", "dir:live", "--preset", preset, "-o", "html"]);
        assert_eq!(ran.status.code(), Some(3), "{}", String::from_utf8_lossy(&ran.stderr));
        let page = String::from_utf8(ran.stdout).expect("text");
        let table = page.split_once("<table class=\"presets\">").expect("the row").1;
        let row = table.split_once("<tbody>").expect("a body").1.split("</tr>").next().expect("it ends");
        row.split("<td>").skip(1).map(|cell| cell.split("</td>").next().expect("it ends").to_owned()).collect()
    };
    let documented = row("documented");
    assert_eq!(
        (documented[1].clone(), documented[2].clone()),
        (row("semantic")[1].clone(), row("evidence")[2].clone())
    );
    assert!(documented[0] != documented[1] && documented[1] != documented[2], "they differ: {documented:?}");
    for (column, tool) in [(3, "kapp"), (4, "olm-v1"), (5, "crdify")] {
        assert_eq!(documented[column], row(tool)[column], "{tool}");
    }
    let kapp = row("kapp");
    assert!(kapp[3].contains("blocks") && kapp[..3].iter().all(|cell| cell.contains("not known")), "{kapp:?}");
}
