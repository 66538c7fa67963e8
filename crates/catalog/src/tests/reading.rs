//! Catalogs in all their forms, valid and broken, and what is reported about them.

use crate::mistakes::mistakes;
use crate::{
    Catalog, CatalogReadError, Csvs, KeptCatalogParts, PackageBundle, Property, SemanticVersion, graph,
    list_catalog_files, read,
};

/// Reads texts in order, as the files of a folder.
fn load<'a>(texts: impl IntoIterator<Item = &'a str>, keep: &KeptCatalogParts) -> Result<Catalog, CatalogReadError> {
    let mut catalog = Catalog::default();
    for text in texts {
        read(text.as_bytes(), &mut |blob| catalog.add(blob, keep))?;
    }
    Ok(catalog)
}

fn outline(text: &str) -> Result<Catalog, CatalogReadError> {
    load([text], &KeptCatalogParts::default())
}

const PACKAGE_OF_P: &str = "schema: olm.package\nname: p\ndefaultChannel: a\n";

fn channel(entries: &str) -> String {
    format!("---\nschema: olm.channel\npackage: p\nname: a\nentries: [{entries}]\n")
}

fn bundle(name: &str, version: &str) -> String {
    let property = format!("{{type: olm.package, value: {{packageName: p, version: \"{version}\"}}}}");
    format!("---\nschema: olm.bundle\npackage: p\nname: {name}\nproperties: [{property}]\n")
}

fn one_bundle() -> String {
    format!("{PACKAGE_OF_P}{}{}", channel("{name: p.v1}"), bundle("p.v1", "1.0.0"))
}

#[test]
fn a_catalog_is_read_the_same_from_yaml_json_and_json_lines() {
    let yaml = one_bundle();
    let expected = outline(&yaml).unwrap();
    assert_eq!(expected.packages["p"].bundles["p.v1"].version, "1.0.0");
    let mut lines = Vec::new();
    read(yaml.as_bytes(), &mut |blob| {
        lines.push(blob.json().into_owned());
        Ok(())
    })
    .unwrap();
    assert_eq!(lines.len(), 3);
    let pretty: Vec<String> = lines
        .iter()
        .map(|line| serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(line).unwrap()).unwrap())
        .collect();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, yaml.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    for (form, text) in [
        ("JSON lines", lines.join("\n").into_bytes()),
        ("JSON without separators", lines.concat().into_bytes()),
        ("JSON over several lines", pretty.join("").into_bytes()),
        ("JSON, then YAML", format!("{}\n---\n{}\n---\n{}", lines[0], lines[1], pretty[2]).into_bytes()),
        (
            "YAML that begins with a brace",
            yaml.replacen(PACKAGE_OF_P, "{schema: olm.package, name: p, defaultChannel: a}\n", 1).into_bytes(),
        ),
        ("YAML with a separator at its beginning and at its end", format!("---\n{yaml}---\n").into_bytes()),
        ("YAML with other line ends", yaml.replace('\n', "\r\n").into_bytes()),
        ("gzip", packed),
    ] {
        let mut catalog = Catalog::default();
        read(&text[..], &mut |blob| catalog.add(blob, &KeptCatalogParts::default()))
            .unwrap_or_else(|error| panic!("{form}: {error:?}"));
        assert_eq!(catalog, expected, "{form}");
    }
}

/// Returns its bytes one by one, so that every separator is split.
struct Slowly<'a>(&'a [u8]);

impl std::io::Read for Slowly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.len().min(buffer.len()).min(1);
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

#[test]
fn long_blobs_and_short_reads_change_nothing() {
    let filler = format!("---\nschema: other\ntext: {}\n", "x".repeat(700_000));
    let yaml = format!("{filler}---\n{}{filler}", one_bundle());
    let mut catalog = Catalog::default();
    read(Slowly(yaml.as_bytes()), &mut |blob| catalog.add(blob, &KeptCatalogParts::default())).unwrap();
    assert_eq!(catalog, outline(&one_bundle()).unwrap());
    let json = format!("{{\"schema\":\"other\",\"text\":\"{}\"}}", "x".repeat(700_000));
    let json = format!("{json}{{\"schema\":\"olm.package\",\"name\":\"p\"}} {json}");
    let mut catalog = Catalog::default();
    read(Slowly(json.as_bytes()), &mut |blob| catalog.add(blob, &KeptCatalogParts::default())).unwrap();
    assert!(catalog.packages["p"].is_declared);
}

