use serde_json::json;

use super::*;

fn directives_in(annotations: &Value) -> Vec<FoundDirective> {
    of_object(&json!({"metadata": {"annotations": annotations}}))
}

fn strategy_of(annotations: &Value, kind: &str) -> Option<DeployStrategy> {
    strategy(&directives_in(annotations), kind)
}

#[test]
fn each_value_of_the_table_has_its_meaning_and_is_found_by_its_mark() {
    for directive in DIRECTIVES {
        assert!(MARKS.iter().any(|mark| directive.key.contains(mark)), "no mark for {}", directive.key);
        for known in directive.values {
            let values: Vec<String> = match (directive.syntax, known.values) {
                (DirectiveSyntax::Integer, []) => vec!["-3".into()],
                (_, []) => vec!["anything".into()],
                (_, values) => values
                    .iter()
                    .map(|value| if value.ends_with('=') { format!("{value}x") } else { (*value).into() })
                    .collect(),
            };
            for value in values {
                let found = directives_in(&json!({directive.key: value}));
                assert_eq!(found.len(), 1, "{}", directive.key);
                assert_eq!((found[0].directive, found[0].meaning), (directive, known.meaning), "{value}");
            }
        }
        let unknown = directives_in(&json!({directive.key: "%"}));
        assert!(
            unknown[0].meaning == directive.unknown || directive.syntax == DirectiveSyntax::Any,
            "{}",
            directive.key
        );
        assert!(DIRECTIVES.iter().filter(|other| other.key == directive.key).count() == 1, "{}", directive.key);
    }
}

#[test]
fn a_strategy_that_protects_the_object_comes_first() {
    let options = "argocd.argoproj.io/sync-options";
    let ssa = "kustomize.toolkit.fluxcd.io/ssa";
    let force = "kustomize.toolkit.fluxcd.io/force";
    assert_eq!(strategy_of(&json!({options: "Force=true"}), "Secret"), Some(DeployStrategy::ReplaceRefused));
    assert_eq!(strategy_of(&json!({options: " Replace=true , Force=true"}), "Secret"), Some(DeployStrategy::Replace));
    assert_eq!(strategy_of(&json!({options: "Replace=true"}), "Secret"), None);
    assert_eq!(
        strategy_of(&json!({options: "Force=true", ssa: "IfNotPresent"}), "Secret"),
        Some(DeployStrategy::CreateOnly)
    );
    assert_eq!(strategy_of(&json!({force: "enabled", ssa: "ignore"}), "Secret"), Some(DeployStrategy::LeaveAlone));
    assert_eq!(strategy_of(&json!({ssa: "Override"}), "Secret"), None);
    for (key, policy) in [
        ("argocd.argoproj.io/hook", "argocd.argoproj.io/hook-delete-policy"),
        ("helm.sh/hook", "helm.sh/hook-delete-policy"),
    ] {
        let (event, word) = if key.starts_with("helm") {
            ("pre-install", "before-hook-creation")
        } else {
            ("PreSync", "BeforeHookCreation")
        };
        assert_eq!(strategy_of(&json!({key: event}), "Secret"), Some(DeployStrategy::ReplaceRefused));
        assert_eq!(strategy_of(&json!({key: event}), "Job"), Some(DeployStrategy::Replace));
        assert_eq!(strategy_of(&json!({key: event, policy: word}), "Secret"), Some(DeployStrategy::Replace));
        assert_eq!(strategy_of(&json!({policy: word}), "Job"), None, "it is no hook");
    }
}

#[test]
fn a_hook_of_a_deploy_and_of_another_event_is_written() {
    let both = json!({"argocd.argoproj.io/hook": "PostDelete,PreSync"});
    assert_eq!(strategy_of(&both, "Job"), Some(DeployStrategy::Replace));
    assert!(
        directives_in(&both).iter().any(|found| matches!(found.meaning, Meaning::Note { .. })),
        "a notice about the other one"
    );
    let argo_first = json!({"argocd.argoproj.io/hook": "PostDelete", "helm.sh/hook": "pre-install"});
    assert_eq!(strategy_of(&argo_first, "Job"), Some(DeployStrategy::LeaveAlone));
}

/// `UPDATE_DOCS=1 cargo test --lib directives` updates the table.
#[test]
fn the_table_in_the_documentation_is_fresh() {
    const HEAD: &str = "| tool | annotation | value | what gantry does |\n|---|---|---|---|\n";
    let mut fresh = HEAD.to_owned();
    for directive in DIRECTIVES.iter().filter(|directive| directive.tool != "gantry") {
        for known in directive.values {
            let value = match (directive.syntax, known.values) {
                (DirectiveSyntax::Integer, []) => "an integer".to_owned(),
                (_, []) => "any".to_owned(),
                (_, values) => {
                    let shown = |value: &&str| format!("`{value}{}`", if value.ends_with('=') { "…" } else { "" });
                    values.iter().map(shown).collect::<Vec<_>>().join(", ")
                }
            };
            fresh += &format!("| {} | `{}` | {value} | {} |\n", directive.tool, directive.key, known.does);
        }
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/taking-over.md");
    let text = std::fs::read_to_string(&path).expect("docs/taking-over.md");
    let start = text.find(HEAD).expect("the table");
    let length = text[start..].find("\n\n").expect("its end") + 1;
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let new = format!("{}{fresh}{}", &text[..start], &text[start + length..]);
        std::fs::write(&path, new).expect("write docs/taking-over.md");
    } else {
        assert_eq!(&text[start..start + length], fresh, "run UPDATE_DOCS=1 cargo test --lib directives");
    }
}
