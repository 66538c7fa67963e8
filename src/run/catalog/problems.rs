//! The errors of `gantry catalog`: each names what there is instead.

use gantry_catalog::Package;

use gantry_core::problem::{Problem, did_you_mean};

/// `catalog a`, `catalogs a, b`
pub fn named(word: &str, names: &[&str]) -> String {
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("{word}{plural} {}", names.join(", "))
}

pub fn suggest<'n>(name: &str, known: impl Iterator<Item = &'n str>, otherwise: &str) -> String {
    match did_you_mean(name, known) {
        Some(near) => format!("did you mean {near:?}?"),
        None => otherwise.to_owned(),
    }
}

pub fn no_item(found: &[(&str, &Package)], item: &str) -> Problem {
    let catalogs: Vec<&str> = found.iter().map(|(catalog, _)| *catalog).collect();
    let names = found.iter().flat_map(|(_, package)| {
        let bundles = package.bundles.values().flat_map(|bundle| [bundle.name.as_str(), bundle.version.as_str()]);
        package.channels.keys().map(String::as_str).chain(bundles)
    });
    let name = found.first().map_or("", |(_, package)| &package.name);
    let problem = Problem::new(format!(
        "the package {name} has no channel, bundle or version {item:?} in {}",
        named("catalog", &catalogs)
    ));
    problem.help(suggest(item, names, &format!("gantry catalog {name} lists its contents")))
}

pub fn no_channel(catalog: &str, package: &Package, channel: &str) -> Problem {
    let name = &package.name;
    let problem = Problem::new(format!("the package {name} has no channel {channel:?} in catalog {catalog}"));
    problem.help(suggest(
        channel,
        package.channels.keys().map(String::as_str),
        &format!("gantry catalog {name} lists them"),
    ))
}

pub fn no_version(catalog: &str, package: &Package, version: &str) -> Problem {
    let name = &package.name;
    let known = package.bundles.values().flat_map(|bundle| [bundle.version.as_str(), bundle.name.as_str()]);
    let problem = Problem::new(format!("the package {name} has no version {version:?} in catalog {catalog}"));
    problem.help(suggest(version, known, &format!("gantry catalog {name} lists them")))
}

/// The error for a package that cannot be read, in OLM's words.
pub fn broken(catalog: &str, package: &Package) -> Option<Problem> {
    let (name, why) = (&package.name, package.broken.as_ref()?);
    let problem = Problem::new(format!(
        "error getting package {name:?} from catalog {catalog:?}: error loading package {name:?}: {why}"
    ));
    Some(problem.help("tell the catalog's publisher; on a cluster nothing can be installed from this package"))
}