#[test]
fn a_separator_may_span_two_reads() {
    for short in 0..8 {
        let head = "schema: other\ntext: ";
        let filler = format!("{head}{}\n---\n", "x".repeat((256 << 10) - head.len() - short));
        let mut catalog = Catalog::default();
        let text = format!("{filler}{}", one_bundle());
        read(text.as_bytes(), &mut |blob| catalog.add(blob, &KeptCatalogParts::default())).unwrap();
        assert_eq!(catalog, outline(&one_bundle()).unwrap(), "{short}");
    }
}

#[test]
fn a_file_that_is_not_a_catalog_is_an_error_with_its_line() {
    let error = |text: &str| outline(text).map(|catalog| format!("{catalog:?}")).unwrap_err();
    let cases = [
        // operator-registry 1.73.0 has the same form.
        (format!("# a comment\n---\n{}", one_bundle()), 1, "object '' is missing root schema field"),
        (format!("{PACKAGE_OF_P}---\n\n---\nschema: x\n"), 5, "object '' is missing root schema field"),
        (format!("{PACKAGE_OF_P}--- foo\nschema: x\n"), 4, "invalid Yaml document separator: foo"),
        (format!("{PACKAGE_OF_P}-----\nschema: x\n"), 4, "invalid Yaml document separator: --"),
        (format!("{PACKAGE_OF_P}---\nSchema: x\nschema: y\n"), 5, "duplicate keys for key \"schema\": [Schema schema]"),
        ("schema: x\nname: 5\n".into(), 1, "expected value for key \"name\" to be a string"),
        ("schema: olm.package\n".into(), 1, "config contains package with no name"),
        ("name: x\n".into(), 1, "object '{\"name\":\"x\"}' is missing root schema field"),
        ("# a readme\nthis is text\n".into(), 1, "invalid type: string \"this is text\", expected an object"),
        ("{\"schema\":\"x\"}\n{\"schema\":\"x\"}\n{\"schema\" 5}".into(), 3, "expected `:`"),
        ("{\"schema\":\"x\"}\n{\"schema\":\"x\"}\n{\"schema\":".into(), 3, "EOF while parsing a value"),
        ("schema: x\n---\nschema: [\n".into(), 4, "did not find expected node content"),
    ];
    for (text, line, message) in cases {
        let error = error(&text);
        assert!(error.message.contains(message), "{text}: {error:?}");
        assert_eq!(error.line, line, "{text}: {error:?}");
    }
}

#[test]
fn a_broken_blob_breaks_its_package_alone() {
    let broken = |blob: &str| {
        let text = format!("{}---\nschema: olm.package\nname: q\n---\n{blob}", one_bundle());
        let catalog = outline(&text).unwrap();
        assert_eq!(catalog.packages["q"].broken, None);
        catalog.packages["p"].broken.clone().unwrap_or_default()
    };
    assert_eq!(
        broken("package: p\nname: x\n"),
        "object '{\"package\":\"p\",\"name\":\"x\"}' is missing root schema field"
    );
    assert!(broken("schema: olm.package\nname: p\ndefaultChannel: 5\n").starts_with("parse package: defaultChannel: "));
    assert!(broken("schema: olm.channel\npackage: p\nname: b\nentries: {}\n").starts_with("parse channel: entries: "));
    assert!(
        broken("schema: olm.bundle\npackage: p\nname: b\nproperties: [{type: 5}]\n")
            .starts_with("parse bundle: type: ")
    );
    assert!(
        broken("schema: olm.deprecations\npackage: p\nentries: [{reference: x}]\n")
            .starts_with("parse deprecation: reference: ")
    );
    assert_eq!(broken("schema: other\npackage: p\nentries: 5\n"), "", "nobody's business");
}

#[test]
fn keys_match_in_any_case_and_the_last_of_two_blobs_wins() {
    let text = "SCHEMA: olm.package\nName: p\ndefaultchannel: a\n---\nschema: olm.channel\npackage: p\nname: a\nENTRIES: [{Name: p.v1, SkipRange: <1.0.0}]\n";
    let catalog = outline(text).unwrap();
    let package = &catalog.packages["p"];
    assert_eq!(
        (package.default_channel.as_str(), package.channels["a"].entries[0].skip_range.as_str()),
        ("a", "<1.0.0")
    );
    let text = format!("{}{}", one_bundle(), bundle("p.v1", "1.0.1"));
    let catalog = outline(&text).unwrap();
    assert_eq!(catalog.packages["p"].bundles["p.v1"].version, "1.0.1");
    assert_eq!(mistakes(&catalog.packages["p"]), ["package \"p\" has duplicate bundle \"p.v1\""]);
}

