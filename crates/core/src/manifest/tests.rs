use std::fs;
use std::io::{self, empty};
use std::path::Path;

use serde_json::json;
use tempfile::TempDir;

use super::*;

const CRD: &str = "\
# A comment before it.
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: samples.test.example.com
spec:
  versions:
  - name: v1
    schema: {openAPIV3Schema: {type: object}}
  - name: v2
";

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

fn from_text(text: &str) -> Result<LoadedManifests, Vec<Problem>> {
    load(&["-".to_owned()], &mut Some(text.as_bytes()))
}

/// The names of the objects in a text, which must be valid.
fn names(text: &str) -> Vec<String> {
    let loaded = from_text(text).unwrap_or_else(|problems| panic!("{text:?}: {problems:#?}"));
    loaded.manifests.into_iter().map(|manifest| manifest.object.name.clone()).collect()
}

/// The problems of a text as `place: message`.
fn problems(text: &str) -> Vec<String> {
    match from_text(text) {
        Ok(loaded) => panic!("{text:?} was read: {loaded:?}"),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

fn argument(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The problems when a folder is loaded, without the folder's own path.
fn folder_problems(folder: &TempDir, inputs: &[&str]) -> Vec<String> {
    let inputs: Vec<String> = inputs.iter().map(|input| argument(&folder.path().join(input))).collect();
    let problems = load(&inputs, &mut Some(empty())).unwrap_err();
    let prefix = format!("{}/", folder.path().display());
    problems.iter().map(|problem| problem.to_string().replace(&prefix, "")).collect()
}

#[test]
fn an_object_has_its_file_line_and_document() {
    let folder = folder(&[("m.yaml", &format!("{}---\n# only a comment\n---\n{CRD}", config_map("a")))]);
    let file = argument(&folder.path().join("m.yaml"));
    let loaded = load(std::slice::from_ref(&file), &mut Some(empty())).unwrap();
    let [first, crd] = &loaded.manifests[..] else { panic!("{loaded:?}") };
    assert_eq!((first.origin.document, first.origin.line), (1, 1));
    assert_eq!((crd.origin.document, crd.origin.line), (2, 9));
    assert_eq!(crd.origin.location().to_string(), format!("{file}:9"));
    assert!(crd.object.is_crd());
    assert_eq!(crd.raw.value()["spec"]["versions"][1], json!({"name": "v2"}));
    assert_eq!(&crd.origin.source.text()[crd.origin.bytes.clone()], format!("---\n{CRD}"));
}

#[test]
fn positions_are_found_on_demand() {
    let text = format!("{}---\n{CRD}", config_map("a"));
    let loaded = from_text(&text).unwrap();
    let spans = Spans::parse(&loaded.manifests[1].origin);
    let locate = |path: &[Step]| {
        let found = spans.locate(path);
        (found.location.line, found.location.column, found.length, found.depth)
    };
    let versions: [Step; 2] = ["spec".into(), "versions".into()];
    assert_eq!(locate(&versions), (12, 3, 8, 2));
    assert_eq!(locate(&[&versions[..], &[0.into()]].concat()), (13, 5, 8, 3));
    assert_eq!(
        locate(&[&versions[..], &[0.into(), "schema".into(), "openAPIV3Schema".into()]].concat()),
        (14, 14, 15, 5)
    );
    // The place of a missing value is that of its nearest ancestor.
    assert_eq!(locate(&[&versions[..], &[1.into(), "schema".into(), "x".into()]].concat()), (15, 5, 8, 3));
    assert_eq!(locate(&["status".into()]), (7, 1, 35, 0));
}

/// Finds the name of the same object in every notation of a list.
#[test]
fn positions_inside_lists_are_those_of_the_file() {
    let block = "---\n# é\napiVersion: v1\nkind: List\nitems:\n  - apiVersion: v1\n    kind: A\n    metadata: {name: a}\n  # c\n  \
                 - apiVersion: v1\n    kind: A\n    metadata:\n\n    # d\n      name: b\n    text: |\n      - x\n";
    let json = "{\"kind\": \"List\", \"apiVersion\": \"v1\",\n \"items\": [\n  {\"apiVersion\": \"v1\", \"kind\": \"A\",\n   \
                \"metadata\": {\"name\": \"a\"}},\n  {\"apiVersion\": \"v1\", \"kind\": \"A\",\n   \"metadata\": {\"é\": 1, \"name\": \"b\"}}]}";
    let one_line = json.replace('\n', "");
    let anchored = "kind: List\napiVersion: v1\nx: &x {name: b}\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: a}}\n\
                    - apiVersion: v1\n  kind: A\n  metadata: *x\n";
    for text in [block, json, &one_line, anchored, &format!("a: 1\n---\n{block}")[5..]] {
        let loaded = from_text(text).unwrap();
        let origin = &loaded.manifests[1].origin;
        let found = Spans::parse(origin).locate(&["metadata".into(), "name".into()]);
        let line = text.lines().nth(found.location.line - 1).unwrap();
        let key: String = line.chars().skip(found.location.column - 1).take(found.length).collect();
        assert_eq!((key.trim_matches('"'), found.depth), ("name", 2), "{text}");
        assert!(line.contains('b'), "{line}");
        assert_eq!(origin.within, ["items".into(), 1.into()]);
    }
}

#[test]
fn items_of_a_list_are_read_as_manifests() {
    let list = |kind: &str, items: &str| format!("apiVersion: v1\nkind: {kind}\nitems: {items}\n");
    let a = "{apiVersion: v1, kind: Secret, metadata: {name: a}}";
    let b = "{metadata: {name: b}}";
    assert_eq!(names(&list("List", &format!("[{a}]"))), ["a"]);
    let nested =
        format!("[{{apiVersion: v1, kind: List, items: [{a}]}}, {{apiVersion: v1, kind: X, metadata: {{name: z}}}}]");
    assert_eq!(names(&list("List", &nested)), ["a", "z"]);
    // Items of a typed list can leave out apiVersion and kind.
    let typed = from_text(&list("PodList", &format!("[{a}, {b}]"))).unwrap();
    let kinds: Vec<_> = typed.manifests.iter().map(|manifest| manifest.object.kind.as_str()).collect();
    assert_eq!(kinds, ["Secret", "Pod"]);
    assert_eq!(typed.manifests[1].raw.json(), r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}"#);
    // A kind that ends in List but has no list of items is an object; an empty List has no objects.
    assert_eq!(
        names(&format!(
            "apiVersion: x/v1\nkind: AllowList\nmetadata: {{name: w}}\nitems: {{}}\n---\n{}",
            list("List", "[]")
        )),
        ["w"]
    );
    assert_eq!(
        problems(&list("List", "\n- 1\n- {kind: A}\n- apiVersion: v1\n  kind: A\n  metadata: {}\n")),
        [
            "<stdin>:4:3: a manifest is a mapping with apiVersion, kind and metadata, but this is a number",
            "<stdin>:5:3: the document has no apiVersion",
            "<stdin>:8:3: the A has no metadata.name",
        ]
    );
    assert_eq!(
        problems(&list("List", "{a: 1}")),
        ["<stdin>:3:1: the items of a List must be a list, but this is a mapping"]
    );
}

#[test]
fn json_values_are_read_alone_and_one_after_another() {
    let object = |name: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}}).to_string();
    assert_eq!(names(&object("a")), ["a"]);
    assert_eq!(names(&format!("{}{}\n{}\n", object("a"), object("b"), object("c"))), ["a", "b", "c"]);
    let emoji = object("a").replace("\"a\"", "\"a\",\"x\":\"\\ud83d\\ude00\"");
    let loaded = from_text(&format!("\n{emoji}")).unwrap();
    assert_eq!(loaded.manifests[0].raw.value()["metadata"]["x"], "😀");
    let place = Spans::parse(&loaded.manifests[0].origin).locate(&["metadata".into()]);
    assert_eq!((place.depth, place.location.line), (1, 2));
    // This key is too long for YAML.
    let long = object("a").replace("\"a\"", &format!("\"a\",\"{}\":1", "k".repeat(1100)));
    let loaded = from_text(&format!("\n{long}")).unwrap();
    assert_eq!(Spans::parse(&loaded.manifests[0].origin).locate(&["metadata".into()]).depth, 0);
    assert_eq!(problems(&format!("{}\n{{\"a\": }}x", object("a"))).len(), 1);
}

