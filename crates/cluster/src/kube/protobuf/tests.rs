use super::*;

/// A field with bytes.
fn bytes(number: u8, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let mut field = varint(number << 3 | 2, content.len() as u64);
    field.extend_from_slice(content);
    field
}

/// A field with a number, or the head of one with bytes. Field numbers above 15 need two bytes.
fn varint(key: u8, mut value: u64) -> Vec<u8> {
    let mut field = if key < 0x80 { vec![key] } else { vec![key, 1] };
    while value >= 0x80 {
        field.push(value as u8 | 0x80);
        value >>= 7;
    }
    field.push(value as u8);
    field
}

fn crd(name: &str, schema: &[u8]) -> Vec<u8> {
    let metadata = [bytes(1, name), bytes(5, "u"), bytes(6, "7"), bytes(8, varint(8, 1_700_000_000))].concat();
    let names = [bytes(1, "samples"), bytes(2, ""), bytes(4, "Sample")].concat();
    let version = [bytes(1, "v1"), varint(16, 1), varint(24, 1), bytes(4, bytes(1, schema))].concat();
    let spec = [bytes(1, "example.com"), bytes(3, names), bytes(4, "Cluster"), bytes(7, version)].concat();
    [bytes(1, metadata), bytes(2, spec)].concat()
}

fn list(items: &[Vec<u8>]) -> Vec<u8> {
    let raw: Vec<u8> =
        [bytes(1, bytes(2, "9"))].into_iter().chain(items.iter().map(|item| bytes(2, item))).flatten().collect();
    enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinitionList", &raw)
}

fn enveloped(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [bytes(1, api_version), bytes(2, kind)].concat();
    [b"k8s\0".to_vec(), bytes(1, type_meta), bytes(2, raw), bytes(3, ""), bytes(4, "")].concat()
}

fn schema_of(schema: &[u8]) -> Result<String, UndecodableMessage> {
    let crd = crd("a", schema);
    let live = EncodedCrd::read(&crd)?.live()?;
    let crd: serde_json::Value = serde_json::from_str(&live.raw.json()).unwrap();
    Ok(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].to_string())
}

#[test]
fn a_list_is_read_as_the_json_of_its_crds() {
    let page = list(&[crd("a", &bytes(5, "object")), crd("b", &[])]);
    // However it is divided.
    for size in [1, 2, 7, 100, page.len()] {
        let mut list = CrdList::default();
        let mut items = Vec::new();
        for part in page.chunks(size) {
            items.extend(list.add(part).unwrap());
        }
        assert_eq!(list.check_complete(), Ok(()));
        assert_eq!(items, [crd("a", &bytes(5, "object")), crd("b", &[])]);
    }
    let item = crd("a", &bytes(5, "object"));
    let live = EncodedCrd::read(&item).unwrap().live().unwrap();
    assert_eq!((live.uid.as_str(), live.resource_version.as_str()), ("u", "7"));
    assert_eq!(
        live.raw.json(),
        concat!(
            r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":"#,
            r#"{"creationTimestamp":"2023-11-14T22:13:20Z","name":"a","resourceVersion":"7","uid":"u"},"spec":"#,
            r#"{"group":"example.com","names":{"kind":"Sample","plural":"samples"},"scope":"Cluster","versions":"#,
            r#"[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object"}},"served":true,"storage":true}]},"status":"#,
            r#"{"acceptedNames":{"kind":"","plural":""},"conditions":null,"storedVersions":null}}"#
        )
    );
}

