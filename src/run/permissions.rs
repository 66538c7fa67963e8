//! `gantry permissions`: the minimal RBAC that a deploy needs, for an identity that may not have it yet.
//!
//! The output does not depend on the state of the target: it is valid for the first deploy of these manifests and for
//! later ones. So live objects are read only if a binding refers to an existing role, and for the lookups of checks.

mod of_migration;
mod of_snapshot;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::Arc;

use gantry_schema::names;

use super::host::Host;
use super::interrupt::until_interrupted;
use super::prepare::{Asking, complete, connection, desired_source, loader, overrides, read_input};
use crate::cli::PermissionsArgs;
use gantry_core::options::{HelmReleaseSpec, PermissionPurpose, TargetSpec};
use gantry_core::parallel::on_cpu_thread;
use gantry_deploy::app::{App, config_maps, kapp, revisions};
use gantry_deploy::config::{Loader, Settings, key};
use gantry_deploy::plan::owner::TakeoverPatterns;
use gantry_deploy::plan::planned_bundle::PlannedBundle;
use gantry_deploy::plan::{self, Action, Change, Crds, Deleter, Plan, PlanOptions, Prefetch};
use gantry_olm::cluster_extension::Extension;

use gantry_cluster::kube::KubeTarget;
use gantry_cluster::{HelmRelease, Target};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::rbac::{self, Atom};
use gantry_core::resource::{LiveObject, ObjectRef, Resource};
use gantry_core::text;
use gantry_preflight::deletion_safety;
use gantry_preflight::olm::OlmState;
use gantry_preflight::permission_validation::{
    Grants, InstallerRights, Need, RbacSubject, Right, RightsOccasion, installer_rights, needs_of, of_logs, of_waiting,
    scalar,
};
use gantry_preflight::proofs::Proofs;
use gantry_preflight::{Check, CheckLookup, FindLookups, UNKNOWN_LOOKUPS, registry};

/// The manifests, as text.
pub async fn run(args: &PermissionsArgs, host: &mut Host) -> Result<String> {
    check_name(name_of(args))?;
    if args.using.is_some() && args.purpose != Some(PermissionPurpose::Migrate) {
        return Err(Error::usage(Problem::new("--using is about a migration").help("say --for migrate")));
    }
    if args.migrate && !matches!(args.purpose, None | Some(PermissionPurpose::Deploy)) {
        let problem = Problem::new("--migrate is about a deploy");
        return Err(Error::usage(problem.help("leave it out; --for migrate prints the rights of gantry migrate")));
    }
    if args.purpose == Some(PermissionPurpose::Snapshot) {
        return of_snapshot::run(args, host).await;
    }
    if args.purpose == Some(PermissionPurpose::Migrate) {
        return of_migration::run(args, host).await;
    }
    if args.input.arguments().is_empty() {
        return Err(Error::usage(
            Problem::new("the rights for a deploy need its manifests").help("name them: -f PATH"),
        ));
    }
    if args.objects {
        return Err(Error::usage(Problem::new("--objects is about a snapshot").help("say --for snapshot")));
    }
    // --as names who needs the rights: the manifests are read with one's own.
    let own = Loader { overrides: overrides(&args.input), ..loader(&args.input.config, host) };
    let input = read_input(&args.input.arguments(), &own, Asking::Target, host).await?;
    let overrides = overrides(&args.input)
        .with(&key::AS_USER, &args.user)
        .with(&key::AS_GROUPS, &args.groups)
        .with(&key::APP, &args.app)
        .with(&key::LOGS, &args.logs);
    let loader = Loader { overrides, ..own };
    let loaded = loader.load(input.configs(), &registry::known())?;
    host.print_notices(&loaded.notices);
    let settings = loaded.settings;
    // Before any request.
    named_user(&settings)?;
    let configs = input.configs().count();
    let manifests = complete(input.read()?, configs)?;

    let stop = host.stop.clone();
    let work = async {
        let files = &args.input.arguments();
        let desired = desired_source(&settings, files, Some(&manifests));
        let target = Target::open(&settings.target, &connection(&settings, None), desired).await?;
        let policy = super::app::deploy_policy(&settings, Deleter::Deploy);
        let taken = TakeoverPatterns::new(&settings.take_ownership);
        // Doubts are not settled: an update that may change nothing needs the same rights.
        let options = PlanOptions {
            namespace: settings.namespace.as_deref(),
            goes_on_unread: true,
            rebases: &settings.rules.rebases,
            ..PlanOptions::new(&policy, &taken)
        };
        let built = plan::build(manifests, Prefetch::none(), &target, options, &|_, _| ()).await;
        let plan = built.map_err(Error::without_block)?;
        let (text, unknown) = match plan.bundles.is_empty() {
            true => {
                let subjects = subjects(&settings, &target).await?;
                print(args, &settings, &plan, &target, &subjects).await.map_err(Error::failed)?
            }
            false => (print_for_olm(args, &settings, &plan, &target).await?, Vec::new()),
        };
        Ok((text, target.notices().to_vec(), plan.unread(), unknown))
    };
    let (text, notices, unread, unknown) = until_interrupted(&stop, work).await?;
    host.print_notices(&notices);
    let notice = |Problem { message, .. }| Problem::new(format!("{UNKNOWN_LOOKUPS}: {message}"));
    host.print_notices(&unknown.into_iter().map(notice).collect::<Vec<_>>());
    if let Some(first) = unread.first() {
        let _ = writeln!(
            host.stderr,
            "notice: cannot read all live objects, so rights to list what checks read may be missing: {}",
            text::sanitize(&first.message)
        );
    }
    Ok(text)
}

