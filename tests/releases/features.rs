//! The features that differ between releases: how each is probed, and since which release servers have it.

/// What a server answers, or what gantry says that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The write is accepted, or the resource is served.
    Yes,
    /// The write is refused, or the resource is not served.
    No,
    /// The write is accepted, and the server drops the field.
    Dropped,
    /// gantry could not decide.
    Undecided,
}

impl Answer {
    pub fn is_accepted(self) -> bool {
        matches!(self, Answer::Yes | Answer::Dropped)
    }

    pub fn symbol(self) -> &'static str {
        match self {
            Answer::Yes => "✓",
            Answer::No => "–",
            Answer::Dropped => "dropped",
            Answer::Undecided => "?",
        }
    }
}

/// How a feature is probed.
pub enum Probe {
    /// A new CRD whose schema has these properties (YAML flow).
    NewCrd(&'static str),
    /// A new CRD with this CEL rule about a short text.
    TextRule(&'static str),
    /// A new CRD with this CEL rule about a short list of short texts.
    ListRule(&'static str),
    /// A new CRD with an additional field of its version: key and value (YAML flow).
    VersionField(&'static str, &'static str),
    /// The CA bundle of a conversion webhook becomes invalid.
    InvalidCaBundle,
    /// A new object with a value (YAML flow) of the field `a`, which has this schema.
    NewObject { schema: &'static str, value: &'static str },
    /// An update of an object whose `spec.a` the CRD newly refuses.
    UpdateOfInvalidObject(Update),
    /// An update of the status, next to a value that the CRD newly refuses.
    StatusBesideInvalidValue { spec: &'static str, status: &'static str },
    /// An object of a kind of Kubernetes itself (YAML).
    Kind(&'static str),
    /// A GET of this path with this value of `Accept`; the answer contains the text.
    Answer { path: &'static str, accept: &'static str, contains: &'static str },
}

/// An update that does not touch the value that is newly refused.
#[derive(Clone, Copy)]
pub enum Update {
    OtherField,
    Label,
    /// The finalizer of an object in deletion is removed.
    LastFinalizer,
}

pub struct Feature {
    pub name: &'static str,
    pub probe: Probe,
    /// The answer of servers from 1.N on, up to the next entry.
    pub answers: &'static [(u32, Answer)],
}

impl Feature {
    pub fn expected(&self, minor: u32) -> Answer {
        let known = self.answers.iter().rev().find(|(since, _)| *since <= minor);
        known.unwrap_or_else(|| panic!("no answer of 1.{minor} for {}", self.name)).1
    }
}

use Answer::{Dropped, No, Yes};
use Probe::{
    Kind, ListRule, NewCrd, NewObject, StatusBesideInvalidValue, TextRule, UpdateOfInvalidObject, VersionField,
};

const ALWAYS: &[(u32, Answer)] = &[(28, Yes)];
const SINCE_1_29: &[(u32, Answer)] = &[(28, No), (29, Yes)];
const SINCE_1_30: &[(u32, Answer)] = &[(28, No), (30, Yes)];
const SINCE_1_31: &[(u32, Answer)] = &[(28, No), (31, Yes)];
const SINCE_1_32: &[(u32, Answer)] = &[(28, No), (32, Yes)];
const SINCE_1_33: &[(u32, Answer)] = &[(28, No), (33, Yes)];
const SINCE_1_34: &[(u32, Answer)] = &[(28, No), (34, Yes)];
const SINCE_1_35: &[(u32, Answer)] = &[(28, No), (35, Yes)];
const SINCE_1_37: &[(u32, Answer)] = &[(28, No), (37, Yes)];
const SINCE_1_38: &[(u32, Answer)] = &[(28, No), (38, Yes)];
const UNTIL_1_30: &[(u32, Answer)] = &[(28, Yes), (31, No)];
const UNTIL_1_31: &[(u32, Answer)] = &[(28, Yes), (32, No)];
const UNTIL_1_34: &[(u32, Answer)] = &[(28, Yes), (35, No)];
const UNTIL_1_35: &[(u32, Answer)] = &[(28, Yes), (36, No)];
const UNTIL_1_36: &[(u32, Answer)] = &[(28, Yes), (37, No)];

pub const FEATURES: &[Feature] = &[
    Feature {
        name: "ratcheting: another field",
        probe: UpdateOfInvalidObject(Update::OtherField),
        answers: SINCE_1_30,
    },
    Feature { name: "ratcheting: a label", probe: UpdateOfInvalidObject(Update::Label), answers: SINCE_1_30 },
    Feature {
        name: "ratcheting: the last finalizer",
        probe: UpdateOfInvalidObject(Update::LastFinalizer),
        answers: SINCE_1_30,
    },
    Feature {
        name: "ratcheting of /status: an enum in status",
        probe: StatusBesideInvalidValue { spec: "type: string", status: "type: string, enum: [y]" },
        answers: SINCE_1_33,
    },
    Feature {
        name: "ratcheting of /status: a CEL rule in status",
        probe: StatusBesideInvalidValue {
            spec: "type: string",
            status: "type: string, maxLength: 9, x-kubernetes-validations: [{rule: \"self == 'y'\"}]",
        },
        answers: SINCE_1_33,
    },
    Feature {
        name: "ratcheting of /status: a CEL rule in spec",
        probe: StatusBesideInvalidValue {
            spec: "type: string, maxLength: 9, x-kubernetes-validations: [{rule: \"self == 'y'\"}]",
            status: "type: string",
        },
        answers: SINCE_1_33,
    },
    Feature {
        name: "CEL names in backquotes",
        probe: NewCrd(
            "a: {type: object, maxProperties: 9, additionalProperties: {type: string, maxLength: 9}, \
             x-kubernetes-validations: [{rule: \"!has(self.`a/b`)\"}]}",
        ),
        answers: SINCE_1_37,
    },
    Feature { name: "CEL lists: includes", probe: ListRule("self.includes('x')"), answers: SINCE_1_38 },
    Feature {
        name: "CEL duration(int)",
        probe: NewCrd("a: {type: integer, x-kubernetes-validations: [{rule: \"duration(self) > duration('1s')\"}]}"),
        answers: UNTIL_1_36,
    },
    Feature {
        name: "CEL matches(text, pattern) at the cost of a call",
        probe: NewCrd(
            "a: {type: array, maxItems: 100, items: {type: string}, \
             x-kubernetes-validations: [{rule: \"self.all(x, matches(x, '^[a-z]+$'))\"}]}",
        ),
        answers: UNTIL_1_36,
    },
    Feature {
        name: "metadata.name bounds a rule's cost",
        probe: NewCrd(
            "a: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, \
             x-kubernetes-validations: [{rule: \"[1, 2, 3, 4, 5, 6, 7, 8, 9].all(x, self.metadata.name.split('-')\
             .all(y, y.size() < x))\"}]}",
        ),
        answers: SINCE_1_37,
    },
    Feature { name: "CEL quantity", probe: TextRule("isQuantity(self)"), answers: SINCE_1_29 },
    Feature {
        name: "CEL optionals",
        probe: NewCrd(
            "a: {type: object, properties: {b: {type: string, maxLength: 9}}, \
             x-kubernetes-validations: [{rule: \"self.?b.orValue('') != 'x'\"}]}",
        ),
        answers: SINCE_1_29,
    },
    Feature {
        name: "CEL int < double",
        probe: NewCrd("a: {type: integer, x-kubernetes-validations: [{rule: 'self < 1.5'}]}"),
        answers: SINCE_1_29,
    },
    Feature {
        name: "CEL sets",
        probe: NewCrd("a: {type: integer, x-kubernetes-validations: [{rule: 'sets.contains([1, 2], [self])'}]}"),
        answers: SINCE_1_30,
    },
    Feature { name: "CEL strings.quote", probe: TextRule("strings.quote(self) != 'x'"), answers: SINCE_1_30 },
    Feature { name: "CEL format of a string", probe: TextRule("'%s'.format([self]) != 'x'"), answers: SINCE_1_30 },
    Feature { name: "CEL ip", probe: TextRule("isIP(self)"), answers: SINCE_1_31 },
    Feature { name: "CEL cidr", probe: TextRule("isCIDR(self)"), answers: SINCE_1_31 },
    Feature {
        name: "CEL `format.*`",
        probe: TextRule("!format.dns1123Label().validate(self).hasValue()"),
        answers: SINCE_1_32,
    },
    Feature {
        name: "CEL `self.namespace` without escaping",
        probe: NewCrd(
            "a: {type: object, required: [namespace], properties: {namespace: {type: string, maxLength: 9}}, \
             x-kubernetes-validations: [{rule: \"self.namespace != 'x'\"}]}",
        ),
        answers: SINCE_1_32,
    },
    Feature {
        name: "CEL two-variable comprehensions",
        probe: ListRule("self.all(i, v, i < 3 || v != 'x')"),
        answers: SINCE_1_33,
    },
    Feature { name: "CEL semver", probe: TextRule("isSemver(self)"), answers: SINCE_1_34 },
    Feature { name: "CEL `first()`", probe: ListRule("self.first().orValue('') != 'x'"), answers: SINCE_1_33 },
    Feature {
        name: "CEL lists v3: distinct",
        probe: ListRule("self.distinct().size() == self.size()"),
        answers: SINCE_1_35,
    },
    Feature { name: "CEL lists v3: sort", probe: ListRule("self.sort() == self"), answers: SINCE_1_35 },
    Feature {
        name: "CEL lists v3: slice",
        probe: ListRule("self.size() == 0 || self.slice(0, 1).size() == 1"),
        answers: SINCE_1_35,
    },
    Feature { name: "CEL lists v3: range", probe: ListRule("lists.range(3).size() == 3"), answers: SINCE_1_35 },
    Feature {
        name: "an enum bounds a rule's cost",
        probe: NewCrd(
            "a: {type: array, maxItems: 1000, items: {type: string, enum: [x, y]}, \
             x-kubernetes-validations: [{rule: \"self.all(v, v.matches('^[xy]$'))\"}]}",
        ),
        answers: SINCE_1_29,
    },
    Feature {
        name: "CEL reason, fieldPath",
        probe: NewCrd(
            "a: {type: object, properties: {b: {type: string, maxLength: 9}}, x-kubernetes-validations: \
             [{rule: \"!has(self.b) || self.b != 'x'\", reason: FieldValueForbidden, fieldPath: .b}]}",
        ),
        answers: ALWAYS,
    },
    Feature {
        name: "CEL optionalOldSelf",
        probe: NewCrd(
            "a: {type: string, maxLength: 9, x-kubernetes-validations: \
             [{rule: \"oldSelf.hasValue() || self != 'x'\", optionalOldSelf: true}]}",
        ),
        answers: SINCE_1_30,
    },
    Feature {
        name: "selectableFields",
        probe: VersionField("selectableFields", "[{jsonPath: .a}]"),
        answers: &[(28, No), (30, Dropped), (31, Yes)],
    },
    Feature {
        name: "objects with an unknown format k8s-short-name",
        probe: NewObject { schema: "{type: string, format: k8s-short-name}", value: "Not_A_Name" },
        answers: UNTIL_1_34,
    },
    Feature {
        name: "objects with an int32 out of its range",
        probe: NewObject { schema: "{type: integer, format: int32}", value: "3000000000" },
        answers: UNTIL_1_35,
    },
    Feature {
        name: "objects: `''.indexOf('b')`",
        probe: NewObject {
            schema: "{type: string, maxLength: 9, x-kubernetes-validations: [{rule: \"self.indexOf('b') < 0\"}]}",
            value: "''",
        },
        answers: SINCE_1_32,
    },
    Feature {
        name: "objects: `''.lastIndexOf('b')`",
        probe: NewObject {
            schema: "{type: string, maxLength: 9, x-kubernetes-validations: [{rule: \"self.lastIndexOf('b') < 0\"}]}",
            value: "''",
        },
        answers: SINCE_1_34,
    },
    Feature {
        name: "objects: one with a null field equals itself",
        probe: NewObject {
            schema: "{type: object, properties: {b: {type: string, maxLength: 9, nullable: true}}, \
                     x-kubernetes-validations: [{rule: self == self}]}",
            value: "{b: null}",
        },
        answers: SINCE_1_34,
    },
    Feature { name: "an update to an invalid caBundle", probe: Probe::InvalidCaBundle, answers: UNTIL_1_30 },
    Feature {
        name: "aggregated discovery v2",
        probe: Probe::Answer {
            path: "/apis",
            accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            contains: "apidiscovery.k8s.io/v2\"",
        },
        answers: SINCE_1_30,
    },
    Feature {
        name: "aggregated discovery v2beta1",
        probe: Probe::Answer {
            path: "/apis",
            accept: "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
            contains: "apidiscovery.k8s.io/v2beta1\"",
        },
        answers: &[(28, Yes), (33, No)],
    },
    Feature {
        name: "OpenAPI v3",
        probe: Probe::Answer { path: "/openapi/v3", accept: "application/json", contains: "apis/apps/v1" },
        answers: ALWAYS,
    },
    Feature {
        name: "CRDs as protobuf",
        probe: Probe::Answer {
            path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            accept: "application/vnd.kubernetes.protobuf",
            contains: "k8s",
        },
        answers: ALWAYS,
    },
    Feature {
        name: "lists of metadata only",
        probe: Probe::Answer {
            path: "/api/v1/namespaces",
            accept: "application/json;g=meta.k8s.io;v=v1;as=PartialObjectMetadataList",
            contains: "\"PartialObjectMetadataList\"",
        },
        answers: ALWAYS,
    },
    Feature {
        name: "SelfSubjectReview v1",
        probe: Probe::Answer {
            path: "/apis/authentication.k8s.io/v1",
            accept: "application/json",
            contains: "selfsubjectreviews",
        },
        answers: ALWAYS,
    },
    Feature {
        name: "ValidatingAdmissionPolicy v1",
        probe: Kind(
            "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: NAME}, \
             spec: {validations: [{expression: 'true'}], matchConstraints: {resourceRules: [{apiGroups: [NAME], \
             apiVersions: [v1], operations: [CREATE], resources: [nothing]}]}}}",
        ),
        answers: SINCE_1_30,
    },
    Feature {
        name: "FlowSchema v1beta3",
        probe: Kind(
            "{apiVersion: flowcontrol.apiserver.k8s.io/v1beta3, kind: FlowSchema, metadata: {name: NAME}, \
             spec: {matchingPrecedence: 9000, priorityLevelConfiguration: {name: exempt}}}",
        ),
        answers: UNTIL_1_31,
    },
    Feature {
        name: "FlowSchema v1",
        probe: Kind(
            "{apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: FlowSchema, metadata: {name: NAME}, \
             spec: {matchingPrecedence: 9000, priorityLevelConfiguration: {name: exempt}}}",
        ),
        answers: SINCE_1_29,
    },
];
