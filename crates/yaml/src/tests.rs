pub mod table;

use serde::Deserialize;
use serde_json::{Value, json};

use self::table::{DOCUMENTS, REFUSED, SCALARS};
use super::*;

/// The value from the tree and from the JSON text, which must be equal.
fn value(text: &str) -> Result<Value, YamlError> {
    let tree = parse(text).map(|node| node.map_or(Value::Null, |node| node.to_value()));
    let json = to_json(text).map(|json| json.map_or(Value::Null, |json| serde_json::from_str(&json.text).unwrap()));
    assert_eq!(tree, json, "the tree and the JSON of {text:?}");
    tree
}

#[test]
fn scalars_have_the_values_that_kubectl_reads() {
    for (text, expected) in SCALARS {
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(value(&format!("a: {text}")), Ok(json!({ "a": expected })), "a: {text}");
    }
}

#[test]
fn documents_have_the_values_that_kubectl_reads() {
    for (text, expected) in DOCUMENTS {
        assert_eq!(value(text), Ok(serde_json::from_str(expected).unwrap()), "{text:?}");
    }
}

#[test]
fn documents_that_kubectl_refuses_are_refused() {
    for text in REFUSED {
        let error = value(text).expect_err(text);
        assert!(!error.message.is_empty());
        let lines = text.split('\n').count();
        assert!((1..=lines + 1).contains(&error.line), "{text:?}: {error:?}");
    }
}

