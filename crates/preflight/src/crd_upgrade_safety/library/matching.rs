//! Finds the type that a node is in, and decides whether the library makes its change.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::table::{LIBRARY, LibraryType, Releases, Scalar, SchemaStep, Shape, TypeId};
use crate::crd_upgrade_safety::compare;
use crate::crd_upgrade_safety::json::{Json, JsonMap};
use gantry_core::finding::Surroundings;
use gantry_core::resource::Step;
use gantry_schema::{Sense, is_same_keyword, keywords};

/// Older generators did not write it, whatever the library says, so its absence does not tell the release.
const MAP_TYPE: &str = "x-kubernetes-map-type";

/// The type that a violation is in, and the releases between which the type changes in this way.
pub struct Found {
    /// Some types have the same fields.
    pub embedded: Vec<TypeId>,
    /// The path from the node that is of the type to that of the violation.
    pub way: String,
    /// The number of nodes of the embedded type.
    pub nodes: usize,
    pub from: Releases,
    pub to: Releases,
}

/// The schemas of one version.
pub struct VersionNodes<'n, 'a> {
    live: &'n Json<'a>,
    desired: &'n Json<'a>,
    /// By node and type, the releases whose type the node is of.
    known: HashMap<(*const JsonMap<'a>, TypeId), Releases>,
    /// By node, a hash of what it means.
    meanings: HashMap<*const JsonMap<'a>, u64>,
}

impl<'n, 'a> VersionNodes<'n, 'a> {
    pub fn new(live: &'n Json<'a>, desired: &'n Json<'a>) -> Self {
        VersionNodes { live, desired, known: HashMap::new(), meanings: HashMap::new() }
    }

