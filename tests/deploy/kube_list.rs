//! Lists on a real API server: pages, selectors, and every way in which a list ends early.

mod interrupted;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use crate::support::{ControlPlane, CrdBuilder, Proxy, When, any_fields, control_plane, eventually, isolated};
use gantry_cluster::{Connection, DesiredSource, ListError, ListPage, ListRequest, Pages, Target};
use gantry_core::options::TargetSpec;
use gantry_core::resource::Resource;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// A target with its own runtime, because the test bed's requests block.
struct Lister {
    runtime: Runtime,
    target: Target,
}

impl Lister {
    fn kube(kubeconfig: &Path) -> Self {
        Self::open(&TargetSpec::Kube, &Connection { kubeconfig: Some(kubeconfig.to_owned()), ..Connection::default() })
    }

    fn dir(folder: &Path) -> Self {
        Self::open(&TargetSpec::Dir(folder.to_owned()), &Connection::default())
    }

    fn open(spec: &TargetSpec, connection: &Connection) -> Self {
        let runtime = Runtime::new().unwrap();
        let target = runtime
            .block_on(Target::open(spec, connection, DesiredSource::default()))
            .unwrap_or_else(|error| panic!("{error}"));
        Lister { runtime, target }
    }

    fn next(&self, pages: &mut Pages) -> Result<Option<ListPage>, ListError> {
        self.runtime.block_on(pages.next())
    }

    /// The names of all objects, page by page.
    fn names(&self, request: &ListRequest<'_>) -> Result<Vec<Vec<String>>, ListError> {
        let mut pages = self.target.list(request);
        let mut names = Vec::new();
        while let Some(page) = self.next(&mut pages)? {
            names.push(names_of(&page));
        }
        Ok(names)
    }
}

fn names_of(page: &ListPage) -> Vec<String> {
    let name = |item: &str| {
        let object: Value = serde_json::from_str(item).unwrap();
        let part = |key: &str| object["metadata"][key].as_str().unwrap().to_owned();
        format!("{}/{}", part("namespace"), part("name"))
    };
    page.items().map(name).collect()
}

fn resource(group: &str, version: &str) -> Resource {
    Resource {
        group: group.into(),
        version: version.into(),
        kind: "Sample".into(),
        plural: "samples".into(),
        namespaced: true,
    }
}

/// Serves `Sample` in the group at v1 (stored) and v2.
fn serve(cp: &ControlPlane, group: &str) -> Value {
    let crd = CrdBuilder::samples(group).version("v1", any_fields()).version("v2", any_fields()).build();
    cp.apply_yaml(&crd.to_string()).remove(0)
}

fn namespaces(cp: &ControlPlane, names: &[&str]) {
    for name in names {
        assert_eq!(cp.post("/api/v1/namespaces", &json!({"metadata": {"name": name}})).0, 201);
    }
}

fn sample(group: &str, name: &str, labels: &Value) -> Value {
    json!({
        "apiVersion": format!("{group}/v1"),
        "kind": "Sample",
        "metadata": {"name": name, "labels": labels},
        "spec": {"text": "]}, \" and {[ are only text"},
    })
}

/// Creates `count` objects `s0000`, `s0001`, … in the namespace.
fn fill(cp: &ControlPlane, group: &str, namespace: &str, count: usize) {
    let path = resource(group, "v1").path(Some(namespace), None);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let api = cp.api_as("admin");
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let (status, answer) = api.post(&path, &sample(group, &format!("s{number:04}"), &json!({})));
                    assert_eq!(status, 201, "{answer}");
                }
            });
        }
    });
}

fn expected(namespace: &str, numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("{namespace}/s{number:04}")).collect()
}