#[test]
fn the_order_of_blobs_changes_nothing() {
    let blobs = [
        PACKAGE_OF_P.to_owned(),
        channel("{name: p.v1}, {name: p.v2, replaces: p.v1}"),
        bundle("p.v2", "2.0.0"),
        bundle("p.v1", "1.0.0"),
        "---\nschema: olm.deprecations\npackage: p\nentries: [{reference: {schema: olm.bundle, name: p.v1}, message: old}]\n".into(),
    ];
    let expected = load(blobs.iter().map(String::as_str), &KeptCatalogParts::default()).unwrap();
    for start in 0..blobs.len() {
        let turned = (0..blobs.len()).map(|at| blobs[(start + at) % blobs.len()].as_str());
        assert_eq!(load(turned.clone(), &KeptCatalogParts::default()).unwrap(), expected);
        assert_eq!(load(turned.rev(), &KeptCatalogParts::default()).unwrap(), expected);
    }
    assert!(mistakes(&expected.packages["p"]).is_empty());
}

#[test]
fn properties_and_cluster_service_versions_are_kept_on_request() {
    use base64::Engine as _;
    let csv = r#"{"kind": "ClusterServiceVersion", "spec": {"version": "1.0.0", "installModes": [{"type": "AllNamespaces", "supported": true}, {"type": "OwnNamespace", "supported": false}], "webhookdefinitions": [{}]}}"#;
    let data = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let blob = |name: &str, properties: serde_json::Value| {
        serde_json::json!({"schema": "olm.bundle", "package": "p", "name": name, "properties": properties}).to_string()
    };
    let metadata = serde_json::json!({"type": "olm.csv.metadata", "value": {"displayName": "P", "installModes": [{"type": "AllNamespaces", "supported": true}]}});
    let text = [
        blob("objects", serde_json::json!([
            {"type": "olm.gvk", "value": {"kind": "K"}},
            {"type": "olm.bundle.object", "value": {"data": data("{\"kind\": \"Service\"}")}},
            {"type": "olm.bundle.object", "value": {"data": data(csv)}},
            metadata,
        ])),
        blob("yaml", serde_json::json!([{"type": "olm.bundle.object", "value": {"data": data("kind: ClusterServiceVersion\nspec: {version: 2.0.0}\n")}}])),
        blob("metadata", serde_json::json!([metadata])),
    ]
    .concat();
    let keep = |csv, properties: &[&str]| KeptCatalogParts {
        properties_of: properties.iter().map(|name| (*name).to_owned()).collect(),
        csv,
        ..KeptCatalogParts::default()
    };
    let of = |keep: &KeptCatalogParts| load([text.as_str()], keep).unwrap().packages["p"].bundles.clone();
    let bundles = of(&keep(Csvs::Kept, &["p"]));
    let found = bundles["objects"].csv.as_ref().unwrap();
    assert!(
        found.supports_all_namespaces() && found.webhooks == Some(1) && found.install_modes.len() == 1,
        "{found:?}"
    );
    assert_eq!(bundles["yaml"].csv.as_ref().map(|csv| (csv.version.as_str(), csv.webhooks)), Some(("2.0.0", Some(0))));
    let found = bundles["metadata"].csv.as_ref().unwrap();
    assert!(found.webhooks.is_none() && found.display_name == "P", "{found:?}");
    assert_eq!(bundles["objects"].properties, [Property { kind: "olm.gvk".into(), value: "{\"kind\":\"K\"}".into() }]);
    assert_eq!(bundles["objects"].objects, 2);
    for keep in [keep(Csvs::Kept, &[]), keep(Csvs::None, &["q"])] {
        assert!(of(&keep).values().all(|bundle| bundle.csv.is_none() && bundle.properties.is_empty()));
    }
    assert!(of(&keep(Csvs::All, &[])).values().all(|bundle| bundle.csv.is_some()));
}