#[test]
fn config_documents_are_set_apart() {
    let text = format!(
        "apiVersion: gantry.dev/v1alpha1\nkind: Config\n---\napiVersion: kapp.k14s.io/v1alpha1\nkind: Config\n---\n{}---\n\
         apiVersion: example.com/v1\nkind: Config\nmetadata: {{name: mine}}\n",
        config_map("a")
    );
    let loaded = from_text(&text).unwrap();
    let lines: Vec<_> = loaded.configs.iter().map(|config| (config.origin.line, config.origin.document)).collect();
    assert_eq!(lines, [(1, 1), (4, 2)]);
    assert_eq!(loaded.manifests.len(), 2);
}

#[test]
fn directories_are_read_recursively_and_sorted() {
    let files = ["b.yaml", "a.yml", "sub/c.json", "sub/.hidden.yaml", ".git/d.yaml", "notes.md", "sub/e.txt", "f.YAML"];
    let folder = folder(&files.map(|file| (file, "")));
    for (number, file) in files.iter().enumerate() {
        fs::write(folder.path().join(file), config_map(&format!("m{number}"))).unwrap();
    }
    let loaded = load(&[argument(folder.path())], &mut Some(empty())).unwrap();
    let names: Vec<_> = loaded.manifests.iter().map(|manifest| manifest.object.name.as_str()).collect();
    assert_eq!(names, ["m4", "m1", "m0", "m3", "m2"]);
    assert!(loaded.manifests[1].origin.source.name.ends_with("a.yml"));
}

