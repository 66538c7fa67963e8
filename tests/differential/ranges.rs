//! Compares version ranges with the libraries that OLM uses, on generated ranges and versions: the same results and
//! errors.
//!
//! `GANTRY_DIFFERENTIAL=<ranges>[,<seed>]` sets the length of the run.

use std::io::{BufReader, BufWriter, Write};
use std::process::{Command, Stdio};
use std::thread;

use gantry_catalog::{Constraint, SemanticVersion, SkipRange};
use gantry_testbed::range_oracle;
use serde_json::{Deserializer, Value, json};

use crate::generator::Random;

/// The number of versions that each range is tested on.
const VERSIONS: usize = 12;

fn number(random: &mut Random) -> String {
    match random.below(120) {
        0 => format!("0{}", random.below(3)),
        1 => "18446744073709551615".to_owned(),
        2 => "18446744073709551616".to_owned(),
        3 => "9223372036854775807".to_owned(),
        4..=20 => random.below(100).to_string(),
        _ => random.below(4).to_string(),
    }
}

fn identifier(random: &mut Random) -> String {
    match random.below(60) {
        0..=9 => "rc".to_owned(),
        10..=19 => "rc1".to_owned(),
        20..=29 => "alpha".to_owned(),
        30 => "x".to_owned(),
        31 => "-".to_owned(),
        32..=39 => "0".to_owned(),
        40..=44 => "B2-".to_owned(),
        45 => String::new(),
        46 => "99999999999999999999".to_owned(),
        _ => number(random),
    }
}

fn identifiers(random: &mut Random) -> String {
    let parts: Vec<String> = (0..=random.below(3)).map(|_| identifier(random)).collect();
    parts.join(".")
}

/// A version, occasionally invalid.
fn version(random: &mut Random, wildcards: bool) -> String {
    let mut text = String::new();
    if random.chance(2) {
        text.push('v');
    }
    let parts = if random.chance(if wildcards { 15 } else { 2 }) { random.below(5) } else { 3 };
    for at in 0..parts {
        if at > 0 {
            text.push('.');
        }
        match wildcards && at > 0 && random.chance(12) {
            true => text.push_str(random.pick::<&str>(&["x", "x", "x", "x", "x", "x", "X", "*", "xx", "|", "1x"])),
            false => text.push_str(&number(random)),
        }
    }
    if random.chance(30) {
        text.push('-');
        text.push_str(&identifiers(random));
    }
    if random.chance(12) {
        text.push('+');
        text.push_str(&identifiers(random));
    }
    text
}

const OPERATORS: &[&str] = &[
    "", "=", "==", "!", "!=", ">", ">", ">", "<", "<", "<", ">=", ">=", ">=", ">=", "<=", "<=", "=>", "=<", "~", "~>",
    "^", "<v", "≥",
];
const BLANKS: &[&str] = &[" ", " ", " ", "  ", "\t", "", "\u{a0}", "\n"];

fn range(random: &mut Random) -> String {
    let mut text = String::new();
    for group in 0..=random.below(4) * random.below(2) {
        if group > 0 {
            text.push_str(random.pick::<&str>(&[" || ", " || ", " || ", " || ", "||", " ||", "|| ", " | ", " || || "]));
        }
        for comparison in 0..=random.below(3) {
            if comparison > 0 {
                text.push_str(
                    random.pick::<&str>(&[" ", " ", " ", " ", " ", ", ", ",", " , ", " - ", " -", "", "  ", ",,"]),
                );
            }
            text.push_str(random.pick::<&str>(OPERATORS));
            if random.chance(15) {
                text.push_str(random.pick::<&str>(BLANKS));
            }
            text.push_str(&version(random, true));
        }
    }
    if random.chance(4) {
        let at = random.below(text.chars().count() + 1);
        let other = random.pick::<&str>(&["ä", "\u{661}", " ", ",", "|", "\"", "\u{1b}", "x", "-", "."]);
        let at = text.char_indices().nth(at).map_or(text.len(), |(at, _)| at);
        text.insert_str(at, other);
    }
    if random.below(400) == 0 {
        text = text.repeat(random.below(40));
    }
    text
}