#[test]
fn a_thousand_objects_are_listed_once_in_order_with_one_page_read_ahead() {
    let (cp, names) = (control_plane(), isolated());
    serve(cp, &names.group);
    namespaces(cp, &[&names.namespace]);
    fill(cp, &names.group, &names.namespace, 1000);
    let proxy = Proxy::start(cp);
    let lister = Lister::kube(&proxy.kubeconfig("reader"));

    // The number of pages that the caller has requested, and that number at the time of each request.
    let asked = Arc::new(AtomicUsize::new(0));
    let at_request: Arc<Mutex<Vec<usize>>> = Arc::default();
    let (counter, log) = (Arc::clone(&asked), Arc::clone(&at_request));
    proxy.before(When::new("GET", "/samples"), move || log.lock().unwrap().push(counter.load(Ordering::SeqCst)));

    let resource = resource(&names.group, "v2");
    let mut pages = lister.target.list(&ListRequest::new(&resource, 50));
    assert!(proxy.requests().is_empty(), "nothing is sent before the first page is asked for");
    let mut listed = Vec::new();
    let mut remaining = Vec::new();
    loop {
        asked.fetch_add(1, Ordering::SeqCst);
        let Some(page) = lister.next(&mut pages).unwrap() else { break };
        if listed.is_empty() {
            eventually("the second page is fetched while the first one is looked at", || {
                (proxy.requests().len() == 2).then_some(())
            });
            let first: Value = serde_json::from_str(page.items().next().unwrap()).unwrap();
            assert_eq!(first["apiVersion"], format!("{}/v2", names.group), "at the version asked for");
            assert_eq!(first["kind"], "Sample");
            assert_eq!(first["metadata"]["managedFields"][0]["apiVersion"], format!("{}/v1", names.group));
            assert_eq!(first["spec"]["text"], "]}, \" and {[ are only text");
        }
        assert_eq!(page.len(), 50);
        remaining.push(page.remaining());
        listed.extend(names_of(&page));
    }
    assert_eq!(listed, expected(&names.namespace, 0..1000));
    let counts: Vec<Option<u64>> = (1..=20).map(|page| Some(1000 - 50 * page).filter(|left| *left > 0)).collect();
    assert_eq!(remaining, counts);
    assert!(lister.next(&mut pages).unwrap().is_none(), "the end stays the end");

    let requests = proxy.requests();
    assert_eq!(requests.len(), 20);
    assert!(requests.iter().all(|request| request.query.contains("limit=50")), "{requests:?}");
    // Page k can be fetched only once page k-1 was returned: two pages are in memory, never three.
    let early: Vec<_> = at_request.lock().unwrap().iter().copied().enumerate().filter(|(k, asked)| asked < k).collect();
    assert!(early.is_empty(), "{early:?}");
}

#[test]
fn a_namespace_is_listed_alone_and_no_namespace_means_all() {
    let (cp, names) = (control_plane(), isolated());
    serve(cp, &names.group);
    let (first, second) = (format!("{}-a", names.namespace), format!("{}-b", names.namespace));
    namespaces(cp, &[&first, &second]);
    fill(cp, &names.group, &first, 7);
    fill(cp, &names.group, &second, 4);
    let lister = Lister::kube(&cp.kubeconfig("reader"));
    let resource = resource(&names.group, "v1");

    let in_namespace = |namespace| {
        let request = ListRequest { namespace: Some(namespace), ..ListRequest::new(&resource, 3) };
        lister.names(&request).unwrap()
    };
    let second_alone = expected(&second, 0..4);
    assert_eq!(in_namespace(&second), [&second_alone[..3], &second_alone[3..]]);
    assert_eq!(in_namespace("not-there").concat(), [""; 0]);
    let both = lister.names(&ListRequest::new(&resource, 100)).unwrap();
    assert_eq!(both, [[expected(&first, 0..7), second_alone].concat()]);
    // A page size of zero is a mistake, not a request for everything at once.
    assert_eq!(lister.names(&ListRequest::new(&resource, 0)).unwrap().len(), 11);
}