/// Texts that are accepted here on purpose although the YAML part of kubectl's reader rejects them or drops text: they
/// are valid for its JSON part.
#[test]
fn json_that_is_no_yaml_is_read_as_json() {
    assert_eq!(value(r#"{"a":"\ud83d\ude00"}"#), Ok(json!({"a": "😀"})));
    assert_eq!(value(r#"{"a":"b\/c"}"#), Ok(json!({"a": "b/c"})));
    assert_eq!(value("{\"a\"\n:1}"), Ok(json!({"a": 1})));
    let long = "k".repeat(2000);
    assert_eq!(value(&format!("{{\"{long}\":1}}")), Ok(json!({ long: 1 })));
    assert!(value("a: 1\n---\nb: 2").unwrap_err().message.contains("second document"));
}

#[test]
fn the_last_of_two_equal_keys_wins_and_both_positions_are_reported() {
    let json = to_json("a: 1\nb: 2\n\"a\": 3\n").unwrap().unwrap();
    assert_eq!(json.text, r#"{"a":3,"b":2}"#);
    let [duplicate] = &json.duplicates[..] else { panic!("{:?}", json.duplicates) };
    assert_eq!((&*duplicate.key, duplicate.first.line, duplicate.again.line), ("a", 1, 3));
    // Overriding a merged key is the purpose of merge keys.
    assert_eq!(to_json("b: &b {x: 1}\nc: {<<: *b, x: 2}").unwrap().unwrap().duplicates, []);
}

#[test]
fn every_node_has_its_position() {
    let text = "# é\nkind: 'A'\nspec:\n  é: [1, {b: c}]\n  list:\n  - name: x\n    text: |\n      t\n  - y\n";
    let node = parse(text).unwrap().unwrap();
    let Data::Mapping(top) = &node.data else { panic!() };
    let own = |span: &Span| &text[span.bytes.clone()];
    assert_eq!((top[0].key_span.line, top[0].key_span.column, own(&top[0].value.span)), (2, 1, "'A'"));
    let Data::Mapping(spec) = &top[1].value.data else { panic!() };
    assert_eq!((own(&spec[0].key_span), own(&spec[0].value.span)), ("é", "[1, {b: c}]"));
    assert_eq!((spec[0].value.span.line, spec[0].value.span.column), (4, 6));
    assert_eq!(own(&top[1].value.span), &text[text.find("é: [").unwrap()..text.trim_end().len()]);
    let Data::Sequence(list) = &spec[1].value.data else { panic!() };
    assert_eq!((list[1].span.line, list[1].span.column, own(&list[1].span)), (9, 5, "y"));
}

#[test]
fn a_path_is_followed_as_far_as_it_exists() {
    let text = "base: &base\n  deep: 1\nspec:\n  <<: *base\n  items:\n  - a: 1\n  - b: 2\n";
    let document = YamlDocument::read(text).unwrap().unwrap();
    let locate = |path: &[YamlStep]| {
        let (depth, span) = document.locate(path.iter().copied());
        (depth, span.line, &text[span.bytes.clone()])
    };
    assert_eq!(locate(&["spec".into(), "items".into(), 1.into(), "b".into()]), (4, 7, "b"));
    assert_eq!(locate(&["spec".into(), "items".into(), 1.into(), "x".into()]), (3, 7, "b: 2"));
    assert_eq!(locate(&["spec".into(), "items".into(), 7.into()]), (2, 5, "items"));
    assert_eq!(locate(&["spec".into(), "deep".into()]), (2, 2, "deep"));
    assert_eq!(locate(&["none".into()]).0, 0);
    let lines: Vec<_> =
        document.items([YamlStep::from("spec"), YamlStep::from("items")]).iter().map(|span| span.line).collect();
    assert_eq!(lines, [6, 7]);
    assert!(document.items([YamlStep::from("spec")]).is_empty());
}

#[test]
fn many_paths_are_followed_as_each_of_them_alone() {
    let text = "base: &base {deep: 1, 2: x}\na: &a\n  k: 1\n  j: [x, {y: z}]\n  k: 2\nb:\n  <<: *base\n  deep: 3\n  1.0: f\n\
        c: *a\n";
    let document = YamlDocument::read(text).unwrap().unwrap();
    let keys = ["base", "a", "b", "c", "deep", "2", "1", "1.0", "k", "j", "y", "<<", "none"];
    let mut known = KnownCollections::default();
    for (one, two) in keys.iter().flat_map(|one| keys.iter().map(move |two| (*one, *two))) {
        for rest in [&[][..], &[0.into()], &[1.into(), "y".into()], &[9.into()]] {
            let path: Vec<YamlStep> = [one.into(), two.into()].into_iter().chain(rest.iter().copied()).collect();
            let together = document.locate_with(&mut known, path.iter().copied());
            assert_eq!(together, document.locate(path.iter().copied()), "{path:?}");
        }
    }
    let line = |path: [YamlStep; 2]| document.locate_with(&mut known, path).1.line;
    assert_eq!(
        [["a", "k"], ["c", "k"], ["b", "deep"], ["b", "2"]].map(|path| path.map(YamlStep::from)).map(line),
        [5, 5, 8, 1]
    );
}

#[test]
fn errors_have_the_position_of_their_cause() {
    let at = |text| value(text).map_err(|error| (error.line, error.column)).unwrap_err();
    assert_eq!(at("a: 1\nb\nc: 2\n"), (2, 1));
    assert_eq!(at("a: 1\nb: \"open\nc: 2\nd: 3\n"), (2, 4));
    assert_eq!(at("a:\n  b: 1\n\tc: 2\n"), (3, 1));
    assert_eq!(at("a: 1\nb: x\u{7}y\n"), (2, 5));
    assert_eq!(at("a: 1\nb: *nope\n"), (2, 4));
    assert_eq!(at("a: 1\nb: [!!int x]\n"), (2, 5));
    assert!(value("a:\n\tb: 1").unwrap_err().message.contains("a tab; YAML is indented with spaces"));
}

/// The maximum depth, in a thread with half the usual stack: no recursive function may come close to overflowing it.
#[test]
fn the_deepest_document_fits_a_small_stack() {
    let read = || {
        let flow = format!("{}1{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        let block = format!("{}1", "- ".repeat(MAX_DEPTH));
        let maps = format!("{}1{}", r#"{"a":"#.repeat(MAX_DEPTH), "}".repeat(MAX_DEPTH));
        for text in [flow, block, maps] {
            let json = to_json(&text).unwrap().unwrap().text;
            let mut reader = serde_json::Deserializer::from_str(&json);
            reader.disable_recursion_limit();
            assert_eq!(Value::deserialize(&mut reader).unwrap(), parse(&text).unwrap().unwrap().to_value());
            let escaped = json.replace("1", r#""\ud83d\ude00""#);
            assert!(to_json(&escaped).unwrap().is_some());
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(read).unwrap().join().unwrap();
}

#[test]
fn deeper_documents_are_refused_however_they_come_about() {
    for depth in [MAX_DEPTH + 1, 10_000, 200_000] {
        for text in ["[".repeat(depth), "- ".repeat(depth), "{\"a\":".repeat(depth), "? ".repeat(depth)] {
            assert!(value(&text).unwrap_err().message.contains("levels deep"), "{depth}");
        }
    }
    let mut chain = String::from("- &a0 [x]\n");
    for level in 1..=MAX_DEPTH {
        chain.push_str(&format!("- &a{level} [*a{}]\n", level - 1));
    }
    assert!(value(&chain).unwrap_err().message.contains("levels deep"));
}

#[test]
fn aliases_expand_under_a_budget() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        bomb.push_str(&format!("a{level}: &a{level} [{before}]\n"));
    }
    let refused = |text: &str| parse(text).is_err_and(|error| error.message.contains("expand to too much data"));
    assert!(refused(&bomb));
    // The same with one long string, with merge keys, and with aliases as keys.
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), "*a, ".repeat(1000));
    assert!(refused(&long));
    let keys: String = (0..1000).map(|key| format!("k{key}: 1, ")).collect();
    let merges = format!("a: &a {{{keys}}}\nb: [{}]", "{<<: *a}, ".repeat(1000));
    assert!(refused(&merges));
    let aliased = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), "{*a : 1}, ".repeat(1000));
    assert!(refused(&aliased));
    // Realistic documents are far below the limit.
    let used = format!("a: &a {{{keys}}}\nb: [{}]", "{<<: *a}, ".repeat(100));
    assert!(value(&used).is_ok());
}

#[test]
fn a_text_may_end_anywhere() {
    let text = "%YAML 1.1\n---\na: &x !!str \"q\\u00e9\\\n  r\" # c\nb: |+\n  t\n\n  u\nc: >-\n  v\n   w\nd: ['s', {? e : f}, *x]\n\
                <<: {g: !t h}\n? |\n i\n: j\n...\n";
    for end in (0..=text.len()).filter(|end| text.is_char_boundary(*end)) {
        let _ = value(&text[..end]);
        let _ = value(&format!("{}\\", &text[..end]));
        let _ = value(&format!("{}!t,", &text[..end]));
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,40}") {
        let _ = value(&text);
    }

    #[test]
    fn no_mixture_of_yaml_makes_the_reader_panic(parts in proptest::collection::vec(
        proptest::sample::select(vec![
            "a", ":", " ", "\n", "- ", "? ", "[", "]", "{", "}", ",", "#", "&a ", "*a ", "!", "!!int ", "!t", "|", ">", "+",
            "-", "'", "\"", "\\", "%", "@", "\t", "\r\n", "---", "...", "<<: ", "\u{feff}", "é", "😀", "\u{2028}", "\0", "0x1", "~",
        ]), 0..40))
    {
        let _ = value(&parts.concat());
    }
}
