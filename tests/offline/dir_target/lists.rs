//! Lists of objects, as a server would answer them.

use super::*;

fn samples(version: &str) -> Resource {
    Resource {
        group: "test.example.com".into(),
        version: version.into(),
        kind: "Sample".into(),
        plural: "samples".into(),
        namespaced: true,
    }
}

/// The objects of a list, page by page.
fn list(target: &DirTarget, request: &ListRequest<'_>) -> Result<Vec<Vec<Value>>, ListError> {
    let mut pages = target.list(request);
    let mut listed = Vec::new();
    while let Some(page) = pages.next_page()? {
        listed.push(page.items().map(|item| serde_json::from_str(item).unwrap()).collect());
    }
    Ok(listed)
}

#[test]
fn objects_are_listed_as_a_server_would_list_them() {
    let sample = |version: &str, namespace: &str, name: &str| {
        format!(
            "---\n{{apiVersion: test.example.com/{version}, kind: Sample, metadata: {{name: {name}{namespace}}}, spec: {{size: 1}}}}\n"
        )
    };
    let in_b = ", namespace: b";
    let folder = folder(&[
        ("crd.yaml", &crd(&["v1", "v2"]).to_string()),
        ("z.yaml", &[sample("v1", in_b, "two"), sample("v2", "", "three"), sample("v1", in_b, "one")].concat()),
        ("a.yaml", &format!("{}---\n{}", sample("v2", ", labels: {a: b}", "four"), config_map("one", json!({})))),
    ]);
    let target = open(&folder);
    let resource = samples("v2");

    let pages = list(&target, &ListRequest::new(&resource, 3)).unwrap();
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1]);
    let listed: Vec<Value> = pages.into_iter().flatten().collect();
    let names: Vec<String> =
        listed.iter().map(|o| format!("{}/{}", o["metadata"]["namespace"], o["metadata"]["name"])).collect();
    assert_eq!(names, [r#""b"/"one""#, r#""b"/"two""#, r#""default"/"four""#, r#""default"/"three""#]);
    for object in &listed {
        assert_eq!((&object["apiVersion"], &object["kind"]), (&json!("test.example.com/v2"), &json!("Sample")));
        assert_eq!(object["spec"], json!({"size": 1}));
    }

    let of_b = list(&target, &ListRequest { namespace: Some("b"), ..ListRequest::new(&resource, 9) }).unwrap();
    assert_eq!(of_b[0].len(), 2);
    let labelled =
        list(&target, &ListRequest { label_selector: Some("a in (b)"), ..ListRequest::new(&resource, 9) }).unwrap();
    assert_eq!(labelled[0][0]["metadata"]["name"], "four");
    assert_eq!(labelled.concat().len(), 1);

    let mut pages = target.list(&ListRequest::new(&resource, 3));
    assert_eq!(pages.next_page().unwrap().unwrap().remaining(), Some(1));
    // Objects that are written during a list are not part of it.
    apply(&target, &crd(&["v1", "v2", "v3"])).unwrap();
    assert_eq!(pages.next_page().unwrap().unwrap().remaining(), None);
    assert!(pages.next_page().unwrap().is_none() && pages.next_page().unwrap().is_none());
}

#[test]
fn objects_that_a_folder_cannot_list_are_an_error_and_not_an_empty_list() {
    let object = r#"{apiVersion: test.example.com/v1, kind: Sample, metadata: {name: one}}"#;
    let mut webhook = crd(&["v1", "v2"]);
    webhook["spec"]["conversion"] = json!({"strategy": "Webhook"});
    let folder = folder(&[("crd.yaml", &webhook.to_string()), ("one.yaml", object)]);
    let target = open(&folder);

    // Nothing needs a conversion.
    assert_eq!(list(&target, &ListRequest::new(&samples("v1"), 9)).unwrap().concat().len(), 1);
    let resource = samples("v2");
    let mut pages = target.list(&ListRequest::new(&resource, 9));
    let error = pages.next_page().unwrap_err();
    let ListError::Conversion { problem, .. } = &error else { panic!("{error:?}") };
    assert_eq!(
        problem.to_string(),
        format!(
            "{}:1: sample.test.example.com/one is stored at test.example.com/v1, not at the requested \
             test.example.com/v2: the conversion webhook must convert it, and a folder cannot call the webhook",
            folder.path().join("one.yaml").display()
        )
    );
    assert_eq!(pages.next_page().unwrap_err(), error);

    for (group, version) in [("test.example.com", "v9"), ("nowhere.example.com", "v1")] {
        let resource = Resource { group: group.into(), ..samples(version) };
        let error = list(&target, &ListRequest::new(&resource, 9)).unwrap_err();
        let ListError::NotServed(problem) = error else { panic!("{error:?}") };
        assert_eq!(problem.message, format!("the folder does not serve kind Sample at {group}/{version}"));
    }

    let request = ListRequest { label_selector: Some("a=b=c"), ..ListRequest::new(&resource, 9) };
    let ListError::Other(problem) = list(&target, &request).unwrap_err() else { panic!() };
    assert_eq!(problem.message, "\"a=b=c\" is not a label selector: found '=', expected: ',' or 'end of string'");
}