#[test]
fn a_folder_reads_label_selectors_as_the_server_does() {
    let (cp, names) = (control_plane(), isolated());
    let crd = serve(cp, &names.group);
    namespaces(cp, &[&names.namespace]);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("crd.yaml"), crd.to_string()).unwrap();
    let labels = [
        json!({}),
        json!({"app": "web"}),
        json!({"app": "db", "tier": "back"}),
        json!({"app": "", "example.com/n": "10"}),
        json!({"in": "notin", "example.com/n": "9", "app": "web"}),
        json!({"example.com/n": "ten", "tier": "front"}),
    ];
    let path = resource(&names.group, "v1").path(Some(&names.namespace), None);
    for (number, labels) in labels.iter().enumerate() {
        let (status, live) = cp.post(&path, &sample(&names.group, &format!("s{number:04}"), labels));
        assert_eq!(status, 201, "{live}");
        fs::write(folder.path().join(format!("{number}.yaml")), live.to_string()).unwrap();
    }
    let (server, folder) = (Lister::kube(&cp.kubeconfig("reader")), Lister::dir(folder.path()));
    let resource = resource(&names.group, "v2");
    let mut selected = 0;
    let mut refused = 0;
    for selector in [
        "",
        "app",
        "!app",
        "app=web",
        "app==web",
        "app!=web",
        "app in (web,db)",
        "app in (web, )",
        "app notin (web)",
        "app=",
        "app in ()",
        "tier=back,app=db",
        "tier,!example.com/n",
        "example.com/n>9",
        "example.com/n<10",
        "in",
        "in in (notin)",
        "in!=x,app",
        " app = web ",
        "app in (,)",
        "app notin (,web)",
        "nothing=here",
        "!nothing",
        "app web",
        "=web",
        "app,",
        "app,,tier",
        "app in web",
        "app in (web",
        "!",
        "example.com/n>ten",
        "-a=b",
        "a/b/c",
        "a=-",
        "app=(web)",
        "app in (web db)",
        "a b",
        "app=web=db",
        ")",
        "app>1",
        "!app=web",
        "app in (=)",
        ",app",
    ] {
        let request = ListRequest { label_selector: Some(selector), ..ListRequest::new(&resource, 2) };
        match (server.names(&request), folder.names(&request)) {
            (Ok(server), Ok(folder)) => {
                assert_eq!(server.concat(), folder.concat(), "{selector:?}");
                selected += 1;
            }
            (Err(ListError::Other(server)), Err(ListError::Other(folder))) => {
                let words = folder.message.split_once("is not a label selector: ").unwrap().1;
                assert!(server.message.contains(words), "{selector:?}\n{server}\n{folder}");
                refused += 1;
            }
            (server, folder) => panic!("{selector:?}: {server:?}, but {folder:?}"),
        }
    }
    assert!(selected > 20 && refused > 15, "{selected} selectors, {refused} refused");
}

#[test]
fn a_user_who_may_not_list_sees_which_right_is_missing() {
    let (cp, names) = (control_plane(), isolated());
    serve(cp, &names.group);
    // May get, but not list.
    let user = cp.user(&json!([{"apiGroups": [names.group], "resources": ["samples"], "verbs": ["get"]}]));
    let lister = Lister::kube(&cp.kubeconfig(&user));
    let resource = resource(&names.group, "v1");
    for (namespace, place, role) in [
        (None, "at the cluster scope".to_owned(), "ask for a ClusterRole".to_owned()),
        (Some("default"), "in namespace \"default\"".to_owned(), "ask for a Role in namespace \"default\"".to_owned()),
    ] {
        let error = lister.names(&ListRequest { namespace, ..ListRequest::new(&resource, 10) }).unwrap_err();
        let ListError::Forbidden(problem) = error else { panic!("{error:?}") };
        assert_eq!(problem.message, format!("user \"{user}\" may not list samples.{} {place}", names.group));
        let rule =
            format!("with the rule {{apiGroups: [\"{}\"], resources: [\"samples\"], verbs: [\"list\"]}}", names.group);
        let help = problem.help.unwrap();
        assert!(help.starts_with(&role) && help.contains(&rule), "{help}");
    }
}

#[test]
fn an_unserved_kind_is_not_taken_for_an_empty_list() {
    let (cp, names) = (control_plane(), isolated());
    serve(cp, &names.group);
    let lister = Lister::kube(&cp.kubeconfig("reader"));
    assert_eq!(lister.names(&ListRequest::new(&resource(&names.group, "v1"), 10)).unwrap().concat(), [""; 0]);
    for (group, version) in [(names.group.as_str(), "v3"), ("nowhere.example.com", "v1")] {
        let error = lister.names(&ListRequest::new(&resource(group, version), 10)).unwrap_err();
        let ListError::NotServed(problem) = error else { panic!("{error:?}") };
        let message = format!("the API server does not serve Sample of {group}/{version}, or no longer does");
        assert_eq!(problem.message, message);
    }
}