/// What the roles and bindings are called.
fn name_of(args: &PermissionsArgs) -> &str {
    let default = match args.purpose {
        Some(PermissionPurpose::Snapshot) => "gantry-snapshot",
        Some(PermissionPurpose::Migrate) => "gantry-migrate",
        _ => "gantry-deploy",
    };
    args.name.as_deref().unwrap_or(default)
}

/// Refuses a name that the API server would refuse for a role.
fn check_name(name: &str) -> Result<()> {
    let why = match name {
        "" => Some("it is empty".to_owned()),
        name if name.chars().any(char::is_control) => Some("it contains a control character".to_owned()),
        name => names::path_segment(name, false).into_iter().next(),
    };
    match why {
        None => Ok(()),
        Some(why) => Err(Error::usage(Problem::new(format!("--name: {name:?} is not the name of a role: {why}")))),
    }
}

/// The user or service account that `--as` or the configuration names.
fn named_user(settings: &Settings) -> Result<Option<RbacSubject>> {
    let named = settings.user.as_deref().map(RbacSubject::user).transpose();
    named.map_err(|why| Error::usage(Problem::new(why).help("correct --as")))
}

/// The subject of the bindings.
async fn subjects(settings: &Settings, target: &Target) -> Result<Vec<RbacSubject>> {
    if let Some(subject) = named_user(settings)? {
        return Ok(vec![subject]);
    }
    if !settings.groups.is_empty() {
        return Ok(settings.groups.iter().cloned().map(RbacSubject::Group).collect());
    }
    let nobody = "name the identity that needs the rights with --as or --as-group";
    match target.user().await {
        Some(Ok(user)) => match RbacSubject::user(&user) {
            Ok(subject) => Ok(vec![subject]),
            Err(why) => Err(Error::failed(Problem::new(why).help(nobody))),
        },
        Some(Err(problem)) => Err(Error::failed(problem.help(nobody))),
        None => {
            Err(Error::usage(Problem::new(format!("a {} does not know your identity", target.noun())).help(nobody)))
        }
    }
}

