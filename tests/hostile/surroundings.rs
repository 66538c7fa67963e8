//! The environment of a run: variables, limits, signals, and a report that cannot be written.

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::{Bed, Gantry, Mock, Reply, Request, eventually};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {key: x}\n";

fn bed(manifests: &str) -> Bed {
    let bed = Bed::new();
    bed.write("manifests.yaml", manifests);
    bed
}

fn many(count: usize) -> String {
    let manifests: Vec<String> =
        (0..count).map(|number| CONFIG_MAP.replace("name: a", &format!("name: a{number}"))).collect();
    manifests.join("---\n")
}

#[test]
fn a_variable_that_is_not_utf_8_is_an_error() {
    let server = Mock::start(|_| None);
    let bed = bed(CONFIG_MAP);
    let gantry = || bed.deploy(server.kubeconfig(bed.folder.path(), "unused"), &[]);
    let broken = OsStr::from_bytes(b"st\xffging");
    for name in ["GANTRY_CONTEXT", "GANTRY_TIMEOUTS__REQUEST", "GANTRY_PREFLIGHT"] {
        let run = gantry().env(name, broken).run();
        run.code(2).stderr_contains(&format!("error: {name}: the value is not UTF-8\n"));
    }
    let run = gantry().env("GANTRY_CONTXT", broken).run();
    run.code(2).stderr_contains("unknown environment variable GANTRY_CONTXT").stderr_contains("GANTRY_CONTEXT?");
    assert!(server.requests().is_empty());
    // Variables of other programs can have any value.
    gantry().env("OTHER", broken).env("GANTRY_TEST_X", broken).run().code(0);
}

#[test]
fn a_home_whose_name_is_not_utf_8_is_supported() {
    let server = Mock::start(|_| None);
    let bed = bed(CONFIG_MAP);
    for (variable, below) in [("HOME", ".config/gantry"), ("XDG_CONFIG_HOME", "gantry")] {
        let home = bed.folder.path().join(OsStr::from_bytes(b"st\xffging"));
        fs::create_dir_all(home.join(below)).unwrap();
        let config = "apiVersion: gantry.dev/v1alpha1\nkind: Config\nzzz: 1\n";
        fs::write(home.join(below).join("config.yaml"), config).unwrap();
        let run = bed.deploy(server.kubeconfig(bed.folder.path(), "unused"), &[]).env(variable, &home).run();
        run.code(2).stderr_contains("error: unknown key \"zzz\"").stderr_contains("config.yaml:3:1\n");
        fs::remove_dir_all(&home).unwrap();
    }
    assert!(server.requests().is_empty());
}

#[test]
fn too_few_open_files_are_an_error_without_a_panic() {
    let server = Mock::start(|_| None);
    let bed = bed(&many(40));
    let gantry = |files: u64| bed.deploy(server.kubeconfig(bed.folder.path(), "unused"), &[]).limit("-n", files);
    for files in [5, 6, 7, 8, 9, 10, 12, 16, 24, 32] {
        let run = gantry(files).run();
        run.code(1).contains_nowhere("panicked").stderr_contains("error: cannot start: Too many open files");
        run.stderr_contains("ulimit");
    }
    assert!(server.requests().is_empty());
    gantry(64).run().code(0);
}

/// macOS has no such limit.
#[cfg(target_os = "linux")]
#[test]
fn too_few_threads_are_an_error_without_a_panic() {
    let server = Mock::start(|_| None);
    let bed = bed(CONFIG_MAP);
    let mut codes = BTreeSet::new();
    // Each thread reserves its stack, so a limit on address space also limits the number of threads. If there is no
    // room for the program or for the first bytes of a thread, the runtime itself ends the process with a signal.
    for mebibytes in (60..400).step_by(20) {
        let run = bed.deploy(server.kubeconfig(bed.folder.path(), "unused"), &[]).limit("-v", mebibytes << 10).run();
        let code = run.code;
        // The loader found room for the program, but not for libc: gantry has not begun.
        if code == Some(127) && run.stderr.contains("error while loading shared libraries: ") {
            continue;
        }
        if code == Some(1) {
            run.stderr_contains("error: cannot start: ").stderr_contains("ulimit");
        }
        codes.insert(code);
    }
    assert!(codes.contains(&Some(0)) && codes.contains(&Some(1)), "{codes:?}");
    assert!(codes.is_subset(&[Some(0), Some(1), None].into()), "{codes:?}");
}

