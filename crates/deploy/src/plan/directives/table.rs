//! The annotations of other deploy tools, what each value asks of a deploy, and what gantry does. The table in
//! `docs/taking-over.md` is generated from this one.
//!
//! Sources: Argo CD's "Sync Options", "Sync Phases and Waves" and "Helm"; "Controlling the apply behavior of resources"
//! in the documentation of Flux's Kustomization; the constants of cli-utils; the annotations of kpt and Config Sync;
//! "Chart Hooks" of Helm.

use super::Meaning::{self, *};
use super::Phase::{AfterAll, BeforeAll, WithOthers};

/// An annotation of another deploy tool.
#[derive(Debug, PartialEq, Eq)]
pub struct Directive {
    pub tool: &'static str,
    pub key: &'static str,
    pub syntax: DirectiveSyntax,
    pub values: &'static [DirectiveValue],
    /// What a value means that is not in the table.
    pub unknown: Meaning,
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectiveSyntax {
    /// One of the values.
    Word,
    /// One of the values, in any case; a label with the key means the same.
    AnyCaseOrLabel,
    /// Values separated by commas.
    List,
    /// The same, in any case.
    AnyCaseList,
    /// An integer.
    Integer,
    /// Anything: the value does not matter.
    Any,
}

/// Values with the same meaning.
#[derive(Debug, PartialEq, Eq)]
pub struct DirectiveValue {
    /// A value that ends with `=` stands for all that start with it. Empty for any value.
    pub values: &'static [&'static str],
    pub meaning: Meaning,
    /// What gantry does, for the documentation.
    pub does: &'static str,
}

const fn known(values: &'static [&'static str], meaning: Meaning, does: &'static str) -> DirectiveValue {
    DirectiveValue { values, meaning, does }
}

pub const ARGO_OPTIONS: &str = "argocd.argoproj.io/sync-options";
pub const ARGO_HOOK: &str = "argocd.argoproj.io/hook";
pub const ARGO_WAVE: &str = "argocd.argoproj.io/sync-wave";
/// The annotation that makes an object a hook of Helm.
pub const HELM_HOOK: &str = "helm.sh/hook";
pub const HELM_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";
pub const HELM_WEIGHT: &str = "helm.sh/hook-weight";

const KEPT: &str = "the object stays when it leaves the manifests, and when the app is deleted";
const AS_ALWAYS: &str = "what gantry does anyway";
const IN_ORDER: &str = "the objects are written in this order, lower numbers first; see below";
const BEFORE: &str = "written before all other objects, which wait until it is ready; see below";
const AFTER: &str = "written when all other objects are ready; see below";
const NOT_ON_DEPLOY: &str = "not written: a notice";
const WITH_THE_OTHERS: &str = "written with the other objects";
const RUN_AGAIN: &str = "a hook that changes is deleted and created again";
const LEFT_ALONE: &str = "neither created, changed nor deleted; also if only the live object has it";
const BLOCKED: &str = "the deploy is blocked";
const KEPT_AFTER_RUN: &str = "the object stays after it has run: a notice";

const HOOK_RUN_KEPT: Meaning = Note {
    instead: "the object stays in the cluster after it has run",
    help: "for a Job, spec.ttlSecondsAfterFinished deletes it",
};
const RUN_AT_DELETE: Meaning =
    LeftOut { why: "it runs when the app is deleted", help: "gantry delete does not run it either; run it by hand" };