#[test]
fn schemas_have_the_values_that_a_client_sent() {
    let json = |text: &str| bytes(1, text);
    let map = |key: &str, value: &[u8]| [bytes(1, key), bytes(2, value)].concat();
    let double = |number: u8, value: f64| [vec![number << 3 | 1], value.to_le_bytes().to_vec()].concat();
    for (schema, expected) in [
        (bytes(4, "\"<\u{1}\u{2028}é\\"), r#"{"description":"\"<\u0001\u2028é\\"}"#.replace("\\u2028", "\u{2028}")),
        (bytes(8, json("{\"a b\": [1, 2.50, \"\\\" \"]}")), r#"{"default":{"a b":[1,2.5,"\" "]}}"#.into()),
        (bytes(8, ""), r#"{"default":null}"#.into()),
        ([double(9, 10.0), double(11, -0.5)].concat(), r#"{"maximum":10,"minimum":-0.5}"#.into()),
        (double(9, 1e22), r#"{"maximum":1e+22}"#.into()),
        ([varint(80, 0), varint(96, 1), varint(104, 0)].concat(), r#"{"exclusiveMinimum":true,"maxLength":0}"#.into()),
    ] {
        assert_eq!(schema_of(&schema).unwrap(), expected);
    }
    let long = |number: u8, content: &[u8]| {
        let mut field = vec![(number << 3 | 2) | 0x80, number >> 4];
        field.extend(bytes(0, content).into_iter().skip(1));
        field
    };
    for (schema, expected) in [
        ([long(20, &json("\"x\"")), long(20, &[])].concat(), r#"{"enum":["x",null]}"#),
        (long(24, &bytes(1, bytes(5, "string"))), r#"{"items":{"type":"string"}}"#),
        (long(24, &[bytes(2, bytes(5, "string")), bytes(2, [])].concat()), r#"{"items":[{"type":"string"},{}]}"#),
        (long(29, &map("a", &bytes(5, "x"))), r#"{"properties":{"a":{"type":"x"}}}"#),
        ([long(29, &map("a", &[])), long(29, &map("b", &[]))].concat(), r#"{"properties":{"a":{},"b":{}}}"#),
        (long(30, &varint(8, 1)), r#"{"additionalProperties":true}"#),
        (long(30, &varint(8, 0)), r#"{"additionalProperties":false}"#),
        (long(30, &[varint(8, 1), bytes(2, [])].concat()), r#"{"additionalProperties":{}}"#),
    ] {
        assert_eq!(schema_of(&schema).unwrap(), expected);
    }
}

#[test]
fn a_message_with_unknown_content_is_not_decoded() {
    // A field that no table has, one out of order, one that is sent twice, JSON that is broken, nesting without end.
    let mut nested = Vec::new();
    for _ in 0..300 {
        nested = [vec![0xe2, 1], bytes(0, nested).into_iter().skip(1).collect()].concat();
    }
    let unknown = [vec![0xfa, 5], vec![1, b'x']].concat();
    let out_of_order = [bytes(5, "object"), bytes(4, "text")].concat();
    let twice = [bytes(5, "object"), bytes(5, "string")].concat();
    let broken = bytes(8, bytes(1, "{"));
    let mistyped = varint(5 << 3, 1);
    for schema in [unknown, out_of_order, twice, broken, mistyped, nested] {
        assert_eq!(schema_of(&schema), Err(UndecodableMessage), "{schema:?}");
    }
    let json = b"{\"metadata\":{},\"items\":[]}";
    let other = enveloped("v1", "PodList", &bytes(1, []));
    let whole = list(&[]);
    let paged = enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinitionList", &bytes(1, bytes(3, "more")));
    let headless = enveloped("apiextensions.k8s.io/v1", "CustomResourceDefinitionList", &bytes(2, crd("a", &[])));
    let long =
        [&whole[..whole.len() - 4 - bytes(1, bytes(2, "9")).len() - 2], &[0x12, 0xff, 0xff, 0xff, 0xff, 0x7f]].concat();
    for page in
        [&json[..], b"k8s\0", &other, &whole[..20], &paged, &headless, &long, &[whole.clone(), vec![8, 1]].concat()]
    {
        let mut list = CrdList::default();
        assert!(list.add(page).and_then(|_| list.check_complete()).is_err(), "{page:?}");
    }
}

#[test]
fn a_refusal_is_a_status() {
    let cause = [bytes(1, "FieldValueInvalid"), bytes(2, "no"), bytes(3, "spec.x")].concat();
    let details = [bytes(1, "a"), bytes(3, "crds"), bytes(4, cause)].concat();
    let status =
        [bytes(1, []), bytes(2, "Failure"), bytes(3, "gone"), bytes(4, "Expired"), bytes(5, details), varint(48, 410)];
    assert_eq!(
        super::status(&enveloped("v1", "Status", &status.concat())).unwrap(),
        concat!(
            r#"{"apiVersion":"v1","kind":"Status","code":410,"details":{"causes":"#,
            r#"[{"field":"spec.x","message":"no","reason":"FieldValueInvalid"}],"kind":"crds","name":"a"},"#,
            r#""message":"gone","metadata":{},"reason":"Expired","status":"Failure"}"#
        )
    );
}
