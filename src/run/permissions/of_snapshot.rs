//! The rights that `gantry snapshot` needs: to read, and nothing else.

use std::collections::BTreeSet;

use super::{name_of, named_user, needed_right, subjects};
use crate::cli::PermissionsArgs;
use crate::run::host::Host;
use crate::run::interrupt::until_interrupted;
use crate::run::prepare::{OptionalInput, connection, desired_source, loader, overrides};
use crate::run::snapshot;
use gantry_cluster::{ListError, ListRequest, Target};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::Resource;
use gantry_core::text;
use gantry_deploy::config::{Loader, key};
use gantry_deploy::plan::{Plan, kinds};
use gantry_preflight::permission_validation::{Grants, Need};

const PAGE: u32 = 500;

/// The manifests of the roles and bindings, as text.
pub async fn run(args: &PermissionsArgs, host: &mut Host) -> Result<String> {
    if args.app.is_some() || args.logs {
        let problem = Problem::new("--app and --logs are about a deploy, and these are the rights for a snapshot");
        return Err(Error::usage(problem.help("leave them out, or say --for deploy")));
    }
    let overrides = overrides(&args.input).with(&key::AS_USER, &args.user).with(&key::AS_GROUPS, &args.groups);
    let loader = Loader { overrides, ..loader(&args.input.config, host) };
    let (input, settings) = OptionalInput::open(&args.input.arguments(), &loader, host).await?;
    // Before any request.
    named_user(&settings)?;
    let manifests = input.read()?;
    let stop = host.stop.clone();
    let work = async {
        let files = &args.input.arguments();
        let desired = desired_source(&settings, files, manifests.as_ref());
        let target = Target::open(&settings.target, &connection(&settings, None), desired).await?;
        let objects = if args.objects { ", and of their custom resources" } else { "" };
        let (plan, needs, what) = match manifests {
            Some(manifests) => {
                let (plan, _) = snapshot::plan_of(manifests, &settings, &target).await?;
                let needs = of_manifests(&plan, args.objects);
                let what =
                    format!("of {} and the CRDs of their kinds{objects}", text::count(plan.changes.len(), "object"));
                (plan, needs, what)
            }
            None => {
                let needs = of_all(&target, args.objects).await?;
                let now = if args.objects {
                    ".\n# Of those that there are now: print again for CRDs that are added later"
                } else {
                    ""
                };
                (Plan::default(), needs, format!("of every CRD{objects}{now}"))
            }
        };
        let subjects = subjects(&settings, &target).await?;
        let notices: Vec<Problem> = plan.unplaced.iter().map(|unplaced| unplaced.problem.clone()).collect();
        let yaml = Grants::for_all(&plan, &needs).yaml(name_of(args), &subjects);
        Ok((format!("# Minimal RBAC for a snapshot {what}.\n{yaml}"), notices))
    };
    let (text, notices) = until_interrupted(&stop, work).await?;
    host.print_notices(&notices);
    Ok(text)
}

/// To read what the manifests name, whether it is there or not, and the CRDs of their kinds.
fn of_manifests(plan: &Plan, objects: bool) -> Vec<Need> {
    let (mut needs, mut crds) = (Vec::new(), BTreeSet::new());
    for (index, change) in plan.changes.iter().enumerate() {
        let object = &change.desired.object;
        if object.is_crd() {
            crds.insert(object.name.clone());
            continue;
        }
        let Resource { group, plural, .. } = &*change.resource;
        if !kinds::is_built_in(group) {
            crds.insert(format!("{plural}.{group}"));
        }
        // The server judges a request for a Namespace as one in it.
        let namespace = if object.is_namespace() { Some(object.name.as_str()) } else { object.namespace.as_deref() };
        needs.push(needed_right(index, namespace, &change.resource, Some(&object.name), "get"));
    }
    needs.extend(crds.iter().map(|name| needed_right(0, None, &Resource::crd(), Some(name), "get")));
    if objects {
        needs.extend(crds.iter().filter_map(|name| of_custom_resources(name, "list")));
    }
    needs
}

/// To list every CRD, and the custom resources of those that there are.
async fn of_all(target: &Target, objects: bool) -> Result<Vec<Need>> {
    let crd = Resource::crd();
    let mut needs = vec![needed_right(0, None, &crd, None, "list")];
    if !objects {
        return Ok(needs);
    }
    let names = crd_names(target).await?;
    needs.extend(names.iter().filter_map(|name| of_custom_resources(name, "list")));
    Ok(needs)
}

/// The names of the CRDs that there are.
pub(super) async fn crd_names(target: &Target) -> Result<BTreeSet<String>> {
    let crd = Resource::crd();
    let request = ListRequest { metadata_only: true, ..ListRequest::new(&crd, PAGE) };
    let gather = |names: &mut BTreeSet<String>, json: &str| {
        let metadata = serde_json::from_str::<serde_json::Value>(json).ok();
        names.extend(metadata.and_then(|object| object["metadata"]["name"].as_str().map(str::to_owned)));
    };
    target.list(&request).gather(gather).await.map_err(|error: ListError| {
        let what = error.problem().cloned().unwrap_or_else(|| Problem::new("the list expired again and again"));
        Error::failed(Problem { message: format!("the CRDs are not known: {}", what.message), ..what })
    })
}

/// The name of a CRD is that of its resource and its group.
fn of_custom_resources(crd: &str, verb: &str) -> Option<Need> {
    let (plural, group) = crd.split_once('.')?;
    let resource = Resource { group: group.to_owned(), plural: plural.to_owned(), ..Resource::crd() };
    Some(needed_right(0, None, &resource, None, verb))
}