pub const DIRECTIVES: &[Directive] = &[
    Directive {
        tool: "Argo CD",
        key: ARGO_OPTIONS,
        syntax: DirectiveSyntax::List,
        values: &[
            known(&["Prune=false", "Delete=false"], Keep, KEPT),
            known(
                &["Prune=confirm", "Delete=confirm"],
                Keep,
                "the same: nobody confirms the deletion of a single object",
            ),
            known(&["Prune=true", "Delete=true", "PruneLast="], Nothing, AS_ALWAYS),
            known(
                &["Force=true"],
                ReplaceRefused,
                "deleted and created again if the server refuses the update; with `Replace=true`, at any change",
            ),
            known(
                &["Replace=true"],
                ReplaceOption,
                "updated with server-side apply, so fields of other managers stay: a notice",
            ),
            known(&["Force=false", "Replace=false", "ServerSideApply=", "ApplyOutOfSyncOnly="], Nothing, AS_ALWAYS),
            known(&["Validate="], Nothing, "the server validates every object"),
            known(
                &["SkipDryRunOnMissingResource="],
                Nothing,
                "a kind that is not served blocks the deploy, unless the manifests define it",
            ),
            known(
                &[
                    "RespectIgnoreDifferences=",
                    "CreateNamespace=",
                    "PrunePropagationPolicy=",
                    "FailOnSharedResource=",
                    "ClientSideApplyMigration=",
                    "ControllerReferencesOnly=",
                ],
                Nothing,
                "nothing: about an Application",
            ),
        ],
        unknown: Unknown {
            help: "known: Prune=false, Prune=confirm, Delete=false, Delete=confirm, PruneLast=true, Force=true, \
                Replace=true, ServerSideApply=true, Validate=false, SkipDryRunOnMissingResource=true and others",
        },
    },
    Directive {
        tool: "Argo CD",
        key: ARGO_HOOK,
        syntax: DirectiveSyntax::List,
        values: &[
            known(&["PreSync"], Hook(BeforeAll), BEFORE),
            known(&["Sync"], Hook(WithOthers), WITH_THE_OTHERS),
            known(&["PostSync"], Hook(AfterAll), AFTER),
            known(
                &["SyncFail"],
                LeftOut { why: "it runs when a sync fails", help: "gantry runs nothing after a deploy that fails" },
                NOT_ON_DEPLOY,
            ),
            known(&["PreDelete", "PostDelete"], RUN_AT_DELETE, NOT_ON_DEPLOY),
            known(
                &["Skip"],
                LeftOut { why: "Argo CD does not apply it either", help: "remove the annotation to deploy it" },
                NOT_ON_DEPLOY,
            ),
        ],
        unknown: LeftOut {
            why: "this hook is unknown, and Argo CD does not apply it either",
            help: "known: PreSync, Sync, PostSync, SyncFail, PreDelete, PostDelete, Skip",
        },
    },
    Directive {
        tool: "Argo CD",
        key: "argocd.argoproj.io/hook-delete-policy",
        syntax: DirectiveSyntax::List,
        values: &[
            known(&["BeforeHookCreation"], HookReplaced, RUN_AGAIN),
            known(&["HookSucceeded", "HookFailed"], HOOK_RUN_KEPT, KEPT_AFTER_RUN),
        ],
        unknown: Unknown { help: "known: BeforeHookCreation, HookSucceeded, HookFailed" },
    },
    Directive {
        tool: "Argo CD",
        key: ARGO_WAVE,
        syntax: DirectiveSyntax::Integer,
        values: &[known(&[], Order, IN_ORDER)],
        unknown: Unknown { help: "a wave is an integer; the object is in wave 0" },
    },
    Directive {
        tool: "Argo CD",
        key: "argocd.argoproj.io/compare-options",
        syntax: DirectiveSyntax::Any,
        values: &[known(
            &[],
            Nothing,
            "nothing: it changes what Argo CD shows as different, not what it writes or deletes",
        )],
        unknown: Nothing,
    },
    Directive {
        tool: "Flux",
        key: "kustomize.toolkit.fluxcd.io/prune",
        syntax: DirectiveSyntax::AnyCaseOrLabel,
        values: &[known(&["disabled"], Keep, KEPT), known(&["enabled"], Nothing, AS_ALWAYS)],
        unknown: UnknownKeep { help: "known: disabled, enabled" },
    },
    Directive {
        tool: "Flux",
        key: "kustomize.toolkit.fluxcd.io/reconcile",
        syntax: DirectiveSyntax::AnyCaseOrLabel,
        values: &[known(&["disabled"], LeaveAlone, LEFT_ALONE), known(&["enabled"], Nothing, AS_ALWAYS)],
        unknown: UnknownCreateOnly { help: "known: disabled, enabled" },
    },
    Directive {
        tool: "Flux",
        key: "kustomize.toolkit.fluxcd.io/ssa",
        syntax: DirectiveSyntax::AnyCaseOrLabel,
        values: &[
            known(&["IfNotPresent"], CreateOnly, "created if it is missing, and never changed"),
            known(&["Ignore"], LeaveAlone, LEFT_ALONE),
            known(
                &["Merge"],
                KeepFields,
                "fields that another deploy tool has set stay; if one of them changes, that is a conflict",
            ),
            known(&["Override"], Nothing, AS_ALWAYS),
        ],
        unknown: UnknownCreateOnly { help: "known: Override, Merge, IfNotPresent, Ignore" },
    },
    Directive {
        tool: "Flux",
        key: "kustomize.toolkit.fluxcd.io/force",
        syntax: DirectiveSyntax::AnyCaseOrLabel,
        values: &[
            known(&["enabled"], ReplaceRefused, "deleted and created again if the server refuses the update"),
            known(&["disabled"], Nothing, AS_ALWAYS),
        ],
        unknown: Unknown { help: "known: enabled, disabled" },
    },
    Directive {
        tool: "Flux",
        key: "kustomize.toolkit.fluxcd.io/substitute",
        syntax: DirectiveSyntax::Any,
        values: &[known(&[], Nothing, "nothing: gantry substitutes no variables")],
        unknown: Nothing,
    },
    Directive {
        tool: "Flux",
        key: "helm.toolkit.fluxcd.io/driftDetection",
        syntax: DirectiveSyntax::AnyCaseOrLabel,
        values: &[
            known(&["disabled"], Drift, "an object that differs from its manifest is written all the same: a notice"),
            known(&["enabled"], Nothing, AS_ALWAYS),
        ],
        unknown: Unknown { help: "known: enabled, disabled" },
    },
    Directive {
        tool: "Helm",
        key: "helm.sh/resource-policy",
        syntax: DirectiveSyntax::AnyCaseOrLabel,
        values: &[known(&["keep"], Keep, KEPT), known(&["delete"], Nothing, AS_ALWAYS)],
        unknown: UnknownKeep { help: "known: keep" },
    },
    Directive {
        tool: "Helm",
        key: HELM_HOOK,
        syntax: DirectiveSyntax::AnyCaseList,
        values: &[
            known(&["pre-install", "pre-upgrade"], Hook(BeforeAll), BEFORE),
            known(&["post-install", "post-upgrade"], Hook(AfterAll), AFTER),
            known(&["crd-install"], Hook(WithOthers), WITH_THE_OTHERS),
            known(&["pre-delete", "post-delete"], RUN_AT_DELETE, NOT_ON_DEPLOY),
            known(
                &["pre-rollback", "post-rollback"],
                LeftOut { why: "it runs at a rollback", help: "gantry has none: run it by hand" },
                NOT_ON_DEPLOY,
            ),
            known(
                &["test", "test-success", "test-failure"],
                LeftOut {
                    why: "it is a test",
                    help: "gantry runs no tests of a chart; helm template --skip-tests leaves them out",
                },
                NOT_ON_DEPLOY,
            ),
        ],
        unknown: LeftOut {
            why: "this hook is unknown, and Helm does not create it either",
            help: "known: pre-install, post-install, pre-upgrade, post-upgrade, pre-delete, post-delete, pre-rollback, \
                post-rollback, test",
        },
    },
    Directive {
        tool: "Helm",
        key: HELM_DELETE_POLICY,
        syntax: DirectiveSyntax::AnyCaseList,
        values: &[
            known(&["before-hook-creation"], HookReplaced, RUN_AGAIN),
            known(&["hook-succeeded", "hook-failed"], HOOK_RUN_KEPT, KEPT_AFTER_RUN),
        ],
        unknown: Unknown { help: "known: before-hook-creation, hook-succeeded, hook-failed" },
    },
    Directive {
        tool: "Helm",
        key: HELM_WEIGHT,
        syntax: DirectiveSyntax::Integer,
        values: &[known(&[], Order, "hooks of a phase are written in this order, lower numbers first")],
        unknown: Unknown { help: "a weight is an integer; the object has weight 0" },
    },
    Directive {
        tool: "Helm",
        key: "helm.sh/hook-output-log-policy",
        syntax: DirectiveSyntax::Any,
        values: &[known(&[], Nothing, "nothing: logs of Pods that fail are shown with `--logs`")],
        unknown: Nothing,
    },
    Directive {
        tool: "Helm",
        key: "helm.sh/resource-group",
        syntax: DirectiveSyntax::Any,
        values: &[known(
            &[],
            Note {
                instead: "gantry does not order resource groups",
                help: "if the order matters, use gantry.dev/change-group and gantry.dev/change-rule",
            },
            "not ordered: a notice",
        )],
        unknown: Nothing,
    },
    Directive {
        tool: "Helm",
        key: "helm.sh/depends-on/resource-groups",
        syntax: DirectiveSyntax::Any,
        values: &[known(
            &[],
            Blocks {
                instead: "gantry does not order resource groups",
                help: "remove the annotation, and use gantry.dev/change-group and gantry.dev/change-rule",
            },
            BLOCKED,
        )],
        unknown: Nothing,
    },
    Directive {
        tool: "cli-utils, kpt",
        key: "cli-utils.sigs.k8s.io/on-remove",
        syntax: DirectiveSyntax::Word,
        values: &[known(&["keep"], Keep, KEPT)],
        unknown: UnknownKeep { help: "known: keep" },
    },
    Directive {
        tool: "cli-utils, kpt, Config Sync",
        key: "client.lifecycle.config.k8s.io/deletion",
        syntax: DirectiveSyntax::Word,
        values: &[known(&["detach"], Keep, KEPT)],
        unknown: UnknownKeep { help: "known: detach" },
    },
    Directive {
        tool: "cli-utils, kpt, Config Sync",
        key: "client.lifecycle.config.k8s.io/mutation",
        syntax: DirectiveSyntax::Word,
        values: &[known(
            &["ignore"],
            CreateOnlyOrLive,
            "created if it is missing, and never changed; also if only the live object has it",
        )],
        unknown: UnknownCreateOnly { help: "known: ignore" },
    },
    Directive {
        tool: "Config Sync",
        key: "configmanagement.gke.io/managed",
        syntax: DirectiveSyntax::Word,
        values: &[known(&["disabled"], LeaveAlone, LEFT_ALONE), known(&["enabled"], Nothing, AS_ALWAYS)],
        unknown: UnknownCreateOnly { help: "known: disabled, enabled" },
    },
    Directive {
        tool: "kpt, kustomize",
        key: "config.kubernetes.io/local-config",
        syntax: DirectiveSyntax::Word,
        values: &[
            known(&["true"], Local, "not written: an input of tools that render manifests"),
            known(&["false"], Nothing, AS_ALWAYS),
        ],
        unknown: Local,
    },
    Directive {
        tool: "cli-utils, kpt",
        key: "config.kubernetes.io/apply-time-mutation",
        syntax: DirectiveSyntax::Any,
        values: &[known(
            &[],
            Blocks {
                instead: "gantry does not copy values from other objects, and the manifest has only placeholders",
                help: "write the values into the manifest, and remove the annotation",
            },
            BLOCKED,
        )],
        unknown: Nothing,
    },
    Directive {
        tool: "gantry",
        key: "gantry.dev/prune",
        syntax: DirectiveSyntax::Word,
        values: &[known(&["keep"], Keep, KEPT)],
        unknown: UnknownKeep { help: "known: keep" },
    },
];