/// Also returns why some rights are unknown.
async fn print(
    args: &PermissionsArgs,
    settings: &Settings,
    plan: &Plan,
    target: &Target,
    subjects: &[RbacSubject],
) -> std::result::Result<(String, Vec<Problem>), Problem> {
    let checks = settings.checks.iter().filter_map(|selected| {
        let entry = registry::find(&selected.name)?;
        Some((entry.build)(&selected.config))
    });
    let checks: Vec<Box<dyn Check>> = checks.collect();
    let mut lookups = lookups(&checks, plan).await;
    let mut unknown = Vec::new();
    let release = settings.olm.or_else(|| checks.iter().find_map(|check| check.olm_release()));
    let olm = OlmState::new(plan, target, &settings.catalogs, false, release);
    for check in &checks {
        match check.live_lookups(plan, &olm).await {
            Ok(found) => lookups.extend(found),
            Err(problem) => unknown.push(problem),
        }
    }
    let mut needs = needs_of(plan, target, &lookups, RightsOccasion::Always).await?;
    if let Some(app) = &settings.app {
        let app = App::new(app, settings.app_namespace.as_deref(), settings.namespace.as_deref(), target);
        needs.extend(needs_of_app(&app, plan, settings.history > 0));
        if let Some(name) = &args.from_kapp {
            let name = if name.is_empty() { &app.name } else { name };
            needs.extend(needs_of_kapp(name, &app, target).await?);
        }
    }
    if args.migrate {
        let crds = plan.changes.iter().map(|change| &change.desired.object).filter(|object| object.is_crd());
        needs.extend(crds.flat_map(|crd| of_migration::of_crd(&crd.name)));
    }
    needs.extend(needs_of_helm_releases(args, settings, plan, target).await?);
    if super::app::waits(settings) {
        needs.extend(of_waiting(plan, RightsOccasion::Always));
    }
    if super::app::shows_logs(settings) {
        needs.extend(of_logs(plan, RightsOccasion::Always));
    }
    let yaml = Grants::for_all(plan, &needs).yaml(name_of(args), subjects);
    let names: Vec<String> = settings.checks.iter().map(|check| check.name.clone()).collect();
    let head = format!(
        "# Minimal RBAC to deploy {} with {}.\n",
        text::count(plan.changes.len(), "object"),
        if names.is_empty() { "no check".to_owned() } else { names.join(", ") }
    );
    let namespaces = if settings.app.is_some() { namespaces_of(plan) } else { String::new() };
    Ok((format!("{head}{namespaces}{}{yaml}", unknown_parameters(plan, &needs)), unknown))
}

/// The rights that OLM needs to install the bundles, for the service accounts that it installs them with. Each bundle has
/// roles of its own, so that they can be granted and withdrawn apart from those of other operators and versions.
async fn print_for_olm(args: &PermissionsArgs, settings: &Settings, plan: &Plan, target: &Target) -> Result<String> {
    let mut printed = Vec::new();
    for (index, bundle) in plan.bundles.iter().enumerate() {
        let subjects = installer_subjects(bundle, settings, target).await?;
        let accounts: Vec<(&str, &str)> = subjects.iter().filter_map(RbacSubject::account).collect();
        // OLM expects the service account in the namespace that it installs to.
        let of_account = accounts.first().map(|(namespace, _)| *namespace);
        let default = || settings.namespace.as_deref().unwrap_or_else(|| target.default_namespace());
        let namespace = of_account.unwrap_or_else(default);
        let rights = installer_rights(plan, index, namespace).map_err(Error::failed)?;
        let install = text::sanitize(bundle.namespace().unwrap_or(namespace));
        let head = format!("# Minimal RBAC for OLM v1 to install {} in namespace {install}.\n", bundle.to_text());
        let notes = notes_of(plan, index, &rights);
        let is_of_plan = |(namespace, name): &(&str, &str)| {
            plan.changes.iter().any(|change| {
                let ObjectRef { kind, namespace: of, name: found, .. } = &*change.desired.object;
                kind == "ServiceAccount" && of.as_deref() == Some(*namespace) && found == name
            })
        };
        let mut documents: Vec<String> =
            accounts.iter().filter(|account| !is_of_plan(account)).map(|account| service_account(*account)).collect();
        documents.push(rights.grants.yaml(&installer_name(args, plan, bundle), &subjects));
        printed.push(format!("{head}{notes}{}", documents.join("---\n")));
    }
    Ok(printed.join("---\n"))
}

