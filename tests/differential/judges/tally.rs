//! Counts where we agree with the server.

use std::collections::{BTreeMap, BTreeSet};

use gantry_schema::crd::judge;
use serde_json::Value;

use super::Answer;

#[derive(Default)]
pub struct Tally {
    pub taken: usize,
    pub refused: usize,
    messages: usize,
    /// The server's own code ended with an error.
    unanswered: usize,
    /// Refused for what their rules may cost, among other things.
    costly: usize,
    /// Refused for what rules cost together, where other rules that cost as much are named for it.
    ties: usize,
    undecided: usize,
    /// Refused by both, and the server's words are not compared.
    other_words: usize,
    disagreements: Vec<String>,
}

/// Of a default the server says in Go's words why its metadata cannot be decoded, and of a rule that does not compile it says
/// so at each default that meets it.
const OTHER_WORDS: [&str; 3] = ["json: cannot unmarshal ", "parsing time ", "rule compile error: "];

impl Tally {
    pub fn compare(&mut self, what: &str, new: &Value, old: Option<&Value>, answer: Answer) {
        let answer = match answer {
            Ok((200 | 201 | 422, answer)) => answer,
            other => {
                // The server's code ends at a version with selectable fields of which it cannot read the schema, and at
                // some rules below a list or map of untyped parts.
                let text = new["spec"].to_string();
                let is_known =
                    ["selectableFields", "x-kubernetes-validations"].iter().any(|field| text.contains(field));
                assert!(is_known, "{what}: {other:?}\n  new {}\n  old {}", new["spec"], old.unwrap_or(&Value::Null));
                self.unanswered += 1;
                return;
            }
        };
        let judgement = judge(new, old).unwrap_or_else(|problem| panic!("{problem}: {new}"));
        self.undecided += usize::from(!judgement.undecided.is_empty());
        let mut balances: BTreeMap<(String, String, String), i32> = BTreeMap::new();
        for error in &judgement.refusals {
            let key = (error.path.clone(), error.kind.reason().to_owned(), comparable(&error.body()));
            let balance = balances.entry(key).or_default();
            // Of an update the server says what is wrong with its metadata several times.
            *balance = if error.path.starts_with("metadata.") { 1 } else { *balance + 1 };
        }
        let causes = answer["details"]["causes"].as_array().cloned().unwrap_or_default();
        let has_other_words = |cause: &Value| {
            let message = cause["message"].as_str().unwrap_or_default();
            OTHER_WORDS.iter().any(|words| message.contains(words))
        };
        if causes.iter().any(has_other_words) && !judgement.refusals.is_empty() {
            self.other_words += 1;
            self.refused += 1;
            return;
        }
        let mut is_costly = false;
        let mut metadata = BTreeSet::new();
        for cause in &causes {
            let text = |key: &str| cause[key].as_str().unwrap_or_default();
            if text("field").starts_with("metadata.") && !metadata.insert(cause.to_string()) {
                continue;
            }
            is_costly |= text("message").contains("exceeds budget");
            let key = (text("field").to_owned(), text("reason").to_owned(), comparable(text("message")));
            *balances.entry(key).or_default() -= 1;
        }
        self.costly += usize::from(is_costly);
        self.messages += causes.len();
        *(if causes.is_empty() { &mut self.taken } else { &mut self.refused }) += 1;
        self.ties += usize::from(without_ties(&mut balances));
        for ((field, reason, message), balance) in balances.into_iter().filter(|(_, balance)| *balance != 0) {
            let who = if balance > 0 { "only we say" } else { "only the server says" };
            let old = old.map(|old| old["spec"].to_string()).unwrap_or_default();
            self.disagreements
                .push(format!("{what}: {who} {field}: {reason} {message}\n  new {}\n  old {old}", new["spec"]));
        }
    }

    pub fn judge(&self, what: &str) {
        println!(
            "{what}: {} taken, {} refused in {} messages; {} too costly ({} ties), {} not answered, {} undecided, {} of \
             other words; {} disagreements",
            self.taken,
            self.refused,
            self.messages,
            self.costly,
            self.ties,
            self.unanswered,
            self.undecided,
            self.other_words,
            self.disagreements.len()
        );
        // What it is about of all, and the CRDs of some.
        let shown = |all: &[String]| {
            let lines = all.iter().take(300).filter_map(|one| one.lines().next());
            let whole = all.iter().take(5).map(String::as_str);
            lines.chain(whole).collect::<Vec<_>>().join("\n")
        };
        assert!(self.disagreements.is_empty(), "{}", shown(&self.disagreements));
        // What nobody answers agrees with anything.
        assert!(self.unanswered <= (self.taken + self.refused) / 20, "{} not answered", self.unanswered);
    }
}

/// Of rules that cost the same the server names any four. Takes those out of the balance of which it names as many as we do.
fn without_ties(balances: &mut BTreeMap<(String, String, String), i32>) -> bool {
    let is_named = |message: &str| message.starts_with("contributed to estimated rule cost total");
    let named = balances.iter().filter(|((_, _, message), balance)| is_named(message) && **balance != 0);
    let balances_of: Vec<i32> = named.map(|(_, balance)| *balance).collect();
    let is_tie = !balances_of.is_empty() && balances_of.iter().sum::<i32>() == 0;
    if is_tie {
        balances.retain(|(_, _, message), _| !is_named(message));
    }
    is_tie
}

/// A message without what is not compared: the words for what is wrong with an expression of CEL, and Go's own words about
/// certificates and metadata that cannot be decoded.
fn comparable(message: &str) -> String {
    let cut = ["compilation failed: ", "instantiation failed: ", "failed to parse certificate: "];
    let end = cut.iter().filter_map(|text| message.find(text).map(|at| at + text.len())).min();
    let message = end.map_or(message, |end| &message[..end]);
    // Of versions that are quoted whole the defaults are quoted as they were decoded.
    match message.strip_prefix("Invalid value: [{\"Name\":") {
        Some(quoted) => format!("versions: {}", quoted.rsplit("}]: ").next().unwrap_or_default()),
        None => message.to_owned(),
    }
}
