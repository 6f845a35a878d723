//! Keys: what of an object is hashed. The one place that leads from a rule's key mode and an object to a slot.

use shoal_api::KeyMode;

use crate::slot::{Slot, slot_of, slot_of_uid};

/// What an object is told apart by, as far as it is known. An absent part is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Object<'a> {
    /// `metadata.namespace`; empty for a cluster-scoped object, a Namespace among them.
    pub namespace: &'a str,
    /// `metadata.name`.
    pub name: &'a str,
    /// `metadata.uid`.
    pub uid: &'a str,
}

/// The part of an object that is its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its namespace.
    Namespace,
    /// Its name.
    Name,
    /// Its uid, which the API server chooses when it creates the object.
    Uid,
    /// Nothing: all objects of a cluster go together.
    Cluster,
}

// === impl Part ===

impl Part {
    /// The key of the objects of a namespace in a mode; an empty namespace stands for objects that have none.
    pub fn of(mode: KeyMode, namespace: &str) -> Self {
        match mode {
            KeyMode::Namespace if namespace.is_empty() => Self::Name,
            KeyMode::Namespace => Self::Namespace,
            KeyMode::Name => Self::Name,
            KeyMode::Uid => Self::Uid,
            KeyMode::Cluster => Self::Cluster,
        }
    }

    /// Where the part stands in an object; empty for [`Part::Cluster`].
    pub fn field(self) -> &'static str {
        match self {
            Self::Namespace => "metadata.namespace",
            Self::Name => "metadata.name",
            Self::Uid => "metadata.uid",
            Self::Cluster => "",
        }
    }

    /// The key itself.
    pub fn text(self, object: Object<'_>) -> &str {
        match self {
            Self::Namespace => object.namespace,
            Self::Name => object.name,
            Self::Uid => object.uid,
            Self::Cluster => "",
        }
    }

    /// The slot of an object of that cluster, of which this part must be known.
    pub fn slot(self, cluster: &str, object: Object<'_>) -> Slot {
        match self {
            Self::Uid => slot_of_uid(object.uid),
            Self::Namespace | Self::Name | Self::Cluster => slot_of(cluster, self.text(object)),
        }
    }
}

/// The slot of an object all of whose parts are known.
pub fn slot_in(mode: KeyMode, cluster: &str, object: Object<'_>) -> Slot {
    Part::of(mode, object.namespace).slot(cluster, object)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: Object<'_> = Object { namespace: "shop", name: "web", uid: "u" };
    const NODE: Object<'_> = Object { namespace: "", ..POD };

    #[test]
    fn each_mode_hashes_its_part_of_the_object() {
        for (mode, object, field, slot) in [
            (KeyMode::Namespace, POD, "metadata.namespace", slot_of("hub", "shop")),
            (KeyMode::Namespace, NODE, "metadata.name", slot_of("hub", "web")),
            (KeyMode::Name, POD, "metadata.name", slot_of("hub", "web")),
            (KeyMode::Name, NODE, "metadata.name", slot_of("hub", "web")),
            (KeyMode::Cluster, POD, "", slot_of("hub", "")),
            (KeyMode::Cluster, NODE, "", slot_of("hub", "")),
            (KeyMode::Uid, POD, "metadata.uid", slot_of_uid("u")),
            (KeyMode::Uid, NODE, "metadata.uid", slot_of_uid("u")),
        ] {
            assert_eq!(slot_in(mode, "hub", object), slot, "{mode:?} {object:?}");
            assert_eq!(Part::of(mode, object.namespace).field(), field, "{mode:?} {object:?}");
        }
    }

    #[test]
    fn only_a_uid_means_the_same_slot_in_each_cluster() {
        for mode in [KeyMode::Namespace, KeyMode::Name, KeyMode::Cluster] {
            assert_ne!(slot_in(mode, "hub", POD), slot_in(mode, "east", POD), "{mode:?}");
        }
        assert_eq!(slot_in(KeyMode::Uid, "hub", POD), slot_in(KeyMode::Uid, "east", POD));
    }
}