/// gantry's answer to a question for the program.
fn answer(question: &Value, versions: &[SemanticVersion]) -> Result<Vec<bool>, String> {
    let range = question["range"].as_str().expect("a range");
    match question["language"].as_str() {
        Some("blang") => {
            let range = SkipRange::parse(range)?;
            Ok(versions.iter().map(|version| range.contains(version)).collect())
        }
        _ => {
            let range = Constraint::parse(range)?;
            Ok(versions.iter().map(|version| range.matches(version)).collect())
        }
    }
}

#[test]
fn generated_ranges_match_the_same_versions_as_in_the_libraries() {
    let (count, seed) = crate::run_length("GANTRY_DIFFERENTIAL", 3000);
    let mut questions = Vec::new();
    for at in 0..count {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(at as u64));
        let range = range(&mut random);
        let versions: Vec<String> = (0..VERSIONS).map(|_| version(&mut random, false)).collect();
        for language in ["masterminds", "blang", "version"] {
            questions.push(json!({"language": language, "range": range, "versions": versions}));
        }
    }
    let mut oracle = Command::new(range_oracle())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program that asks the libraries");
    let mut asks = BufWriter::new(oracle.stdin.take().expect("its questions are piped"));
    let answers = BufReader::new(oracle.stdout.take().expect("its answers are piped"));
    let asked = questions.clone();
    let asking = thread::spawn(move || asked.iter().try_for_each(|question| writeln!(asks, "{question}")));

    let (mut taken, mut refused, mut hits, mut pairs, mut panics) = (0, 0, 0, 0, 0);
    for (question, theirs) in questions.iter().zip(Deserializer::from_reader(answers).into_iter::<Value>()) {
        let theirs = theirs.expect("an answer");
        let texts = question["versions"].as_array().expect("versions").iter().filter_map(Value::as_str);
        let read: Vec<Result<SemanticVersion, String>> =
            texts.map(|text| SemanticVersion::parse(text).map_err(String::from)).collect();
        if question["language"] == "version" {
            for (ours, theirs) in read.iter().zip(theirs["read"].as_array().expect("versions")) {
                assert_eq!(ours.as_ref().err().map(String::as_str), theirs["error"].as_str(), "{question}");
                let text = ours.as_ref().ok().map(ToString::to_string);
                assert_eq!(text.as_deref(), theirs["text"].as_str(), "{question}");
            }
            for (pair, order) in read.windows(2).zip(theirs["order"].as_array().expect("an order")) {
                if let [Ok(one), Ok(other)] = pair {
                    assert_eq!(Some(one.precedence(other) as i64), order.as_i64(), "{one} {other}");
                }
            }
            continue;
        }
        let are_versions: Vec<bool> = read.iter().map(Result::is_ok).collect();
        let versions: Vec<SemanticVersion> = read.into_iter().flatten().collect();
        let ours = answer(question, &versions);
        assert_eq!(ours.as_ref().err().map(String::as_str), theirs["error"].as_str(), "{question}");
        let Ok(ours) = ours else {
            refused += 1;
            continue;
        };
        taken += 1;
        let theirs = theirs["matches"].as_array().expect("matches").iter().zip(are_versions);
        let theirs: Vec<&Value> = theirs.filter(|(_, is_version)| *is_version).map(|(found, _)| found).collect();
        for ((ours, theirs), version) in ours.iter().zip(theirs).zip(&versions) {
            match theirs.as_bool() {
                Some(theirs) => assert_eq!(*ours, theirs, "{question} {version}"),
                // If the library panics, the range matches nothing.
                None => {
                    assert!(!ours, "{question} {version}");
                    panics += 1;
                }
            }
            hits += usize::from(*ours);
            pairs += 1;
        }
    }
    asking.join().expect("the questions").expect("the questions are taken");
    assert!(oracle.wait().expect("the program ends").success());
    println!(
        "{count} ranges in two languages, seed {seed}: {taken} read, {refused} refused with the same error, {pairs} \
         versions tried, {hits} taken; the library panicked at {panics}"
    );
    assert_eq!(taken + refused, 2 * count);
    assert!(taken > count / 4 && refused > count / 4 && hits > count / 10, "both outcomes were tried");
}