#[test]
fn a_file_that_is_named_twice_is_read_once() {
    let folder = folder(&[("a.yaml", &config_map("a")), ("b.txt", &config_map("b"))]);
    let [a, b] = ["a.yaml", "b.txt"].map(|file| argument(&folder.path().join(file)));
    let inputs = [a.clone(), argument(folder.path()), b, a.replace("a.yaml", "./a.yaml"), "-".into(), "-".into()];
    let loaded = load(&inputs, &mut Some(config_map("c").as_bytes())).unwrap();
    let names: Vec<_> = loaded.manifests.iter().map(|manifest| manifest.object.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[cfg(unix)]
#[test]
fn links_to_files_are_followed_and_links_to_directories_are_not() {
    use std::os::unix::fs::symlink;
    let folder = folder(&[("real/a.yaml", &config_map("a")), ("outside/b.yaml", &config_map("b"))]);
    let real = folder.path().join("real");
    symlink(folder.path().join("outside/b.yaml"), real.join("b.yaml")).unwrap();
    symlink(&real, real.join("loop")).unwrap();
    symlink("a.yaml", real.join("same.yaml")).unwrap();
    let loaded = load(&[argument(&real)], &mut Some(empty())).unwrap();
    assert_eq!(loaded.manifests.len(), 2);
    let [notice] = &loaded.notices[..] else { panic!("{:?}", loaded.notices) };
    assert!(notice.to_string().ends_with("loop: a link to a directory, not followed"), "{notice}");

    symlink("nowhere", real.join("dead.yaml")).unwrap();
    assert_eq!(folder_problems(&folder, &["real"]), ["real/dead.yaml: broken symbolic link: nowhere does not exist"]);
}

/// As the kubelet mounts it: `..data` leads to a folder with the files, and links lead to them.
#[cfg(unix)]
#[test]
fn the_files_of_a_mounted_config_map_are_read_once_by_their_names() {
    use std::os::unix::fs::symlink;
    let folder = folder(&[("..2026_01_02/a.yaml", &config_map("a")), ("..2026_01_02/sub/b.yaml", &config_map("b"))]);
    symlink("..2026_01_02", folder.path().join("..data")).unwrap();
    symlink("..data/a.yaml", folder.path().join("a.yaml")).unwrap();
    let loaded = load(&[argument(folder.path())], &mut Some(empty())).unwrap();
    assert!(loaded.notices.is_empty(), "{:?}", loaded.notices);
    let files: Vec<&str> = loaded.manifests.iter().map(|manifest| &*manifest.origin.source.name).collect();
    let expected = ["a.yaml", "..2026_01_02/sub/b.yaml"].map(|file| format!("{}/{file}", argument(folder.path())));
    assert_eq!(files, expected);
}

#[test]
fn a_broken_link_that_is_named_is_reported() {
    #[cfg(unix)]
    {
        let folder = folder(&[]);
        std::os::unix::fs::symlink("../gone.yaml", folder.path().join("link.yaml")).unwrap();
        let problems = folder_problems(&folder, &["link.yaml"]);
        assert_eq!(problems, ["link.yaml: broken symbolic link: ../gone.yaml does not exist"]);
    }
}

#[test]
fn after_very_many_problems_no_more_documents_are_read() {
    let folder = folder(&[("a.yaml", &"--- x\n".repeat(40_000))]);
    let problems = folder_problems(&folder, &["a.yaml"]);
    assert!(problems.len() < 20_000, "{}", problems.len());
    assert!(problems.iter().any(|problem| problem.starts_with("more than 10000 problems")), "{:?}", problems.last());
}

#[test]
fn problems_of_all_files_are_reported_at_once_and_in_order() {
    let folder = folder(&[
        ("b.yaml", "kind: A\n---\na: [1,\n---\n- x\n---\napiVersion: v1\nkind: A\nmetadata:\n  name: yes\n"),
        ("a.yaml", "apiVersion: v1\nkind: A\nmetadata:\n  generateName: x-\n---\nb: \"open\n\n"),
        ("c.yaml", "apiVersion: [1]\nkind: 7\nmetadata: {name: a}\n"),
    ]);
    fs::write(folder.path().join("d.yaml"), b"a: \xff\n").unwrap();
    fs::create_dir(folder.path().join("none")).unwrap();
    assert_eq!(
        folder_problems(&folder, &["b.yaml", "missing.yaml", "a.yaml", "none", "c.yaml", "d.yaml"]),
        [
            "a.yaml:4:3: the A has metadata.generateName and no metadata.name",
            "a.yaml:6:4: not valid YAML: found unexpected end of stream while scanning a quoted scalar",
            "b.yaml:1:1: the document has no apiVersion",
            "b.yaml:4:1: not valid YAML: did not find expected node content while parsing a flow node",
            "b.yaml:5:1: a manifest is a mapping with apiVersion, kind and metadata, but this is a list",
            "b.yaml:10:3: metadata.name must be a non-empty string, but is a boolean",
            "c.yaml:1:1: apiVersion must be a non-empty string, but is a list",
            "c.yaml:2:1: kind must be a non-empty string, but is a number",
            "d.yaml:1:4: the file is not UTF-8: byte 3 is 0xFF",
            "missing.yaml: no such file or directory",
            "none: the directory has no .yaml, .yml or .json file",
        ]
    );
}

#[test]
fn other_broken_manifests_are_explained() {
    let metadata = |metadata: &str| problems(&format!("apiVersion: v1\nkind: A\nmetadata: {metadata}\n"));
    assert_eq!(metadata("{name: ''}"), ["<stdin>:3:12: metadata.name must be a non-empty string, but is empty"]);
    assert_eq!(
        metadata("{name: a, namespace: 1}"),
        ["<stdin>:3:21: metadata.namespace must be a non-empty string, but is a number"]
    );
    assert_eq!(metadata("text"), ["<stdin>:3:1: metadata must be a mapping, but is a string"]);
    assert_eq!(metadata(""), ["<stdin>:1:1: the A has no metadata.name"]);
    assert_eq!(metadata("{name: ../../etc}"), ["<stdin>:3:12: \"../../etc\" is not a valid metadata.name"]);
    assert_eq!(
        problems("apiVersion: v1/../x\nkind: A\nmetadata: {name: a}"),
        ["<stdin>:1:1: \"v1/../x\" is not a valid apiVersion"]
    );
    assert_eq!(
        problems("text"),
        ["<stdin>:1:1: a manifest is a mapping with apiVersion, kind and metadata, but this is a string"]
    );
    assert_eq!(problems("spec: {}"), ["<stdin>:1:1: the document has no apiVersion and no kind"]);
    assert_eq!(problems("# nothing\n---\n---\n~\n"), ["no objects found in -"]);
    assert_eq!(problems(""), ["no objects found in -"]);
    let url = load(&["https://example.com/a.yaml".to_owned()], &mut Some(empty())).unwrap_err();
    assert_eq!(url[0].message, "https://example.com/a.yaml: -f does not accept URLs");
}

#[test]
fn an_object_that_is_defined_twice_is_an_error_with_both_positions() {
    let text = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: prod}\n";
    let other = text.replace("apps/v1", "apps/v1beta1");
    let problems = from_text(&format!("{text}---\n# again\n{other}---\n{}", text.replace("prod", "dev"))).unwrap_err();
    let [problem] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!(problem.to_string(), "<stdin>:6:1: deployment.apps/web -n prod is defined twice");
    assert_eq!(problem.help.as_deref(), Some("remove one of them; the first is at <stdin>:1"));
}

#[test]
fn one_of_several_equal_manifests_is_kept() {
    let [a, b, c] = ["a", "b", "c"].map(|name| format!("apiVersion: v1\nkind: A\nmetadata: {{name: {name}}}\n"));
    let as_json = r#"{"metadata": {"name": "b"}, "kind": "A", "apiVersion": "v1"}"#;
    let loaded = from_text(&format!("{a}---\n{b}---\n{a}---\n{c}---\n{as_json}\n---\n{a}")).unwrap();
    let names: Vec<&str> = loaded.manifests.iter().map(|manifest| manifest.object.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let [notice] = &loaded.notices[..] else { panic!("{:?}", loaded.notices) };
    let expected = "<stdin>:9:1: a/a and 2 other objects are defined more than once, with the same content";
    assert_eq!(notice.to_string(), expected);
    assert_eq!(notice.help.as_deref(), Some("a/a is also at <stdin>:1; remove one"));
    // Any difference counts.
    let error = from_text(&format!("{a}---\n{a}data: {{}}\n")).unwrap_err();
    assert_eq!(error[0].to_string(), "<stdin>:5:1: a/a is defined twice");
}

#[test]
fn a_duplicate_key_is_a_notice() {
    let loaded = from_text("apiVersion: v1\nkind: A\nmetadata: {name: a}\nspec:\n  x: 1\n  x: 2\n").unwrap();
    let [notice] = &loaded.notices[..] else { panic!("{:?}", loaded.notices) };
    assert_eq!(notice.to_string(), "<stdin>:6:3: duplicate key \"x\"; the last value wins");
    assert_eq!(notice.help.as_deref(), Some("remove one of them; the first is at <stdin>:5:3"));
    assert_eq!(loaded.manifests[0].raw.value()["spec"], json!({"x": 2}));
}

#[test]
fn charts_and_kustomizations_are_recognized() {
    let folder = folder(&[
        ("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        ("kustomization.yaml", "resources: [a.yaml]\n"),
        ("other.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n"),
        ("templates/a.yaml", "apiVersion: v1\nkind: A\nmetadata:\n  {{- include \"x\" . | nindent 2 }}\n"),
        ("templates/b.yaml", "{{ if .Values.x }}\nkind: A\n{{ end }}\n"),
        ("values.yaml", "a: 1\n"),
        ("flux.yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\n"),
    ]);
    let found = folder_problems(&folder, &["."]);
    let starts = [
        "./Chart.yaml:1:1: this is part of a Helm chart, not a manifest (",
        "./kustomization.yaml:1:1: this is a Kustomization, which only names manifests (",
        "./other.yaml:1:1: this is a Kustomization, which only names manifests",
        "./templates/a.yaml:4:5: this is a Helm template, not a manifest (",
        "./templates/b.yaml:2:1: this is a Helm template, not a manifest (",
        "./values.yaml:1:1: this is part of a Helm chart, not a manifest (",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (found, start) in found.iter().zip(starts) {
        assert!(found.starts_with(start), "{found} does not start with {start}");
    }
    // Braces inside the strings of a manifest are fine.
    assert_eq!(names("apiVersion: v1\nkind: A\nmetadata: {name: a}\nx: '{{ .Values.y }}'\n"), ["a"]);
}

#[test]
fn hostile_text_does_not_reach_a_terminal() {
    let name = format!("\\e[2J\\u202e{}/", "x".repeat(10_000));
    let found = problems(&format!("apiVersion: v1\nkind: A\nmetadata: {{name: \"{name}\"}}\n"));
    assert!(found[0].chars().count() < 300 && !found[0].contains(char::is_control), "{}", found[0]);
    let key = "k".repeat(100_000);
    let loaded = from_text(&format!("{}x: {{? {key} : 1, ? {key} : 2}}\n", config_map("a"))).unwrap();
    assert!(loaded.notices[0].message.len() < 400);
}

#[test]
fn reading_fails_with_the_source_and_not_before() {
    struct Broken;
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the pipe broke"))
        }
    }
    let found = load(&["-".to_owned()], &mut Some(Broken)).unwrap_err();
    assert_eq!(found[0].to_string(), "<stdin>: cannot be read: the pipe broke");
}

proptest::proptest! {
    #[test]
    fn mutated_manifests_never_make_the_reader_panic(
        cuts in proptest::collection::vec((0usize..400, 0usize..20, proptest::sample::select(vec![
            "", "\n", "---\n", "{", "}", "[", "\"", "'", ": ", "- ", "&a ", "*a", "!!int ", "!x,", "|", "\\", "\t", "é", "{{ a }}",
            "kind: List\n", "items:\n", "\u{0}", "...\n", "%YAML 1.1\n",
        ])), 1..6))
    {
        let mut text = format!("{}---\n{CRD}---\napiVersion: v1\nkind: List\nitems:\n- {{kind: A}}\n", config_map("a"));
        for (at, length, replacement) in cuts {
            let start = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            let end = (start + length..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            text.replace_range(start..end.max(start), replacement);
        }
        if let Ok(loaded) = from_text(&text) {
            for manifest in &loaded.manifests {
                let found = Spans::parse(&manifest.origin).locate(&["metadata".into(), "name".into()]);
                assert!(found.location.line <= text.lines().count());
            }
        }
    }

    #[test]
    fn random_bytes_never_make_the_reader_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
        let _ = load(&["-".to_owned()], &mut Some(&bytes[..]));
    }
}

#[test]
fn the_hash_of_the_manifests_depends_on_documents_and_not_on_files() {
    let sum = |texts: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        for (index, text) in texts.iter().enumerate() {
            std::fs::write(folder.path().join(format!("{index}.yaml")), text).unwrap();
        }
        Input::open(&[folder.path().to_string_lossy().into_owned()], &mut None::<std::io::Empty>).sum()
    };
    let one = sum(&["a: 1\n---\nb: 2\n"]);
    assert_eq!(sum(&["---\nb: 2\n---\na: 1"]), one);
    assert_eq!(sum(&["b: 2", "a: 1"]), one);
    assert_ne!(sum(&["a: 1\n---\nb: 3\n"]), one);
    assert_ne!(sum(&["a: 1"]), one);
    // The checksum cannot be used to guess passwords.
    assert_eq!(sum(&["kind: Secret\na: 1"]), sum(&["kind: Secret\na: 2"]));
    assert_ne!(sum(&["kind: Secret\na: 1"]), sum(&["kind: Secret\na: 10"]));
}

#[test]
fn an_empty_file_is_a_problem_and_one_with_a_comment_is_not() {
    let folder = TempDir::new().unwrap();
    let object = "apiVersion: v1\nkind: A\nmetadata: {name: a}\n";
    for (name, text) in [("a.yaml", object), ("b.yaml", ""), ("c.yaml", "# nothing yet\n"), ("d.json", "")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let problems = load(&[folder.path().to_str().unwrap().to_owned()], &mut Some(empty())).unwrap_err();
    let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].ends_with("b.yaml: the file is empty") && messages[1].ends_with("d.json: the file is empty"));
}
