//! `gantry admission`, and `gantry check --as-admission`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::json;
use tokio::net::TcpListener;

use super::host::{Exit, Host};
use super::interrupt::{interrupt, until_interrupted};
use super::prepare::{
    Asking, complete, connection, desired_source, impersonate, loader, open_target, overrides_of_charts,
    overrides_of_kubeconfig, overrides_of_target, read_input,
};
use crate::cli::{
    AdmissionArgs, AdmissionCommand, AdmissionManifestsArgs, AdmissionServeArgs, AdmissionTestArgs, FlowArgs,
};
use gantry_admission::certificates::{CertificateFiles, Certificates};
use gantry_admission::decide::{Requester, decide};
use gantry_admission::install::{self, CertificateSource, InstallOptions};
use gantry_admission::judge::{CHECKS, CrdJudge, is_harmless};
use gantry_admission::review::ReviewedChange;
use gantry_admission::self_signed::SelfSigned;
use gantry_admission::server::{AdmissionPolicy, AdmissionServer};
use gantry_cluster::Target;
use gantry_core::ci_log::OutputSyntax;
use gantry_core::options::{AdmissionMode, ListFormat, PresetFlag, TargetSpec};
use gantry_core::problem::{Error, Problem, Result};
use gantry_core::resource::is_dns_label;
use gantry_core::text;
use gantry_deploy::config::{Loader, Overrides, Settings, key};
use gantry_deploy::plan::owner::TakeoverPatterns;
use gantry_deploy::plan::{self, DeployPolicy, PlanOptions, Prefetch, pin, upgraded_crds};
use gantry_preflight::registry;

/// How often the configuration is looked at for changes.
const RELOAD: Duration = Duration::from_secs(1);
/// How often certificates of our own are looked at.
const ROTATION: Duration = Duration::from_secs(60);
/// The same while they cannot be read or written, for example because the API server is not reachable yet.
const ROTATION_RETRY: Duration = Duration::from_secs(2);

/// Runs one of the commands.
pub async fn run(args: &AdmissionArgs, host: &mut Host) -> Exit {
    match &args.command {
        AdmissionCommand::Serve(args) => match serve(args, host).await {
            Ok(()) => Exit::Success,
            Err(error) => host.complain(&error),
        },
        AdmissionCommand::Test(args) => test(args, host).await,
        AdmissionCommand::Manifests(args) => print(manifests(args), host),
        AdmissionCommand::Policy { mode } => print(installable(*mode).map(install::policy), host),
    }
}

fn print(text: Result<String>, host: &mut Host) -> Exit {
    match text {
        Ok(text) => host.say(&text),
        Err(error) => host.complain(&error),
    }
}

/// A webhook that looks at nothing need not be installed.
fn installable(mode: AdmissionMode) -> Result<AdmissionMode> {
    match mode {
        AdmissionMode::Ignore => {
            let problem = Problem::new("--mode=ignore installs a webhook that looks at nothing");
            Err(Error::usage(problem.help("name deny, warn or audit; admission.ignore leaves out single CRDs")))
        }
        mode => Ok(mode),
    }
}

fn manifests(args: &AdmissionManifestsArgs) -> Result<String> {
    let certificates = match (args.cert_manager, &args.url, args.self_signed) {
        (true, Some(_), _) => {
            let problem = Problem::new("cert-manager cannot give a certificate to a server outside of the cluster");
            return Err(Error::usage(problem.help("leave out --cert-manager, or --url")));
        }
        (true, None, _) => CertificateSource::CertManager,
        (false, None, _) | (false, Some(_), true) => CertificateSource::SelfSigned,
        (false, Some(_), false) => CertificateSource::Secret,
    };
    if !is_dns_label(&args.namespace) {
        let message = format!("--namespace: {:?} is not the name of a namespace", args.namespace);
        return Err(Error::usage(Problem::new(message)));
    }
    let is_url = |url: &String| {
        url.strip_prefix("https://").is_some_and(|rest| !rest.is_empty() && !rest.contains(['?', '#', '@', ' ', '\n']))
    };
    if let Some(url) = args.url.as_ref().filter(|url| !is_url(url)) {
        let message = format!("--url: {url:?} is not an address that the API server can call");
        return Err(Error::usage(
            Problem::new(message).help("write https://HOST:PORT/validate, without user and query"),
        ));
    }
    Ok(install::manifests(&InstallOptions {
        mode: installable(args.mode)?,
        url: args.url.clone(),
        namespace: args.namespace.clone(),
        image: args.image.clone().unwrap_or_else(|| install::DEFAULT_IMAGE.to_owned()),
        certificates,
    }))
}