#[test]
fn mistakes_have_the_messages_of_opm() {
    let of = |text: String| mistakes(&outline(&text).unwrap().packages["p"]);
    let entries = |entries: &str| {
        of(format!(
            "{PACKAGE_OF_P}{}{}{}{}",
            channel(entries),
            bundle("p.v1", "1.0.0"),
            bundle("p.v2", "2.0.0"),
            bundle("p.v3", "3.0.0")
        ))
    };
    let first = |found: Vec<String>, expected: &str| assert!(found.contains(&expected.to_owned()), "{found:?}");
    first(
        entries("{name: p.v1}, {name: p.v2}, {name: p.v3}"),
        "invalid channel \"a\": multiple channel heads found in graph: p.v1, p.v2, p.v3",
    );
    first(
        entries("{name: p.v1, replaces: p.v2}, {name: p.v2, replaces: p.v1}"),
        "invalid channel \"a\": no channel head found in graph",
    );
    first(
        entries("{name: p.v1, replaces: p.v2}, {name: p.v2, replaces: p.v1}, {name: p.v3, replaces: p.v2}"),
        "invalid channel \"a\": detected cycle in replaces chain of upgrade graph: p.v2 -> p.v1 -> p.v2",
    );
    first(
        entries("{name: p.v3, replaces: p.v2, skips: [p.v2]}, {name: p.v2, replaces: p.v1}, {name: p.v1}"),
        "invalid channel \"a\": channel contains one or more stranded bundles: p.v1",
    );
    first(
        entries("{name: p.v3, skips: [p.v1]}, {name: p.v1}"),
        "package \"p\", bundle \"p.v2\" not found in any channel entries",
    );
    first(
        entries("{name: p.v4, skips: [p.v1, p.v2, p.v3]}, {name: p.v1}, {name: p.v2}, {name: p.v3}"),
        "no olm.bundle blobs found in package \"p\" for olm.channel entries [p.v4]",
    );
    first(
        entries("{name: p.v3, skipRange: ^1.0}"),
        "invalid bundle \"p.v3\": invalid skipRange \"^1.0\": Could not parse Range \"^1.0\": Could not parse comparator \"^\" in \"^1.0\"",
    );
    let all = "{name: p.v3, replaces: p.v1}, {name: p.v1}";
    let text = format!("{PACKAGE_OF_P}{}{}{}", channel(all), bundle("p.v1", "1.0.0"), bundle("p.v3", "1.0.0"));
    first(of(text), "duplicate versions found in bundles: [{1.0.0: [p.v1, p.v3]}]");
    first(
        of(one_bundle().replace("packageName: p,", "packageName: q,")),
        "package \"p\" does not match \"olm.package\" property \"q\"",
    );
    first(
        of(one_bundle().replace("olm.package, value", "other, value")),
        "package \"p\" bundle \"p.v1\" must have exactly 1 \"olm.package\" property, found 0",
    );
    first(
        of(one_bundle().replace("\"1.0.0\"", "\"1.0\"")),
        "error parsing bundle \"p.v1\" version \"1.0\": No Major.Minor.Patch elements found",
    );
    first(
        of(one_bundle().replace("defaultChannel: a", "defaultChannel: x")),
        "default channel \"x\" not found in channels list",
    );
    let deprecated = |reference: &str, times: usize| {
        let blob =
            format!("---\nschema: olm.deprecations\npackage: p\nentries: [{{reference: {reference}, message: old}}]\n");
        of(format!("{}{}", one_bundle(), blob.repeat(times)))
    };
    assert_eq!(
        deprecated("{schema: olm.bundle, name: b}", 1),
        ["cannot deprecate bundle \"b\" for package \"p\": bundle not found"]
    );
    assert_eq!(
        deprecated("{schema: olm.channel, name: b}", 1),
        ["cannot deprecate channel \"b\" for package \"p\": channel not found"]
    );
    assert_eq!(deprecated("{schema: olm.package}", 2), ["expected a maximum of one deprecation per package: \"p\""]);
    assert!(deprecated("{schema: olm.package}", 1).is_empty() && of(one_bundle()).is_empty());
}

