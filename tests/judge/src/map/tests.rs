use super::*;

const RING: &str = include_str!("../../tests/fixtures/ring.yaml");
const MAP_2: &str = include_str!("../../tests/fixtures/map-2.yaml");

fn map(slots: &str) -> String {
    format!(
        "apiVersion: mesh.shoal.dev/v1alpha1\nkind: ShardMap\nmetadata: {{name: kcm, namespace: kube-system}}\n\
         spec: {{version: 3, keying: {{algorithm: XXH3-64, slots: 256}}, slots: [{slots}]}}\n"
    )
}

fn owners(maps: &[&str]) -> Result<Owners, InputError> {
    let ring = Ring::parse(RING)?;
    let mut owners = Owners::default();
    for map in maps {
        owners.add(&ring, map)?;
    }
    Ok(owners)
}

#[test]
fn each_claim_has_its_standing() {
    let owners = owners(&[RING, MAP_2]).unwrap();
    assert_eq!(owners.standing("kcm-0", 20, 1), Standing::Owner);
    assert_eq!(owners.standing("kcm-1", 20, 2), Standing::Owner);
    assert_eq!(owners.standing("kcm-0", 20, 2), Standing::OwnedBy("kcm-1"));
    assert_eq!(owners.standing("kcm-0", 20, 3), Standing::OtherEpoch);
    assert_eq!(owners.standing("kcm-2", 20, 3), Standing::Never);
    assert_eq!(owners.standing("kcm-0", 21, 1), Standing::Owner, "draining, not yet let go");
}

#[test]
fn only_slots_with_several_epochs_have_moved() {
    let owners = owners(&[RING, MAP_2]).unwrap();
    assert!(owners.moved(20));
    assert!(!owners.moved(19) && !owners.moved(21) && !owners.moved(255));
}

#[test]
fn an_orphan_slot_is_nobodys() {
    let text = map("{first: 0, last: 255, owner: kcm-0, epoch: 4, state: Orphan}");
    assert_eq!(owners(&[&text]).unwrap().standing("kcm-0", 7, 4), Standing::Never);
}

#[test]
fn maps_of_other_rings_are_passed_over() {
    let ring = Ring::parse(RING).unwrap();
    for other in [MAP_2.replace("name: kcm,", "name: other,"), MAP_2.replace("kube-system", "other")] {
        assert_eq!(Owners::default().add(&ring, &other).unwrap(), 0);
    }
}

#[test]
fn a_map_that_breaks_its_rules_is_refused_whole() {
    let whole = "{first: 0, last: 255, owner: kcm-0, epoch: 1, state: Owned}";
    for (text, why) in [
        (map(""), "slots from 0 on"),
        (map("{first: 0, last: 254, owner: kcm-0, epoch: 1, state: Owned}"), "slots from 255 on"),
        (map("{first: 1, last: 255, owner: kcm-0, epoch: 1, state: Owned}"), "start at slot 0"),
        (map(&format!("{whole}, {whole}")), "start at slot 256"),
        (map("{first: 0, last: 255, epoch: 1, state: Owned}"), "no owner"),
        (map("{first: 0, last: 256, owner: kcm-0, epoch: 1, state: Owned}"), "256"),
        (map(whole).replace("slots: 256", "slots: 512"), "keying"),
        (map(whole).replace("XXH3-64", "FNV-1a"), "keying"),
        (map(whole).replace("Owned", "Lost"), "Lost"),
    ] {
        let error = owners(&[&text]).unwrap_err().to_string();
        assert!(error.contains("ShardMap") && error.contains(why), "{error}, not {why}");
    }
}

#[test]
fn versions_that_contradict_each_other_are_refused() {
    let usurper = map("{first: 0, last: 255, owner: kcm-2, epoch: 1, state: Owned}");
    let error = owners(&[RING, &usurper]).unwrap_err().to_string();
    assert!(error.contains("version 3") && error.contains("slot 0 is kcm-2's at epoch 1"), "{error}");
}