#[test]
fn a_second_interrupt_says_how_much_was_applied() {
    let is_last = |asked: &Request| asked.is_write() && asked.path.ends_with("/a5");
    let server = Mock::start(move |asked| is_last(asked).then_some(Reply::Hang));
    let bed = bed(&many(20));
    let mut run = bed.deploy(server.kubeconfig(bed.folder.path(), "unused"), &[]).spawn();
    let writes = || server.requests().into_iter().filter(Request::is_write).count();
    eventually("all objects are sent", || (writes() == 20).then_some(()));
    run.interrupt();
    run.wait_for_stderr("press Ctrl-C again to quit immediately");
    run.interrupt();
    let out = run.wait();
    out.code(1).contains_nowhere("panicked");
    let line = out.stderr.lines().find_map(|line| line.strip_prefix("error: interrupted; ")).unwrap_or_default();
    let (count, rest) = line.split_once(' ').unwrap_or_default();
    // Eight requests run at the same time, and one of them gets no answer.
    assert!(count.parse::<usize>().is_ok_and(|count| (12..=19).contains(&count)), "{out}");
    assert_eq!(
        rest,
        "of 20 changes were made, and those in flight may have been too; run the same command again to continue"
    );
}

/// A deploy to a folder, which needs no server.
fn to_folder(bed: &Bed, more: &[&str]) -> Gantry {
    fs::create_dir_all(bed.folder.path().join("live")).expect("a folder");
    Gantry::new().cwd(bed.folder.path()).args(["deploy", "-f", "manifests.yaml", "--target", "dir:live"]).args(more)
}

#[test]
fn a_report_that_cannot_be_written_says_what_was_applied() {
    let full = || File::options().write(true).open("/dev/full").expect("/dev/full");
    let closed = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        writer
    };
    let applied = |gantry: Gantry, bed: &Bed, why: &str| {
        let out = gantry.run();
        out.code(1).stderr_contains(&format!("error: cannot write {why}")).contains_nowhere("panicked");
        out.stderr_contains("Applied      configmap/a0 -n default\n             configmap/a1 -n default\n");
        out.stderr_contains("Deployed: 2 created");
        assert!(bed.folder.path().join("live/configmap_default_a1.yaml").exists(), "{out}");
    };
    let fresh = || bed(&many(2));
    let bed = fresh();
    applied(to_folder(&bed, &["-o", "json=/dev/full"]), &bed, "the report to /dev/full: No space left on device");
    let bed = fresh();
    applied(to_folder(&bed, &["-o", "json"]).stdout(full()), &bed, "to standard output: No space left on device");
    let bed = fresh();
    applied(to_folder(&bed, &["-o", "json"]).stdout(closed()), &bed, "to standard output: Broken pipe");
    // A file that cannot be written does not prevent another from being written.
    let bed = fresh();
    let both = ["-o", "json=/dev/full", "-o", "json=report.json"];
    applied(to_folder(&bed, &both), &bed, "the report to /dev/full: No space left on device");
    let report = fs::read_to_string(bed.folder.path().join("report.json")).expect("the other report");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&report).expect("JSON")["outcome"], "deployed");

    // A human report comes first, for the question: if it cannot be written, nothing is deployed.
    let bed = fresh();
    to_folder(&bed, &[]).stdout(full()).run().code(1).stderr_contains("cannot write to standard output");
    assert_eq!(fs::read_dir(bed.folder.path().join("live")).expect("the folder").count(), 0);
}

