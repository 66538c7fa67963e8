//! The rights that the migration of a CRD's objects needs.

use gantry_core::resource::Resource;
use gantry_migration::ServerMigrator;

/// One of them.
pub struct MigrationRight {
    pub resource: Resource,
    /// `None` for every object of the kind, in all namespaces.
    pub name: Option<String>,
    pub verb: &'static str,
}

/// To read and write the objects of a CRD, to annotate it, and to trim its stored versions.
pub fn rights_for(crd: &str) -> Vec<MigrationRight> {
    let of_crd = Resource::crd();
    let status = Resource { plural: format!("{}/status", of_crd.plural), ..of_crd.clone() };
    let on_crd = [(of_crd.clone(), "get"), (of_crd.clone(), "patch"), (status, "patch")];
    let on_crd = on_crd.map(|(resource, verb)| MigrationRight { resource, name: Some(crd.to_owned()), verb });
    // The name of a CRD is that of its resource and its group.
    let of_objects = crd.split_once('.').map(|(plural, group)| Resource {
        group: group.to_owned(),
        plural: plural.to_owned(),
        ..of_crd
    });
    let on_objects = of_objects.into_iter().flat_map(|resource| {
        ["list", "patch"].map(|verb| MigrationRight { resource: resource.clone(), name: None, verb })
    });
    on_crd.into_iter().chain(on_objects).collect()
}

/// To have the objects written by the server's own migrator, besides. The names of its requests are generated.
pub fn rights_for_server_migrator() -> impl Iterator<Item = MigrationRight> {
    let resource = ServerMigrator::newest_resource();
    ["get", "create", "patch", "delete"].into_iter().map(move |verb| MigrationRight {
        resource: resource.clone(),
        name: None,
        verb,
    })
}