#[test]
fn the_shortest_upgrade_path_is_found_without_a_replaces_chain() {
    let text = format!(
        "{PACKAGE_OF_P}{}{}{}{}{}",
        channel(
            "{name: p.v3, skips: [p.v2]}, {name: p.v2, skipRange: \">=1.0.0 <2.0.0\"}, {name: p.v1}, {name: gone, replaces: p.v1}"
        ),
        bundle("p.v1", "1.0.0"),
        bundle("p.v2", "2.0.0"),
        bundle("p.v3", "3.0.0"),
        bundle("alone", "0.1.0")
    );
    let catalog = outline(&text).unwrap();
    let graph = graph::UpgradeGraph::new(&catalog.packages["p"], &[]);
    let from = graph.installed("p.v1");
    let names = |bundles: Vec<&PackageBundle>| bundles.iter().map(|bundle| bundle.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(graph.successors(&from)), ["p.v2"]);
    let ways = graph.find_ways(&from).unwrap();
    let way: Vec<(&str, graph::By)> = ways.edges_to("p.v3").unwrap().iter().map(|edge| (edge.to, edge.by)).collect();
    assert_eq!(way, [("p.v2", graph::By::SkipRange), ("p.v3", graph::By::Skips)]);
    assert_eq!(ways.reachable_bundles(), [("p.v2", 1), ("p.v3", 2)]);
    assert!(ways.edges_to("alone").is_none() && ways.edges_to("gone").is_none());
    // For a version that the catalog does not contain, only ranges make edges.
    let unknown = graph::InstalledBundleRef { name: None, version: SemanticVersion::parse("1.5.0").ok() };
    assert_eq!(names(graph.successors(&unknown)), ["p.v2"]);
    let other_channel = graph::UpgradeGraph::new(&catalog.packages["p"], &["b".into()]);
    assert!(other_channel.successors(&from).is_empty());
}

#[test]
fn an_indexignore_leaves_files_out_as_gitignore_does() {
    let root = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(".indexignore", "*.md\nsub/*\n!sub/keep.yaml\n/root.txt\nx/\n!deep/x/again.yaml\n");
    write("nested/.indexignore", "y.yaml\n!again.md\n");
    for name in [
        "c.yaml",
        "README.md",
        "sub/junk.yaml",
        "sub/keep.yaml",
        "root.txt",
        "deep/root.txt",
        "x/y.yaml",
        "deep/x/z/y.yaml",
        "nested/y.yaml",
        "nested/z/y.yaml",
        "nested/again.md",
        "deep/x/again.yaml",
    ] {
        write(name, "");
    }
    let found: Vec<String> = list_catalog_files(root.path())
        .unwrap()
        .iter()
        .map(|file| file.strip_prefix(root.path()).unwrap().to_string_lossy().replace('\\', "/"))
        .collect();
    // As in operator-registry 1.73.0, the last matching rule decides, also below an ignored folder.
    assert_eq!(found, ["c.yaml", "deep/root.txt", "deep/x/again.yaml", "nested/again.md", "sub/keep.yaml"]);
    assert_eq!(list_catalog_files(&root.path().join("c.yaml")).unwrap(), [root.path().join("c.yaml")]);
    assert!(list_catalog_files(&root.path().join("gone")).is_err());
}

#[test]
fn versions_are_listed_from_the_highest_down() {
    let text = format!(
        "{PACKAGE_OF_P}{}{}{}{}",
        bundle("c", "1.0.0"),
        bundle("b", "none"),
        bundle("a", "1.0.0"),
        bundle("d", "1.10.0")
    );
    let catalog = outline(&text).unwrap();
    let order: Vec<&str> = catalog.packages["p"].by_version().iter().map(|bundle| bundle.name.as_str()).collect();
    assert_eq!(order, ["d", "a", "c", "b"]);
}

/// A reader of the same text, again and again.
struct Again<'a> {
    text: &'a [u8],
    at: usize,
    times: usize,
}

impl std::io::Read for Again<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.times == 0 {
            return Ok(0);
        }
        let count = buffer.len().min(self.text.len() - self.at);
        buffer[..count].copy_from_slice(&self.text[self.at..self.at + count]);
        self.at += count;
        if self.at == self.text.len() {
            (self.at, self.times) = (0, self.times - 1);
        }
        Ok(count)
    }
}

#[test]
fn a_catalog_has_limits_beyond_which_it_is_not_read() {
    let refused = |text: &str, times: usize| {
        let mut catalog = Catalog::default();
        let input = Again { text: text.as_bytes(), at: 0, times };
        crate::read(input, &mut |blob| catalog.add(blob, &KeptCatalogParts::default())).expect_err("too much").message
    };
    let package = "{\"schema\":\"olm.package\",\"name\":\"a\"}\n";
    assert_eq!(refused(package, usize::MAX), "the catalog has more than 1000000 blobs");
    let entries = vec!["{}"; 100_000].join(",");
    let channel = format!("{{\"schema\":\"olm.channel\",\"package\":\"a\",\"name\":\"b\",\"entries\":[{entries}]}}\n");
    assert_eq!(refused(&channel, usize::MAX), "the catalog has more than 3000000 entries and properties");
    let large = format!("{{\"schema\":\"x\",\"a\":\"{}\"}}\n", "x".repeat(8 << 20));
    assert_eq!(refused(&large, 200), "the catalog is larger than 1 GiB");
}