/// Who installs the bundle: whom the flags or the configuration name, or the account of the ClusterExtension.
async fn installer_subjects(bundle: &PlannedBundle, settings: &Settings, target: &Target) -> Result<Vec<RbacSubject>> {
    let account = bundle.extension().and_then(Extension::account);
    match account.filter(|_| settings.user.is_none() && settings.groups.is_empty()) {
        Some((namespace, name)) => {
            Ok(vec![RbacSubject::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() }])
        }
        None => subjects(settings, target).await,
    }
}

/// The name of the roles: that of the ClusterExtension, or else of the package, and the version. The roles of two
/// versions can then be granted at the same time.
fn installer_name(args: &PermissionsArgs, plan: &Plan, bundle: &PlannedBundle) -> String {
    let operator = bundle.extension().map_or(bundle.package(), |extension| &extension.name);
    match &args.name {
        Some(name) if plan.bundles.len() == 1 => name.clone(),
        Some(name) => format!("{name}-{operator}"),
        None => {
            let parts = [operator, bundle.version(), "installer"];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            parts.join("-").replace(['/', '%'], "-")
        }
    }
}

fn service_account((namespace, name): (&str, &str)) -> String {
    let (name, namespace) = (scalar(name), scalar(namespace));
    format!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}, namespace: {namespace}}}\n")
}

/// Comments on the rights of a bundle.
fn notes_of(plan: &Plan, index: usize, rights: &InstallerRights) -> String {
    let others = plan.changes.iter().filter(|change| change.desired.bundle.is_none()).count();
    let notes = [
        (
            others > 0 && index == 0,
            "Objects that OLM does not install are left out: run this command on them without the bundle.",
        ),
        (
            rights.has_hashes,
            "OLM appends a hash of the rules to the names of roles: print again for each new version, and grant both \
             until it is installed.",
        ),
        (rights.has_certificates, "cert-manager.io: needed if OLM uses cert-manager for the certificates of webhooks."),
        (
            rights.is_nameless,
            "clusterextensions/finalizers: for any name; add the ClusterExtension with -f to limit it to its own.",
        ),
    ];
    notes.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| format!("# {note}\n")).collect()
}

