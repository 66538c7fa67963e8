//! Next steps that speak of the manifests: in the words of a deploy, and in those of a rollback, whose manifests the user
//! does not have.

use crate::text;

/// Nothing more is known than that a manifest is wrong.
pub const FIX_MANIFEST: &str = "fix the manifest and run the same command again";
/// The same of a line in it.
pub const FIX_HERE: &str = "fix the manifest here";
/// The same in a rollback.
const FIX_REVISION: &str = "go back to another revision, or deploy corrected manifests";
const CORRECTED: &str = "in corrected manifests: ";
/// An alternative at the end of a next step.
const OR_ADD: &str = "; or add it to the manifests";

/// What to do if there is no such namespace.
pub fn create_namespace(name: &str) -> String {
    format!("create it first: kubectl create namespace {}{OR_ADD}", text::shell_word(name))
}

/// The next step of a deploy as one of a rollback. What is said already so stays as it is.
pub fn in_rollback(help: &str) -> String {
    if let Some(first) = help.strip_suffix(OR_ADD) {
        return first.to_owned();
    }
    match help {
        FIX_MANIFEST | FIX_HERE => FIX_REVISION.to_owned(),
        // What names a command is complete.
        _ if help.contains("gantry ") || help == FIX_REVISION || help.starts_with(CORRECTED) => help.to_owned(),
        _ if help.contains("manifest") => {
            format!("{CORRECTED}{help}")
        }
        _ => help.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollback_does_not_ask_to_edit_its_manifests() {
        assert_eq!(in_rollback(FIX_HERE), FIX_REVISION);
        assert_eq!(in_rollback(&create_namespace("prod")), "create it first: kubectl create namespace prod");
        let other = in_rollback("correct it in the manifest");
        assert_eq!(other, "in corrected manifests: correct it in the manifest");
        assert_eq!(in_rollback("ask for the permission"), "ask for the permission");
        for said in [FIX_REVISION, &other] {
            assert_eq!(in_rollback(said), said);
        }
    }
}