#[test]
fn a_report_never_overwrites_an_input_file() {
    let server = Mock::start(|_| None);
    let bed = bed(CONFIG_MAP);
    let folder = bed.folder.path();
    let config = "apiVersion: gantry.dev/v1alpha1\nkind: Config\n";
    for name in ["gantry.yaml", "other.yaml"] {
        bed.write(name, config);
    }
    fs::create_dir(folder.join("more")).expect("a folder");
    bed.write("more/b.yaml", &CONFIG_MAP.replace("name: a", "name: b"));
    let kubeconfig = server.kubeconfig(folder, "unused");
    symlink("manifests.yaml", folder.join("link")).expect("a link");
    fs::hard_link(folder.join("manifests.yaml"), folder.join("hard")).expect("a link");
    let texts = || -> Vec<Vec<u8>> {
        let read = |name: &str| fs::read(folder.join(name)).expect("a file");
        ["manifests.yaml", "gantry.yaml", "other.yaml", "more/b.yaml", "mock.kubeconfig"].map(read).to_vec()
    };
    let before = texts();
    let whole = folder.join("manifests.yaml").display().to_string();
    let gantry = || {
        let args = ["deploy", "-f", "manifests.yaml", "-f", "more", "-c", "other.yaml"];
        Gantry::new().kubeconfig(&kubeconfig).cwd(folder).args(args)
    };
    for (report, over) in [
        ("manifests.yaml", "manifests.yaml"),
        ("./more/../manifests.yaml", "manifests.yaml"),
        (&whole, "manifests.yaml"),
        ("link", "manifests.yaml"),
        ("hard", "manifests.yaml"),
        ("gantry.yaml", "gantry.yaml"),
        ("other.yaml", "other.yaml"),
        ("more/b.yaml", "more/b.yaml"),
        ("mock.kubeconfig", "mock.kubeconfig"),
    ] {
        for format in ["json", "human"] {
            let message = format!("error: the report to {report} would overwrite {over}, which this run reads\n");
            let output = format!("{format}={report}");
            gantry().args(["-o", &output]).run().code(2).stderr_contains(&message);
            gantry().env("GANTRY_OUTPUT", &output).run().code(2).stderr_contains(&message);
        }
        assert!(texts() == before, "{report}");
    }
    assert!(server.requests().is_empty());

    // Also if that file itself has the error.
    let broken = |name: &str, text: &str, output: &str, code: i32| {
        let old = fs::read(folder.join(name)).expect("a file");
        bed.write(name, text);
        gantry().args(["-o", output]).run().code(code);
        assert_eq!(fs::read_to_string(folder.join(name)).expect("a file"), text);
        fs::write(folder.join(name), old).expect("write it back");
    };
    broken("gantry.yaml", "kind: [", "json=gantry.yaml", 2);
    broken("manifests.yaml", "kind: [", "json=link", 2);
    broken("more/b.yaml", "kind: [", "json=more/b.yaml", 2);

    gantry().args(["-o", "json=report.json"]).run().code(0);
    gantry().args(["-o", "json=report.json"]).run().code(0);
    assert!(fs::read_to_string(folder.join("report.json")).expect("a report").contains("\"outcome\""));
}

#[test]
fn a_report_never_overwrites_a_live_object() {
    let bed = bed(CONFIG_MAP);
    to_folder(&bed, &[]).run().code(0);
    let live = bed.folder.path().join("live/configmap_default_a.yaml");
    let before = fs::read(&live).expect("the object");
    let run = to_folder(&bed, &["-o", "json=live/configmap_default_a.yaml"]).run();
    run.code(2).stderr_contains("would overwrite a file of the target");
    assert_eq!(fs::read(&live).expect("the object"), before);
    assert!(Path::new(&live).exists());
}

