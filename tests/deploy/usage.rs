//! Command lines that cannot be meant as they are.

use std::path::PathBuf;

use crate::support::{Bed, Gantry, Output};

fn run(bed: &Bed, arguments: &[&str]) -> Output {
    // Usage errors are found before any request.
    bed.gantry(PathBuf::from("none"), arguments).run()
}

#[test]
fn flags_about_apps_need_an_app() {
    let bed = Bed::new();
    bed.write("manifests.yaml", &bed.config_map("a", "1"));
    let flags = [
        "--prune=yes",
        "--prune=kapp",
        "--prune-max=3",
        "--prune-adopted",
        "--take-over-app",
        "--break-lock",
        "--app-namespace=x",
        "--from-kapp",
    ];
    for flag in flags {
        let name = flag.split('=').next().expect("a name");
        for command in ["deploy", "check", "diff"] {
            let arguments = [command, "-f", "manifests.yaml", flag];
            run(&bed, &arguments).code(2).stderr_contains(name).stderr_contains("--app=NAME");
            // With an app they get as far as the cluster.
            let of_app = run(&bed, &[&arguments[..], &["-a", "shop"]].concat());
            of_app.contains_nowhere("--app=NAME");
        }
    }
    for flag in ["--prune=no", "--prune=ask"] {
        run(&bed, &["check", "-f", "manifests.yaml", flag]).contains_nowhere("--app=NAME");
    }
    // The configuration can name the app, too.
    bed.write("gantry.yaml", "{apiVersion: gantry.dev/v1alpha1, kind: Config, app: shop}");
    run(&bed, &["check", "-f", "manifests.yaml", "--prune=yes"]).contains_nowhere("--app=NAME");
}

#[test]
fn the_replacement_of_a_flag_of_kapp_is_named_instead_of_a_similar_flag() {
    let bed = Bed::new();
    let tips = [
        ("--prev-app=x", "gantry apps rename -a OLD --to NEW"),
        ("--warnings", "warnings of the API server are always shown"),
        ("--allow-ns=x", "a Role limits where a deploy may write"),
        ("--allow-cluster", "a Role limits where a deploy may write"),
        ("--allow-check=x", "choose the checks with --preflight"),
        ("--labels=a=b", "set additionalLabels in the configuration"),
        ("--metadata-file-output=x", "use -o json=FILE"),
        ("--kubeconfig-context=x", "use --context"),
        ("--diff-run", "use gantry check"),
    ];
    for (flag, tip) in tips {
        let output = run(&bed, &["deploy", "-f", "x", flag]);
        output.code(2).stderr_contains("unexpected argument").stderr_contains(tip);
        output.stderr_contains("Usage: gantry deploy ").contains_nowhere("similar");
    }
    // No flag of gantry that deletes, writes more or checks less is guessed.
    for flag in ["--prune-adapted", "--take-over-apps", "--warn-onl", "--force-conflict", "--allow-exe", "--yess"] {
        let output = run(&bed, &["deploy", "-f", "x", flag]);
        output.code(2).stderr_contains("unexpected argument").stderr_contains("Usage: gantry deploy ");
        output.contains_nowhere("similar");
    }
    insta::assert_snapshot!(run(&bed, &["deploy", "-f", "x", "--namespce=x"]).shown(), @r#"
    exit code 2
    ----- stderr
    error: unexpected argument '--namespce' found

      tip: a similar argument exists: '--namespace'

    Usage: gantry deploy --file <PATH> --namespace <NAME>

    For more information, try '--help'.
    "#);
    let commands = [("version", "gantry --version"), ("ls", "gantry apps"), ("rename", "gantry apps rename")];
    for (command, tip) in commands {
        run(&bed, &[command]).code(2).stderr_contains("unrecognized subcommand").stderr_contains(tip);
    }
    insta::assert_snapshot!(Gantry::new().args(["chek"]).run().shown(), @r#"
    exit code 2
    ----- stderr
    error: unrecognized subcommand 'chek'

      tip: a similar subcommand exists: 'check'

    Usage: gantry <COMMAND>

    For more information, try '--help'.
    "#);
}