/// The additional rights for the deploy of an app: to find its members, to delete those that leave, to write its
/// record, and to keep its revisions.
fn needs_of_app(app: &App, plan: &Plan, keeps_revisions: bool) -> Vec<Need> {
    let mut needs = Vec::new();
    for (index, change) in plan.changes.iter().enumerate() {
        needs.extend(needs_to_delete(index, &change.desired.object));
        let namespace = change.desired.object.namespace.as_deref();
        for verb in ["get", "delete"] {
            needs.push(needed_right(index, namespace, &change.resource, None, verb));
        }
    }
    // The members of a kind are looked for in all namespaces of the manifests, and in that of the record.
    let in_plan = plan.changes.iter().filter_map(|change| change.desired.object.namespace.as_deref());
    let namespaces: BTreeSet<&str> = in_plan.chain([&*app.namespace]).collect();
    let of_kind = |(index, change): (usize, &Change)| {
        let Resource { group, plural, .. } = &*change.resource;
        ((group.clone(), plural.clone()), index)
    };
    let kinds: BTreeMap<_, _> = plan.changes.iter().enumerate().map(of_kind).collect();
    for index in kinds.into_values() {
        let resource = &plan.changes[index].resource;
        let list = |namespace| needed_right(index, namespace, resource, None, "list");
        match resource.namespaced {
            true => needs.extend(namespaces.iter().map(|namespace| list(Some(*namespace)))),
            false => needs.push(list(None)),
        }
    }
    if !plan.changes.is_empty() {
        let (parent, resource) = (app.parent(), config_maps());
        for verb in ["get", "create", "patch", "delete"] {
            needs.push(needed_right(0, Some(&app.namespace), &resource, Some(&parent.name), verb));
        }
        if keeps_revisions {
            let secrets = revisions::secrets();
            let verbs = revisions::VERBS.iter();
            needs.extend(verbs.map(|verb| needed_right(0, Some(&app.namespace), &secrets, None, verb)));
        }
        // The names of parts are generated.
        let verbs: &[&str] = if super::app::needs_parts(plan) == Ok(false) {
            &[]
        } else {
            &["get", "list", "create", "patch", "delete"]
        };
        needs.extend(verbs.iter().map(|verb| needed_right(0, Some(&app.namespace), &resource, None, verb)));
    }
    needs
}

fn needed_right(change: usize, namespace: Option<&str>, resource: &Resource, name: Option<&str>, verb: &str) -> Need {
    let atom = Atom::Resource {
        group: resource.group.clone(),
        resource: resource.plural.clone(),
        name: name.map(str::to_owned),
        verb: verb.to_owned(),
    };
    let right = Right::Request { atom, version: resource.version.clone() };
    Need { change, namespace: namespace.map(str::to_owned), right }
}

/// The lookups that `DeletionSafety` needs when this object is deleted. To know what a namespace contains, it would
/// need the right to list everything in it: see [`namespaces_of`].
fn needs_to_delete(change: usize, object: &Arc<ObjectRef>) -> impl Iterator<Item = Need> {
    let lookups = deletion_safety::lookups_of(object).into_iter();
    lookups.map(move |lookup| {
        needed_right(change, lookup.namespace.as_deref(), &lookup.resource, lookup.name.as_deref(), lookup.verb)
    })
}

/// A comment on that right, which is left out.
fn namespaces_of(plan: &Plan) -> String {
    let namespaces = plan.changes.iter().filter(|change| change.desired.object.is_namespace());
    let word = |change: &Change| {
        format!(
            "# To delete {} when it leaves the app, list on every kind in it and on APIServices is also needed.\n",
            text::sanitize(&change.desired.object.to_string())
        )
    };
    namespaces.map(word).collect()
}

/// The rights to take over an app of kapp: to find its members, to write or delete them, and to delete its record.
async fn needs_of_kapp(name: &str, app: &App, target: &Target) -> std::result::Result<Vec<Need>, Problem> {
    let first = |error: Error| error.first_problem();
    let Some(record) = kapp::KappAppRecord::read(name, &app.namespace, target).await.map_err(first)? else {
        let problem = Problem::new(format!("there is no app {name} of kapp in namespace {}", app.namespace));
        return Err(problem.help("kapp ls -A lists the existing ones"));
    };
    let members = record.members(target).await.map_err(first)?;
    if let Some(problem) = members.unread.first() {
        return Err(problem.clone());
    }
    let mut needs = Vec::new();
    for (resource, namespace) in record.places(&members) {
        // Kinds without members are listed, too.
        let has_some = members.found.iter().any(|found| found.resource == resource);
        let verbs: &[&str] = if has_some { &["get", "list", "patch", "delete"] } else { &["list"] };
        for verb in verbs {
            needs.push(needed_right(0, namespace.as_deref(), &resource, None, verb));
        }
    }
    needs.extend(members.found.iter().flat_map(|found| needs_to_delete(0, &found.object)));
    // The names of kapp's records of app changes are generated.
    for verb in ["get", "list", "delete"] {
        needs.push(needed_right(0, Some(&app.namespace), &config_maps(), None, verb));
    }
    Ok(needs)
}