/// The file came with a clone: nobody who deploys has reviewed it.
#[test]
fn a_project_file_cannot_deploy_to_a_folder_outside_of_its_own() {
    let bed = bed(CONFIG_MAP);
    let elsewhere = tempfile::tempdir().expect("a folder");
    let config = "apiVersion: gantry.dev/v1alpha1\nkind: Config\n";
    bed.write("gantry.yaml", &format!("{config}target: dir:{}\n", elsewhere.path().display()));
    let deploy = || Gantry::new().cwd(bed.folder.path()).args(["deploy", "--yes", "-f", "manifests.yaml"]);
    let run = deploy().run();
    run.code(2).stderr_contains("is outside the folder of this file").stderr_contains("gantry.yaml:3:9");
    assert_eq!(fs::read_dir(elsewhere.path()).expect("the folder").count(), 0);
    deploy().args(["-c", "gantry.yaml"]).run().code(0);
    assert_eq!(fs::read_dir(elsewhere.path()).expect("the folder").count(), 1);
}

/// A proof has no time limit, but can be interrupted: it would take a minute to finish.
#[test]
fn an_interrupt_during_a_long_proof_ends_the_run() {
    let crds = |pattern: &dyn Fn(usize) -> String| {
        let fields: Vec<String> =
            (0..60).map(|n| format!("f{n}: {{type: string, pattern: '{}'}}", pattern(n))).collect();
        let crd = |number: usize| {
            format!(
                "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: k{number}s.example.com}}\n\
                 spec:\n  group: example.com\n  names: {{kind: K{number}, plural: k{number}s}}\n  scope: Namespaced\n  versions:\n  \
                 - name: v1\n    served: true\n    storage: true\n    schema: {{openAPIV3Schema: {{type: object, properties: \
                 {{spec: {{type: object, properties: {{{}}}}}}}}}}}\n",
                fields.join(", ")
            )
        };
        (0..40).map(crd).collect::<String>()
    };
    let bed = bed(&crds(&|n| format!("^([a-z]{{1,{}}}|[0-9a-f]{{3,200}})b?$", 200 + n)));
    fs::create_dir(bed.folder.path().join("live")).expect("a folder");
    let live = crds(&|_| "^[a-z]{1,300}b$".to_owned());
    bed.write("live/crds.yaml", &live);
    let mut terminal = to_folder(&bed, &["-y", "--color", "never"]).on_terminal();
    terminal.wait_for("checking");
    terminal.press("\u{3}");
    let run = terminal.wait();
    run.code(1).stderr_contains("error: interrupted; nothing was written");
    assert_eq!(fs::read_to_string(bed.folder.path().join("live/crds.yaml")).expect("the CRDs"), live);
}

/// The files `gantry.yaml` of a parent folder, and of the folder itself.
#[test]
fn a_project_file_that_cannot_be_read_is_an_error() {
    let bed = bed(CONFIG_MAP);
    let folder = bed.folder.path();
    let inner = folder.join("inner");
    fs::create_dir(&inner).expect("a folder");
    fs::create_dir(folder.join("live")).expect("a folder");
    bed.write("gantry.yaml", "apiVersion: gantry.dev/v1alpha1\nkind: Config\ntarget: dir:live\n");
    let gantry = || Gantry::new().cwd(&inner).args(["check", "-f", "../manifests.yaml"]);
    gantry().run().code(0);
    let entry = inner.join("gantry.yaml");
    symlink("gone.yaml", &entry).expect("a link");
    let gone = "error: cannot read the config file gantry.yaml: broken symbolic link: gone.yaml does not exist\n";
    gantry().run().code(2).stderr_contains(gone);
    fs::remove_file(&entry).expect("remove it");
    fs::create_dir(&entry).expect("a folder");
    gantry().run().code(2).stderr_contains("error: cannot read the config file gantry.yaml: it is a directory\n");
    fs::remove_dir(&entry).expect("remove it");

    let home = folder.join("home");
    fs::create_dir_all(home.join("gantry")).expect("a folder");
    symlink("gone.yaml", home.join("gantry/config.yaml")).expect("a link");
    let run = gantry().env("XDG_CONFIG_HOME", &home).run();
    run.code(2).stderr_contains("config.yaml: broken symbolic link: gone.yaml does not exist\n");
    gantry().env("HOME", "/dev/null").run().code(0);
}

