//! The types of Kubernetes' Go modules that CRDs embed, in each release. `types.txt` is generated, see
//! `crates/testbed/control-plane/library-types`, which describes its format.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use crate::crd_upgrade_safety::json::Json;

/// Smaller types look like types of the CRD's own.
const LEAST_WEIGHT: usize = 3;
/// More than any type of the table has, so that types that contain each other end.
const DEEPEST: usize = 32;

pub static LIBRARY: LazyLock<Library> = LazyLock::new(|| Library::parse(include_str!("types.txt")));

/// Releases of the library: two bits for each minor version, for its first and its newest patch version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Releases(u64);

impl Releases {
    pub const NONE: Self = Releases(0);
    pub const ALL: Self = Releases(u64::MAX);

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn and(self, other: Self) -> Self {
        Releases(self.0 & other.0)
    }

    pub fn or(self, other: Self) -> Self {
        Releases(self.0 | other.0)
    }

    pub fn without(self, other: Self) -> Self {
        Releases(self.0 & !other.0)
    }

    pub fn contains(self, at: u32) -> bool {
        self.0 >> at & 1 == 1
    }

    /// Those of which this is true.
    pub fn filter(self, is_kept: impl Fn(u32) -> bool) -> Self {
        let kept = (0..u64::BITS).filter(|at| self.contains(*at) && is_kept(*at));
        Releases(kept.fold(0, |all, at| all | 1 << at))
    }
}

/// The index of a type.
pub type TypeId = usize;

pub struct Library {
    /// The minor version of the first release.
    oldest: u32,
    newest: u32,
    pub types: Vec<LibraryType>,
    /// The types that have a field of this name and are not too small to be recognized.
    by_field: BTreeMap<&'static str, Vec<TypeId>>,
}

pub struct LibraryType {
    /// `core/v1.PodSpec`
    name: &'static str,
    pub releases: Releases,
    pub fields: Vec<LibraryField>,
    /// The keywords of a node that is of this type.
    keywords: Vec<(Releases, Keywords)>,
}

/// A field of a type, in the releases in which it has this form.
pub struct LibraryField {
    pub name: &'static str,
    pub releases: Releases,
    is_required: bool,
    pub shape: Shape,
    keywords: Keywords,
}

type Keywords = Vec<(&'static str, Json<'static>)>;

pub enum Shape {
    Scalar(Scalar),
    List(Box<Shape>),
    Map(Box<Shape>),
    Struct(TypeId),
    /// What controller-gen does not look into, or only if it is told to, as metadata.
    Any,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    Text,
    Flag,
    Int32,
    Int64,
    Float,
    Quantity,
    IntOrString,
    Time,
    Bytes,
}

/// A node of a type's schema in one release.
pub struct LibraryNode<'l> {
    library: &'l Library,
    release: u32,
    shape: Option<&'l Shape>,
    of: Option<TypeId>,
    keywords: Option<&'l Keywords>,
}

/// One step down a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaStep<'n> {
    Property(&'n str),
    Items,
    AdditionalProperties,
}

impl Library {
    fn parse(text: &'static str) -> Self {
        let mut lines = text.lines();
        let numbers: Vec<u32> = lines.next().unwrap_or_default().split(' ').flat_map(str::parse).collect();
        let [oldest, newest] = numbers[..] else { panic!("types.txt does not begin with two releases") };
        let lines: Vec<&'static str> = lines.collect();
        let names = lines.iter().filter(|line| !line.starts_with(' '));
        let ids: HashMap<&str, TypeId> = names.enumerate().map(|(id, name)| (*name, id)).collect();
        let mut library = Library { oldest, newest, types: Vec::new(), by_field: BTreeMap::new() };
        for line in lines {
            match line.strip_prefix("  ") {
                None => {
                    let (releases, fields, keywords) = (Releases::NONE, Vec::new(), Vec::new());
                    library.types.push(LibraryType { name: line, releases, fields, keywords });
                }
                Some(field) => library.add_field(field, &ids),
            }
        }
        for id in 0..library.types.len() {
            if library.weight(id, DEEPEST) >= LEAST_WEIGHT {
                for field in &library.types[id].fields {
                    let known = library.by_field.entry(field.name).or_default();
                    if known.last() != Some(&id) {
                        known.push(id);
                    }
                }
            }
        }
        library
    }