/// `gantry check --as-admission`.
pub async fn check(args: &FlowArgs, host: &mut Host) -> Exit {
    let input = &args.input;
    let args = AdmissionTestArgs {
        files: input.arguments(),
        chart: input.chart.clone(),
        preset: input.preset,
        config: input.config.clone(),
        target: input.target.clone(),
        output: None,
    };
    test(&args, host).await
}

/// The settings that the webhook judges with: both checks of CRDs, by the evidence of objects unless the configuration
/// names another preset.
fn load(loader: &Loader, host: Option<&mut Host>) -> Result<Settings> {
    let checks = CHECKS.map(str::to_owned);
    let with_checks = |overrides: Overrides| Loader { overrides: overrides.with_checks(&checks), ..loader.clone() };
    let loaded = with_checks(loader.overrides.clone()).load([], &registry::known())?;
    let names_preset = |settings: &Settings| {
        let config =
            settings.checks.iter().find(|check| check.name == CHECKS[0]).and_then(|check| check.config.0.as_ref());
        config.is_some_and(|config| config.get(key::PRESET.path).is_some())
    };
    let loaded = match names_preset(&loaded.settings) {
        true => loaded,
        false => {
            let overrides = loader.overrides.clone().with(&key::PRESET, &Some(PresetFlag::Evidence));
            with_checks(overrides).load([], &registry::known())?
        }
    };
    if let Some(host) = host {
        host.print_notices(&loaded.notices);
    }
    Ok(loaded.settings)
}

/// What one configuration decides with.
async fn policy(settings: &Settings) -> Result<AdmissionPolicy> {
    if settings.target != TargetSpec::Kube {
        let problem = Problem::new("the webhook judges with the objects of a cluster, and the target is none");
        return Err(Error::usage(problem.help("leave target out of the configuration")));
    }
    let target = open_target(settings).await?;
    Ok(AdmissionPolicy { settings: settings.admission.clone(), judge: CrdJudge::new(target, settings) })
}

async fn serve(args: &AdmissionServeArgs, host: &mut Host) -> Result<()> {
    let overrides = overrides_of_kubeconfig(&args.kubeconfig, &args.config).with(&key::NAMESPACE, &args.namespace);
    let loader = Loader { overrides, ..loader(&args.config, host) };
    let settings = load(&loader, Some(host))?;
    let policy_at_start = policy(&settings).await?;
    let unusable = |error: &dyn std::fmt::Display| Error::failed(Problem::new(error.to_string()));
    let certificates = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            let file = |path: &Path| host.working_directory.join(path);
            let files = CertificateFiles { certificate: file(certificate), key: file(key) };
            Certificates::from_files(files).map_err(|error| unusable(&error))?
        }
        _ => Certificates::held_in_memory(),
    };
    let certificates = Arc::new(certificates);
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        let message = format!("cannot listen on {}: {error}", args.listen);
        Error::failed(Problem::new(message).help("name a free address and port: --listen ADDRESS:PORT"))
    })?;
    let address = listener.local_addr().map_err(|error| unusable(&error))?;
    let log = Mutex::new(host.take_stdout(OutputSyntax::Json));
    let server = Arc::new(AdmissionServer::new(policy_at_start, Arc::clone(&certificates), move |line| {
        let mut out = log.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody reads the log any more: the webhook goes on.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }));
    server.write_log(json!({"event": "listening", "address": address.to_string()}));
    let stop = host.stop.clone();
    let mut background = tokio::task::JoinSet::new();
    background.spawn(reload(Arc::clone(&server), loader.clone()));
    if args.self_signed {
        let target = open_target(&settings).await?;
        let namespace = settings.namespace.clone().unwrap_or_else(|| target.default_namespace().to_owned());
        let own = SelfSigned::new(&namespace, &args.tls_name);
        background.spawn(rotate(Arc::clone(&server), own, target, certificates));
    }
    server.serve(listener, interrupt(&stop)).await;
    Ok(())
}

/// When each file of the configuration was written.
fn modification_times(files: &[PathBuf]) -> Vec<Option<(SystemTime, u64)>> {
    let state = |path: &PathBuf| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.modified().ok()?, found.len()))
    };
    files.iter().map(state).collect()
}