#[test]
fn two_reports_to_one_file_are_refused() {
    let bed = bed(CONFIG_MAP);
    let folder = bed.folder.path();
    symlink("a.json", folder.join("link")).expect("a link");
    for other in ["a.json", "./a.json", "link"] {
        for exists in [false, true] {
            let _ = fs::remove_file(folder.join("a.json"));
            if exists {
                bed.write("a.json", "before");
            }
            let run = to_folder(&bed, &["-o", "json=a.json", "-o", &format!("sarif={other}")]).run();
            run.code(2).stderr_contains(&format!("error: two reports to one file: {other}\n"));
            let report = fs::read_to_string(folder.join("a.json")).expect("the first report");
            assert!(report.contains("two reports to one file"), "{report}");
        }
    }
    assert_eq!(fs::read_dir(folder.join("live")).expect("the folder").count(), 0);
    to_folder(&bed, &["-o", "json=/dev/null", "-o", "sarif=/dev/null", "-o", "junit=b.xml"]).run().code(0);
}

fn pipe(bed: &Bed) -> std::path::PathBuf {
    let path = bed.folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().expect("run mkfifo");
    assert!(made.success());
    path
}

#[test]
fn a_report_to_a_pipe_without_a_reader_is_an_error() {
    let bed = bed(CONFIG_MAP);
    let path = pipe(&bed);
    let why = "error: cannot write the report to ";
    let late = "pipe: it is a pipe, and no program opened it to read the report within 10 s\n";
    to_folder(&bed, &["-o", "json=pipe"]).run().code(1).stderr_contains(why).stderr_contains(late);

    std::thread::scope(|scope| {
        let run = to_folder(&bed, &["-o", "json=pipe"]).spawn();
        let report = scope.spawn(|| fs::read_to_string(&path).expect("a report"));
        run.wait().code(0);
        assert!(report.join().expect("the reader").contains("\"outcome\""));
    });
}

/// `-c <(…)` of a shell is a pipe that another process writes to.
#[test]
fn a_config_file_from_a_pipe_is_read() {
    let bed = bed(CONFIG_MAP);
    let path = pipe(&bed);
    std::thread::scope(|scope| {
        let run = to_folder(&bed, &["-c", "pipe"]).spawn();
        scope.spawn(|| fs::write(&path, "apiVersion: gantry.dev/v1alpha1\nkind: Config\nzzz: 1\n"));
        run.wait().code(2).stderr_contains("error: unknown key \"zzz\"");
    });
}

#[test]
fn permissions_that_no_server_accepts_are_not_printed() {
    let server = Mock::start(|_| None);
    let bed = bed(CONFIG_MAP);
    let kubeconfig = server.kubeconfig(bed.folder.path(), "unused");
    for (flags, why) in [
        (["--name", "a/b"], "error: --name: \"a/b\" is not the name of a role: may not contain '/'\n"),
        (["--name", ""], "error: --name: \"\" is not the name of a role: it is empty\n"),
        (
            ["--as", "system:serviceaccount:A B:c"],
            "error: \"system:serviceaccount:A B:c\" is not the name of a service account: \
             system:serviceaccount:NAMESPACE:NAME\n",
        ),
        (
            ["--as", "system:serviceaccount:a"],
            "error: \"system:serviceaccount:a\" is not the name of a service account: \
             system:serviceaccount:NAMESPACE:NAME\n",
        ),
    ] {
        for of in [&["-f", "manifests.yaml"], &["--for", "snapshot"]] {
            let gantry = bed.gantry(kubeconfig.clone(), &["permissions"]).args(of).args(flags);
            let run = gantry.run();
            run.code(2).stderr_contains(why);
            assert_eq!(run.stdout, "");
        }
    }
    assert!(server.requests().is_empty());
}
