//! The chart's CRDs are what the types say.

use std::{fs, path::Path};

#[test]
fn the_charts_crds_are_generated_from_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/shoal/crds");
    for (name, generated) in shoal_api::crds::files().unwrap() {
        let committed = fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert_eq!(committed, generated, "{name} is not what the types say; run `make crds`");
    }
}

#[test]
fn every_field_is_described() {
    for (name, yaml) in shoal_api::crds::files().unwrap() {
        let (fields, described) = (yaml.matches(" type: ").count(), yaml.matches(" description: ").count());
        assert!(described * 2 > fields, "{name}: {described} descriptions for {fields} fields");
    }
}
