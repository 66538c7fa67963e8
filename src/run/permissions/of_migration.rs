//! The rights that `gantry migrate` needs: to read and write the objects of CRDs, and to trim their stored versions.

use std::collections::BTreeSet;

use super::of_snapshot::crd_names;
use super::{name_of, named_user, needed_right, subjects};
use crate::cli::PermissionsArgs;
use crate::run::host::Host;
use crate::run::interrupt::until_interrupted;
use crate::run::migrate::rights::{MigrationRight, rights_for, rights_for_server_migrator};
use crate::run::prepare::{OptionalInput, connection, loader, overrides};
use gantry_cluster::{DesiredSource, Target};
use gantry_core::options::{MigrationWriterFlag, TargetSpec};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::Resource;
use gantry_core::text;
use gantry_deploy::config::{Loader, key};
use gantry_deploy::plan::Plan;
use gantry_preflight::permission_validation::{Grants, Need};

/// The manifests of the roles and bindings, as text.
pub async fn run(args: &PermissionsArgs, host: &mut Host) -> Result<String> {
    if args.app.is_some() || args.logs || args.objects {
        let problem = Problem::new("--app, --logs and --objects are not about a migration");
        return Err(Error::usage(problem.help("leave them out, or say --for deploy or --for snapshot")));
    }
    let overrides = overrides(&args.input).with(&key::AS_USER, &args.user).with(&key::AS_GROUPS, &args.groups);
    let loader = Loader { overrides, ..loader(&args.input.config, host) };
    let (input, settings) = OptionalInput::open(&args.input.arguments(), &loader, host).await?;
    // Before any request.
    named_user(&settings)?;
    if settings.target != TargetSpec::Kube {
        return Err(Error::usage(Problem::new("only the API server of a cluster has stored objects")));
    }
    let named: Option<BTreeSet<String>> = input.read()?.map(|loaded| {
        let crds = loaded.manifests.into_iter().filter(|manifest| manifest.object.is_crd());
        crds.map(|manifest| manifest.object.name.clone()).collect()
    });
    let stop = host.stop.clone();
    let work = async {
        let target = Target::open(&settings.target, &connection(&settings, None), DesiredSource::default()).await?;
        let mut needs = Vec::new();
        let (names, what) = match named {
            Some(names) => {
                let what = format!("of the objects of {}", text::count(names.len(), "CRD"));
                (names, what)
            }
            None => {
                needs.push(needed_right(0, None, &Resource::crd(), None, "list"));
                let what = "of the objects of every CRD.\n# Of those that there are now: print again for CRDs that are added later";
                (crd_names(&target).await?, what.to_owned())
            }
        };
        needs.extend(names.iter().flat_map(|name| of_crd(name)));
        if args.using == Some(MigrationWriterFlag::Server) {
            needs.extend(rights_for_server_migrator().map(need));
        }
        let subjects = subjects(&settings, &target).await?;
        let yaml = Grants::for_all(&Plan::default(), &needs).yaml(name_of(args), &subjects);
        Ok(format!("# Minimal RBAC for a migration {what}.\n{yaml}"))
    };
    until_interrupted(&stop, work).await
}

/// To migrate the objects of one CRD.
pub(super) fn of_crd(name: &str) -> impl Iterator<Item = Need> {
    rights_for(name).into_iter().map(need)
}

fn need(MigrationRight { resource, name, verb }: MigrationRight) -> Need {
    needed_right(0, None, &resource, name.as_deref(), verb)
}
