//! Lists that end early: expired, compacted away, cut off, stopped by the user.

use super::*;

fn gone(token: Option<&str>) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,
        "metadata": {"continue": token.unwrap_or_default()},
        "message": "The provided continue parameter is too old to display a consistent list result.",
    })
}

#[test]
fn an_expired_list_is_restarted_once() {
    let (cp, names) = (control_plane(), isolated());
    serve(cp, &names.group);
    namespaces(cp, &[&names.namespace]);
    fill(cp, &names.group, &names.namespace, 30);
    let resource = resource(&names.group, "v1");
    for expiries in [1, 2] {
        let proxy = Proxy::start(cp);
        let lister = Lister::kube(&proxy.kubeconfig("reader"));
        // The third page of the first attempt and of the second: these are the second and fourth requests with a token.
        for nth in [2, 4].into_iter().take(expiries) {
            proxy.answer(When::new("GET", "/samples").query("continue=").nth(nth), 410, gone(None));
        }
        let mut pages = lister.target.list(&ListRequest::new(&resource, 10));
        let mut listed = Vec::new();
        let mut restarts = 0;
        let end = loop {
            match lister.next(&mut pages) {
                Ok(Some(page)) => listed.extend(names_of(&page)),
                Err(ListError::Expired) => {
                    assert_eq!(listed, expected(&names.namespace, 0..20));
                    listed.clear();
                    restarts += 1;
                }
                end => break end,
            }
        };
        assert_eq!(restarts, 1);
        if expiries == 1 {
            assert_eq!(listed, expected(&names.namespace, 0..30));
            assert!(end.unwrap().is_none());
        } else {
            let error = end.unwrap_err();
            let message = &error.problem().unwrap().message;
            let what = format!("dropped the list of samples.{} twice while gantry read it", names.group);
            assert!(matches!(error, ListError::Other(_)) && message.ends_with(&what), "{error:?}");
            assert_eq!(lister.next(&mut pages).unwrap_err(), error, "it never becomes an end");
        }
    }
}

#[test]
fn a_snapshot_that_etcd_compacted_away_is_left_for_a_newer_one() {
    // Compaction affects all objects, so this test needs its own servers.
    let (cp, names) = (ControlPlane::start(), isolated());
    serve(&cp, &names.group);
    namespaces(&cp, &[&names.namespace]);
    fill(&cp, &names.group, &names.namespace, 30);
    let proxy = Proxy::start(&cp);
    let lister = Lister::kube(&proxy.kubeconfig("reader"));
    let resource = resource(&names.group, "v1");
    let mut pages = lister.target.list(&ListRequest::new(&resource, 10));
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    proxy.before(When::new("GET", "/samples").query("continue=").nth(1), move || {
        released.lock().unwrap().recv().unwrap();
    });
    let mut listed = names_of(&lister.next(&mut pages).unwrap().unwrap());

    // Objects before and after the current position of the list.
    let path = |name: &str| resource.path(Some(&names.namespace), Some(name));
    assert_eq!(cp.delete(&path("s0003")).0, 200);
    assert_eq!(cp.delete(&path("s0025")).0, 200);
    cp.kill_api_server();
    cp.compact();
    cp.restart_api_server();
    release.send(()).unwrap();

    while let Some(page) = lister.next(&mut pages).unwrap() {
        listed.extend(names_of(&page));
    }
    let mut left = expected(&names.namespace, 0..30);
    left.remove(25);
    assert_eq!(listed, left);
    // The server's refusal and the requests after it: three successful pages need three requests.
    assert_eq!(proxy.requests().len(), 4);
}