/// Puts the configuration into force whenever a file of it changes.
async fn reload(server: Arc<AdmissionServer>, loader: Loader) {
    let mut last = modification_times(&loader.every_file().collect::<Vec<_>>());
    loop {
        tokio::time::sleep(RELOAD).await;
        let now = modification_times(&loader.every_file().collect::<Vec<_>>());
        if now == last {
            continue;
        }
        last = now;
        let new = async { policy(&load(&loader, None)?).await }.await;
        server.configure(
            new.map_err(|error| error.problems().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
        );
    }
}

/// Keeps the certificate and the trust in it up to date.
async fn rotate(server: Arc<AdmissionServer>, own: SelfSigned, target: Target, certificates: Arc<Certificates>) {
    loop {
        let pause = match own.maintain(&target, &certificates, SystemTime::now()).await {
            Ok(()) => ROTATION,
            Err(problem) => {
                server.write_log(json!({"event": "certificateNotMaintained", "reason": problem.message}));
                ROTATION_RETRY
            }
        };
        tokio::time::sleep(pause).await;
    }
}

async fn test(args: &AdmissionTestArgs, host: &mut Host) -> Exit {
    match answers(args, host).await {
        Ok((text, denies)) => match host.say(&text) {
            Exit::Success if denies => Exit::Blocked,
            exit => exit,
        },
        Err(error) => host.complain(&error),
    }
}

/// What the webhook would answer about each CRD that changes, and whether it would deny one.
async fn answers(args: &AdmissionTestArgs, host: &mut Host) -> Result<(String, bool)> {
    let overrides = overrides_of_target(&args.target, &args.config).with(&key::PRESET, &args.preset);
    let overrides = overrides_of_charts(overrides, &args.chart);
    let loader = Loader { overrides, ..loader(&args.config, host) };
    let settings = load(&loader, Some(host))?;
    let input = read_input(&args.files, &loader, Asking::Target, host).await?;
    let configs = input.configs().count();
    let mut manifests = complete(input.read()?, configs)?;
    manifests.manifests.retain(|manifest| manifest.object.is_crd());
    let stop = host.stop.clone();
    let work = async {
        let connection = connection(&settings, impersonate(&settings)?);
        let desired = desired_source(&settings, &args.files, Some(&manifests));
        let target = Target::open(&settings.target, &connection, desired).await?;
        let target = target.with_release(settings.kube_versions.first().copied());
        let judge = CrdJudge::new(target, &settings);
        let (policy, taken) = (DeployPolicy::default(), TakeoverPatterns::new(&settings.take_ownership));
        let options = PlanOptions::new(&policy, &taken);
        let plan = plan::build(manifests, Prefetch::none(), judge.target(), options, &|_, _| ()).await?;
        let (mut shown, mut listed, mut denies) = (String::new(), Vec::new(), false);
        for (_, change, _) in upgraded_crds(&plan.changes) {
            let Some(live) = &change.live else { continue };
            // What the server would store, if it says so.
            let stored = match judge.target().as_server() {
                Some(server) => pin::dry_run_once(change, &plan, server, judge.target()).await.ok(),
                None => None,
            };
            let is_exact = stored.is_some();
            let desired = stored.unwrap_or_else(|| change.desired.raw.clone());
            let crd = &change.desired.object.name;
            let update = ReviewedChange::Updated { live: live.raw.clone(), desired };
            let mode = settings.admission.mode_of(crd);
            if mode == AdmissionMode::Ignore || is_harmless(&update, "") {
                continue;
            }
            let mut verdict = judge.judge(crd, &update).await;
            if !is_exact {
                verdict.digest.clear();
            }
            let by = Requester { user: "", groups: &[], accepts: &[] };
            let decision = decide(&settings.admission, crd, &update, &verdict, by);
            denies |= decision.answer.refusal.is_some();
            let outcome = decision.outcome.word();
            shown.push_str(&format!("{}: {outcome} (mode {})\n", text::sanitize(crd), mode.name()));
            let lines = decision.answer.refusal.iter().chain(&decision.answer.warnings);
            for line in lines.flat_map(|text| text.lines()) {
                shown.push_str(&format!("  {line}\n"));
            }
            listed.push(json!({
                "object": change.desired.object,
                "mode": mode.name(),
                "outcome": outcome,
                "message": decision.answer.refusal,
                "warnings": decision.answer.warnings,
                "digest": verdict.digest,
                "checks": verdict.checks,
            }));
        }
        if shown.is_empty() {
            shown.push_str("No CRD changes that the webhook looks at.\n");
        }
        Ok((shown, listed, denies))
    };
    let (shown, listed, denies) = until_interrupted(&stop, work).await?;
    Ok(match args.output.unwrap_or(ListFormat::Human) {
        ListFormat::Human => (shown, denies),
        ListFormat::Json => (super::pretty(&json!(listed)), denies),
    })
}