/// The rights to read the releases of Helm that `-f` and the target name: Helm records each revision as a Secret.
async fn needs_of_helm_releases(
    args: &PermissionsArgs,
    settings: &Settings,
    plan: &Plan,
    target: &Target,
) -> std::result::Result<Vec<Need>, Problem> {
    let arguments = args.input.arguments();
    let of_arguments = arguments.iter().filter_map(|argument| HelmReleaseSpec::of_argument(argument)?.ok());
    let of_target = match &settings.target {
        TargetSpec::HelmRelease(spec) => Some(spec.clone()),
        _ => None,
    };
    let releases: Vec<HelmReleaseSpec> = of_arguments.chain(of_target).collect();
    if releases.is_empty() || plan.changes.is_empty() {
        return Ok(Vec::new());
    }
    let first = |error: Error| error.first_problem();
    // They are read from the cluster whatever the target is.
    let opened;
    let server = match target.as_server() {
        Some(server) => server,
        None => {
            opened = KubeTarget::open(&connection(settings, None)).await.map_err(first)?;
            &opened
        }
    };
    let mut namespaces = BTreeSet::new();
    for release in &releases {
        let of_run = settings.namespace.as_deref();
        namespaces.insert(HelmRelease::choose_namespace(release, of_run, server).map_err(first)?);
    }
    let secrets = revisions::secrets();
    let needs_in = |namespace| ["get", "list"].map(|verb| needed_right(0, Some(namespace), &secrets, None, verb));
    Ok(namespaces.into_iter().flat_map(needs_in).collect())
}

/// A comment on rights that grant more than one may expect.
fn unknown_parameters(plan: &Plan, needs: &[Need]) -> String {
    let is_any = |right: &Right| matches!(right, Right::Request { atom: Atom::Resource { resource, .. }, .. } if resource == rbac::ALL);
    let changes: BTreeSet<usize> = needs.iter().filter(|need| is_any(&need.right)).map(|need| need.change).collect();
    let word = |change: usize| {
        format!(
            "# {}: its paramKind is unknown, so the API server requires read access to everything.\n\
             # Deploy its policy, or the CRD of its parameters, first and print again.\n",
            text::sanitize(&plan.changes[change].desired.object.to_string())
        )
    };
    changes.into_iter().map(word).collect()
}

/// The lookups of the checks in a deploy of the plan, in a first deploy to an empty target, and in a later deploy.
async fn lookups(checks: &[Box<dyn Check>], plan: &Plan) -> Vec<CheckLookup> {
    let with = |action, live: fn(&Change) -> Option<LiveObject>| {
        let changes = plan.changes.iter().map(|change| Change {
            action,
            live: live(change),
            // The live CRD differs, so it is read again.
            crds: Crds::default(),
            ..change.clone()
        });
        Plan { changes: changes.collect(), ..Plan::default() }
    };
    let before = with(Action::Create, |_| None);
    let after = with(Action::Unchanged, |change| {
        let raw = change.desired.raw.clone();
        Some(LiveObject { raw, uid: String::new(), resource_version: String::new() })
    });
    // A lookup that a proof makes unnecessary today may be needed for the next upgrade.
    let proofs = Arc::new(Proofs::none());
    let plans = [plan, &before, &after];
    let work: Vec<FindLookups> =
        plans.iter().flat_map(|plan| checks.iter().map(|check| check.lookups(plan, &proofs))).collect();
    let find_all = move || {
        let mut lookups: Vec<CheckLookup> = Vec::new();
        for lookup in work.into_iter().flat_map(|find| find()) {
            if !lookups.contains(&lookup) {
                lookups.push(lookup);
            }
        }
        lookups
    };
    on_cpu_thread(find_all).await.unwrap_or_default()
}