#[test]
fn a_broken_connection_is_not_the_end_of_the_list() {
    let (cp, names) = (control_plane(), isolated());
    serve(cp, &names.group);
    namespaces(cp, &[&names.namespace]);
    fill(cp, &names.group, &names.namespace, 30);
    let resource = resource(&names.group, "v1");
    for before_the_server in [true, false] {
        let proxy = Proxy::start(cp);
        let lister = Lister::kube(&proxy.kubeconfig("reader"));
        let third = When::new("GET", "/samples").nth(3);
        if before_the_server {
            proxy.cut(third)
        } else {
            proxy.lose_answer(third)
        }
        let mut pages = lister.target.list(&ListRequest::new(&resource, 10));
        assert_eq!(names_of(&lister.next(&mut pages).unwrap().unwrap()), expected(&names.namespace, 0..10));
        assert_eq!(names_of(&lister.next(&mut pages).unwrap().unwrap()), expected(&names.namespace, 10..20));
        let error = lister.next(&mut pages).unwrap_err();
        let ListError::Other(problem) = &error else { panic!("{error:?}") };
        assert!(problem.message.ends_with("closed the connection before the response was complete"), "{problem}");
        assert_eq!(lister.next(&mut pages).unwrap_err(), error);
    }
}

#[test]
fn an_interrupt_ends_a_list_at_once() {
    let (cp, names) = (control_plane(), isolated());
    serve(cp, &names.group);
    namespaces(cp, &[&names.namespace]);
    fill(cp, &names.group, &names.namespace, 30);
    let proxy = Proxy::start(cp);
    let lister = Lister::kube(&proxy.kubeconfig("reader"));
    // The second page arrives only after the test has finished with the list.
    let (arrived, arrivals) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let (arrived, released) = (Mutex::new(arrived), Mutex::new(released));
    proxy.before(When::new("GET", "/samples").nth(2), move || {
        arrived.lock().unwrap().send(()).unwrap();
        let _ = released.lock().unwrap().recv();
    });

    let resource = resource(&names.group, "v1");
    let mut pages = lister.target.list(&ListRequest::new(&resource, 10));
    assert_eq!(lister.next(&mut pages).unwrap().unwrap().len(), 10);
    arrivals.recv().unwrap();
    let (stop, mut stopped) = watch::channel(false);
    stop.send(true).unwrap();
    let came = lister.runtime.block_on(async {
        tokio::select! {
            biased;
            page = pages.next() => Some(page),
            _ = stopped.wait_for(|stopped| *stopped) => None,
        }
    });
    assert!(came.is_none());
    drop(pages);
    drop(release);

    // The target still works, and the third page was not requested.
    let again =
        lister.names(&ListRequest { namespace: Some(&names.namespace), ..ListRequest::new(&resource, 30) }).unwrap();
    assert_eq!(again, [expected(&names.namespace, 0..30)]);
    let paths: Vec<String> = proxy.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(
        paths,
        [resource.path(None, None), resource.path(None, None), resource.path(Some(&names.namespace), None)]
    );
}

#[test]
fn a_conversion_webhook_that_does_not_answer_is_named() {
    let (cp, names) = (control_plane(), isolated());
    let crd = serve(cp, &names.group);
    namespaces(cp, &[&names.namespace]);
    fill(cp, &names.group, &names.namespace, 3);
    // Nothing listens there.
    let conversion = json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}}});
    let (status, answer) = cp.patch(&cp.path_of(&crd), &json!({"spec": {"conversion": conversion}}));
    assert_eq!(status, 200, "{answer}");

    let lister = Lister::kube(&cp.kubeconfig("reader"));
    let (stored, other) = (resource(&names.group, "v1"), resource(&names.group, "v2"));
    // The server needs a moment to notice the new conversion.
    let error = eventually("the list needs the webhook", || lister.names(&ListRequest::new(&other, 10)).err());
    let ListError::Conversion { said, problem } = error else { panic!("{error:?}") };
    let start =
        format!("conversion webhook for {}/v1, Kind=Sample failed: Post \"https://127.0.0.1:1/convert", names.group);
    assert!(said.starts_with(&start), "{said}");
    assert!(problem.message.contains(&said), "{problem}");
    // If no conversion is needed, the webhook is not called.
    assert_eq!(lister.names(&ListRequest::new(&stored, 10)).unwrap(), [expected(&names.namespace, 0..3)]);
}