    fn add_field(&mut self, line: &'static str, ids: &HashMap<&str, TypeId>) {
        let mut words = line.split(' ').peekable();
        let name = words.next().unwrap_or_default();
        let range = words.next_if(|word| word.starts_with(|c: char| c.is_ascii_digit() || c == '-'));
        let releases = range.map_or_else(|| self.range(""), |range| self.range(range));
        let Some(of) = self.types.last_mut() else { return };
        let package = of.name.split('.').next().unwrap_or_default();
        let shape = if name == "=" { Shape::Any } else { Shape::parse(words.next().unwrap_or("o"), package, ids) };
        let read = |word: &'static str| {
            let (keyword, value) = word.split_once('=')?;
            Some((keyword, Json::parse(value).ok()?))
        };
        let keywords: Keywords = words.filter_map(read).collect();
        if name == "=" {
            of.keywords.push((releases, keywords));
            return;
        }
        let (name, is_required) = name.strip_suffix('?').map_or((name, true), |name| (name, false));
        of.releases = of.releases.or(releases);
        of.fields.push(LibraryField { name, releases, is_required, shape, keywords });
    }

    /// `29-31`, `29+-`, `-30.0`, or nothing for all.
    fn range(&self, text: &str) -> Releases {
        let (from, to) = text.split_once('-').unwrap_or_default();
        let bit = |minor: &str, is_patch| {
            let minor: Option<u32> = minor.parse().ok();
            minor.map(|minor| 2 * minor.saturating_sub(self.oldest) + u32::from(is_patch))
        };
        let from = bit(from.trim_end_matches('+'), from.ends_with('+')).unwrap_or(0);
        let to = bit(to.trim_end_matches(".0"), !to.ends_with(".0")).unwrap_or(2 * (self.newest - self.oldest) + 1);
        Releases::ALL.filter(|at| (from..=to).contains(&at))
    }

    /// How many fields a type has, with those of the types in it. Quantities are rare.
    fn weight(&self, id: TypeId, depth: usize) -> usize {
        let of_shape = |mut shape: &Shape| {
            while let Shape::List(inner) | Shape::Map(inner) = shape {
                shape = inner;
            }
            match shape {
                Shape::Struct(inner) if depth > 0 => 1 + self.weight(*inner, depth - 1).min(LEAST_WEIGHT),
                Shape::Scalar(Scalar::Quantity | Scalar::IntOrString) => 2,
                _ => 1,
            }
        };
        let mut weight = 0;
        for field in &self.types[id].fields {
            weight += of_shape(&field.shape);
            if weight >= LEAST_WEIGHT {
                break;
            }
        }
        weight
    }

    /// The types that can be recognized and have a field of this name.
    pub fn with_field(&self, name: &str) -> &[TypeId] {
        self.by_field.get(name).map_or(&[], Vec::as_slice)
    }

    /// `core/v1 PodSpec`; of several types that look the same, the first two.
    pub fn name(&self, ids: &[TypeId]) -> String {
        let mut parts = ids.iter().take(2).map(|id| self.types[*id].name.split_once('.').unwrap_or_default());
        let first = parts.next().unwrap_or_default();
        let other = parts.next().map(|(package, name)| match package == first.0 {
            true => format!(" or {name}"),
            false => format!(" or {package} {name}"),
        });
        format!("{} {}{}", first.0, first.1, other.unwrap_or_default())
    }

    /// The Go module of the type.
    pub fn module(&self, id: TypeId) -> &'static str {
        if self.types[id].name.starts_with("meta/") { "k8s.io/apimachinery" } else { "k8s.io/api" }
    }

    /// `0.29`, the oldest first.
    pub fn names_of(&self, releases: Releases) -> Vec<String> {
        let known = (self.oldest..=self.newest).filter(|minor| {
            let first = 2 * (minor - self.oldest);
            releases.contains(first) || releases.contains(first + 1)
        });
        known.map(|minor| format!("0.{minor}")).collect()
    }

    /// The node of a type at these steps below the root of its schema, in one release; `None` if it has none.
    pub fn node(&self, id: TypeId, steps: &[SchemaStep<'_>], release: u32) -> Option<LibraryNode<'_>> {
        let mut node = LibraryNode { library: self, release, shape: None, of: Some(id), keywords: None };
        for step in steps {
            node = match (step, node.shape, node.of) {
                (SchemaStep::Property(name), _, Some(of)) => {
                    let mut fields = self.types[of].fields.iter();
                    let field = fields.find(|field| field.name == *name && field.releases.contains(release))?;
                    node.at(&field.shape, Some(&field.keywords))
                }
                (SchemaStep::Items, Some(Shape::List(inner)), _)
                | (SchemaStep::AdditionalProperties, Some(Shape::Map(inner)), _) => node.at(inner, None),
                _ => return None,
            };
        }
        Some(node)
    }
}

impl Shape {
    fn parse(text: &str, package: &str, ids: &HashMap<&str, TypeId>) -> Self {
        if let Some(inner) = text.strip_prefix('[') {
            return Shape::List(Box::new(Shape::parse(inner, package, ids)));
        }
        if let Some(inner) = text.strip_prefix('{') {
            return Shape::Map(Box::new(Shape::parse(inner, package, ids)));
        }
        let scalar = match text {
            "s" => Scalar::Text,
            "b" => Scalar::Flag,
            "i" => Scalar::Int32,
            "l" => Scalar::Int64,
            "f" => Scalar::Float,
            "q" => Scalar::Quantity,
            "x" => Scalar::IntOrString,
            "t" => Scalar::Time,
            "y" => Scalar::Bytes,
            _ => {
                let id = ids.get(text).or_else(|| ids.get(&*format!("{package}.{text}")));
                return id.map_or(Shape::Any, |id| Shape::Struct(*id));
            }
        };
        Shape::Scalar(scalar)
    }
}

impl<'l> LibraryNode<'l> {
    fn at(&self, shape: &'l Shape, keywords: Option<&'l Keywords>) -> Self {
        let of = if let Shape::Struct(id) = shape { Some(*id) } else { None };
        LibraryNode { library: self.library, release: self.release, shape: Some(shape), of, keywords }
    }

    /// The value of a keyword; `Err` if the library does not decide it.
    pub fn keyword(&self, name: &str) -> Result<Option<Json<'static>>, Undetermined> {
        let text = |text: &'static str| Some(Json::Text(text.into()));
        let of = self.of.map(|id| &self.library.types[id]);
        if name == "required" {
            let fields = of.ok_or(Undetermined)?.fields.iter();
            let required = fields.filter(|field| field.is_required && field.releases.contains(self.release));
            let names: Vec<Json<'static>> = required.map(|field| Json::Text(field.name.into())).collect();
            return Ok((!names.is_empty()).then_some(Json::List(names)));
        }
        let of_type = of.into_iter().flat_map(|of| &of.keywords).filter(|(since, _)| since.contains(self.release));
        let of_type = of_type.flat_map(|(_, keywords)| keywords);
        let mut known = self.keywords.into_iter().flatten().chain(of_type);
        if let Some((_, value)) = known.find(|(keyword, _)| *keyword == name) {
            return Ok(Some(value.clone()));
        }
        let scalar = match self.shape {
            Some(Shape::Scalar(scalar)) => *scalar,
            Some(Shape::Any) => return Err(Undetermined),
            _ if matches!(name, "type" | "format" | "anyOf" | "pattern") => return Err(Undetermined),
            _ => return Ok(None),
        };
        Ok(match (name, scalar) {
            (_, Scalar::Quantity | Scalar::IntOrString) => return Err(Undetermined),
            ("type", Scalar::Text | Scalar::Time | Scalar::Bytes) => text("string"),
            ("type", Scalar::Flag) => text("boolean"),
            ("type", Scalar::Int32 | Scalar::Int64) => text("integer"),
            ("type", Scalar::Float) => text("number"),
            ("format", Scalar::Int32) => text("int32"),
            ("format", Scalar::Int64) => text("int64"),
            ("format", Scalar::Time) => text("date-time"),
            ("format", Scalar::Bytes) => text("byte"),
            _ => None,
        })
    }
}

/// The library does not decide a keyword: the program does that writes the schema.
#[derive(Debug)]
pub struct Undetermined;