    /// The largest embedded type whose change explains that of the node at these steps.
    pub fn explain(&mut self, steps: &[Step]) -> Option<Found> {
        let way = schema_steps(steps)?;
        // The nodes from the root to that of the violation, which one side may lack.
        let mut nodes = vec![(self.live.map(), self.desired.map())];
        for step in &way {
            let (live, desired) = nodes.last().copied()?;
            nodes.push((live.and_then(|node| child(node, *step)), desired.and_then(|node| child(node, *step))));
        }
        for (depth, node) in nodes.iter().enumerate() {
            let (Some(live), Some(desired)) = *node else { break };
            let Some((first, _)) =
                keywords::get(live, "properties").and_then(Json::map).and_then(|all| all.iter().next())
            else {
                continue;
            };
            let below = &way[depth..];
            let mut found: Option<Found> = None;
            for embedded in LIBRARY.with_field(first).iter().copied() {
                let [from, to] = [live, desired].map(|node| self.releases_of(node, embedded));
                if from.is_empty() || to.is_empty() {
                    continue;
                }
                let Some((from, to)) = explain_change(embedded, below, nodes[way.len()], from, to) else { continue };
                match &mut found {
                    None => {
                        let nodes = count_nodes(live);
                        found = Some(Found { embedded: vec![embedded], way: path_of(below), nodes, from, to });
                    }
                    Some(found) if (found.from, found.to) == (from, to) => found.embedded.push(embedded),
                    Some(_) => {}
                }
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// The object around the node at these steps; `None` for a node of the resource itself.
    pub fn surroundings(&mut self, steps: &[Step]) -> Option<Surroundings> {
        let way = schema_steps(steps)?;
        let depth = way.iter().rposition(|step| matches!(step, SchemaStep::Property(_))).filter(|depth| *depth > 0)?;
        let (mut live, mut desired) = (self.live.map()?, self.desired.map()?);
        for step in &way[..depth] {
            (live, desired) = (child(live, *step)?, child(desired, *step)?);
        }
        let meaning = [live, desired].map(|node| self.meaning(node));
        Some(Surroundings { meaning, below: path_of(&way[depth..]) })
    }

    fn meaning(&mut self, node: &'n JsonMap<'a>) -> u64 {
        let key = std::ptr::from_ref(node);
        if let Some(known) = self.meanings.get(&key) {
            return *known;
        }
        let mut hash = DefaultHasher::new();
        for (keyword, value) in node.iter().filter(|(keyword, value)| compare::is_compared(keyword, value)) {
            keyword.hash(&mut hash);
            match (keyword, value) {
                ("properties", Json::Map(fields)) => {
                    for (name, field) in fields.iter() {
                        name.hash(&mut hash);
                        field.map().map(|field| self.meaning(field)).hash(&mut hash);
                    }
                }
                ("items" | "additionalProperties", Json::Map(below)) => self.meaning(below).hash(&mut hash),
                _ => value.to_string().hash(&mut hash),
            }
        }
        let meaning = hash.finish();
        self.meanings.insert(key, meaning);
        meaning
    }

    /// The releases whose type has exactly the fields of the node.
    fn releases_of(&mut self, node: &'n JsonMap<'a>, id: TypeId) -> Releases {
        let key = (std::ptr::from_ref(node), id);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let releases = self.compare_fields(node, &LIBRARY.types[id]);
        self.known.insert(key, releases);
        releases
    }

    fn compare_fields(&mut self, node: &'n JsonMap<'a>, of: &'static LibraryType) -> Releases {
        if !is_of_type(node, "object") {
            return Releases::NONE;
        }
        let properties = keywords::get(node, "properties").and_then(Json::map);
        let mut left = if of.fields.is_empty() { Releases::ALL } else { of.releases };
        // Names first: they decide nearly always.
        for (name, _) in properties.into_iter().flat_map(JsonMap::iter) {
            let of_name = of.fields.iter().filter(|field| field.name == name);
            left = left.and(of_name.fold(Releases::NONE, |all, field| all.or(field.releases)));
            if left.is_empty() {
                return left;
            }
        }
        for field in &of.fields {
            match properties.and_then(|all| all.get(field.name)) {
                None => left = left.without(field.releases),
                Some(_) if left.and(field.releases).is_empty() => {}
                Some(child) => {
                    let fits = child.map().map_or(Releases::NONE, |child| self.releases_of_shape(child, &field.shape));
                    left = left.without(field.releases.without(fits));
                }
            }
            if left.is_empty() {
                break;
            }
        }
        left
    }

    fn releases_of_shape(&mut self, node: &'n JsonMap<'a>, shape: &'static Shape) -> Releases {
        let (keyword, kind, inner) = match shape {
            Shape::Any => return Releases::ALL,
            Shape::Scalar(scalar) if is_scalar(node, *scalar) => return Releases::ALL,
            Shape::Scalar(_) => return Releases::NONE,
            Shape::Struct(id) => return self.releases_of(node, *id),
            Shape::List(inner) => ("items", "array", inner),
            Shape::Map(inner) => ("additionalProperties", "object", inner),
        };
        match keywords::get(node, keyword).and_then(Json::map) {
            Some(child) if is_of_type(node, kind) => self.releases_of_shape(child, inner),
            _ => Releases::NONE,
        }
    }
}

/// The releases, of these, between which the type changes as the node did; `None` if there are none.
fn explain_change(
    id: TypeId,
    way: &[SchemaStep<'_>],
    node: (Option<&JsonMap<'_>>, Option<&JsonMap<'_>>),
    from: Releases,
    to: Releases,
) -> Option<(Releases, Releases)> {
    let exists = |release| LIBRARY.node(id, way, release).is_some();
    let (from, to) = match node {
        (Some(live), Some(desired)) => {
            let changes = compare::changes(live, desired);
            let agrees = |is_live: bool, release| {
                let Some(node) = LIBRARY.node(id, way, release) else { return false };
                changes.iter().all(|change| {
                    let value = if is_live { change.live } else { change.desired };
                    let of_library = node.keyword(change.keyword);
                    let is_same = |known: Option<Json<'static>>| {
                        is_same_keyword(change.keyword, value, known.as_ref(), Sense::Everything)
                    };
                    of_library.is_ok_and(is_same)
                })
            };
            if changes.is_empty() {
                return None;
            }
            let agreeing = (from.filter(|release| agrees(true, release)), to.filter(|release| agrees(false, release)));
            // A generator that was raised writes keywords too that the library has had for long.
            let is_of_generator = changes.iter().any(|change| change.keyword == MAP_TYPE) && agreeing != (from, to);
            if is_of_generator {
                return None;
            }
            agreeing
        }
        (Some(_), None) => (from.filter(exists), to.filter(|release| !exists(release))),
        (None, _) => return None,
    };
    (!from.is_empty() && !to.is_empty()).then_some((from, to))
}

/// The same steps as the table has them; `None` if the node is not below properties and items alone.
fn schema_steps(steps: &[Step]) -> Option<Vec<SchemaStep<'_>>> {
    let mut way = Vec::new();
    let mut steps = steps.iter();
    while let Some(step) = steps.next() {
        let Step::Key(keyword) = step else { return None };
        way.push(match (&**keyword, steps.as_slice()) {
            ("properties", [Step::Key(name), ..]) => {
                steps.next();
                SchemaStep::Property(name)
            }
            ("items", _) => SchemaStep::Items,
            ("additionalProperties", _) => SchemaStep::AdditionalProperties,
            _ => return None,
        });
    }
    Some(way)
}

fn path_of(way: &[SchemaStep<'_>]) -> String {
    let name = |step: &SchemaStep<'_>| match *step {
        SchemaStep::Property(name) => format!(".{name}"),
        SchemaStep::Items => ".items".to_owned(),
        SchemaStep::AdditionalProperties => ".additionalProperties".to_owned(),
    };
    way.iter().map(name).collect()
}

fn child<'n, 'a>(node: &'n JsonMap<'a>, step: SchemaStep<'_>) -> Option<&'n JsonMap<'a>> {
    let below = match step {
        SchemaStep::Property(name) => keywords::get(node, "properties")?.map()?.get(name),
        SchemaStep::Items => keywords::get(node, "items"),
        SchemaStep::AdditionalProperties => keywords::get(node, "additionalProperties"),
    };
    below?.map()
}

fn is_of_type(node: &JsonMap<'_>, kind: &str) -> bool {
    keywords::get(node, "type").and_then(Json::text) == Some(kind)
}

fn is_scalar(node: &JsonMap<'_>, scalar: Scalar) -> bool {
    let is_int_or_string = || matches!(keywords::get(node, "x-kubernetes-int-or-string"), Some(Json::Bool(true)));
    match scalar {
        Scalar::Text | Scalar::Time | Scalar::Bytes => is_of_type(node, "string"),
        Scalar::Flag => is_of_type(node, "boolean"),
        Scalar::Int32 | Scalar::Int64 => is_of_type(node, "integer"),
        Scalar::Float => is_of_type(node, "number"),
        // Older generators write a string.
        Scalar::Quantity | Scalar::IntOrString => is_int_or_string() || is_of_type(node, "string"),
    }
}

/// The nodes of a schema.
fn count_nodes(node: &JsonMap<'_>) -> usize {
    let fields = keywords::get(node, "properties").and_then(Json::map).into_iter().flat_map(JsonMap::iter);
    let below = ["items", "additionalProperties"].into_iter().filter_map(|keyword| keywords::get(node, keyword));
    let children = fields.map(|(_, child)| child).chain(below).filter_map(Json::map);
    1 + children.map(count_nodes).sum::<usize>()
}
