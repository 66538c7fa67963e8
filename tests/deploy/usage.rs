//! Command lines that cannot be meant as they are.

use std::path::PathBuf;

use crate::support::{Bed, Output};

fn run(bed: &Bed, arguments: &[&str]) -> Output {
    // Usage errors are found before any request.
    bed.gantry(PathBuf::from("none"), arguments).run()
}

#[test]
fn flags_that_mean_nothing_without_an_app_need_one() {
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
