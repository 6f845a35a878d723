//! The rules of a ring: what happens to an object of a kind.

use shoal_api::{ResourceRule, RuleMode, RuleScope};

/// The resource rules of a ring, in order.
#[derive(Clone, Debug)]
pub struct Rules(Box<[ResourceRule]>);

// === impl Rules ===

impl Rules {
    /// Takes the rules as they are written.
    pub fn new(rules: &[ResourceRule]) -> Self {
        Self(rules.into())
    }

    /// What happens to an object of a kind; `namespace` is empty for one without. The first rule that
    /// matches decides; without one every shard reads and the owner writes.
    pub fn mode(&self, group: &str, resource: &str, namespace: &str) -> RuleMode {
        let rule = self.of_kind(group, resource).find(|rule| matches_object(rule, namespace));
        rule.map_or(RuleMode::SharedRead, |rule| rule.mode)
    }

    /// Whether a list or watch of a kind, in one namespace or (empty) across all, can hold objects
    /// that must be hidden. False only where no rule can say `Sharded` of any of them.
    pub fn may_hide(&self, group: &str, resource: &str, namespace: &str) -> bool {
        if !namespace.is_empty() {
            return self.mode(group, resource, namespace) == RuleMode::Sharded;
        }
        self.of_kind(group, resource).any(|rule| rule.mode == RuleMode::Sharded)
    }

    fn of_kind<'a>(&'a self, group: &'a str, resource: &'a str) -> impl Iterator<Item = &'a ResourceRule> {
        self.0.iter().filter(move |rule| names(&rule.groups, group) && names(&rule.resources, resource))
    }
}

fn matches_object(rule: &ResourceRule, namespace: &str) -> bool {
    let in_scope = match rule.scope {
        RuleScope::Any => true,
        RuleScope::Namespaced => !namespace.is_empty(),
        RuleScope::Cluster => namespace.is_empty(),
    };
    in_scope && (rule.namespaces.is_empty() || rule.namespaces.iter().any(|named| named == namespace))
}

fn names(list: &[String], wanted: &str) -> bool {
    list.iter().any(|entry| entry == "*" || entry == wanted)
}

#[cfg(test)]
mod tests {
    use RuleMode::{Sharded, SharedRead, Unsharded};
    use RuleScope::{Any, Cluster, Namespaced};

    use shoal_api::KeyMode;

    use super::*;

    fn rule(group: &str, resource: &str, scope: RuleScope, mode: RuleMode) -> ResourceRule {
        let (groups, resources) = (vec![group.to_owned()], vec![resource.to_owned()]);
        ResourceRule { groups, resources, namespaces: vec![], scope, mode, key: KeyMode::Namespace }
    }

    /// The ring of a stock kube-controller-manager.
    fn kcm() -> Rules {
        let leases = rule("coordination.k8s.io", "leases", Namespaced, Unsharded);
        Rules::new(&[
            ResourceRule { namespaces: vec!["kube-node-lease".into()], ..leases },
            rule("", "namespaces", Cluster, Sharded),
            rule("*", "*", Namespaced, Sharded),
        ])
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = kcm();
        for (group, resource, namespace, mode) in [
            ("apps", "deployments", "shop", Sharded),
            ("", "namespaces", "", Sharded),
            ("", "nodes", "", SharedRead),
            ("rbac.authorization.k8s.io", "clusterroles", "", SharedRead),
            ("coordination.k8s.io", "leases", "kube-node-lease", Unsharded),
            ("coordination.k8s.io", "leases", "shop", Sharded),
            ("example.com", "namespaces", "", SharedRead),
        ] {
            assert_eq!(rules.mode(group, resource, namespace), mode, "{group}/{resource} in {namespace:?}");
        }
    }

    #[test]
    fn a_read_is_filtered_where_something_may_have_to_be_hidden() {
        let rules = kcm();
        assert!(rules.may_hide("", "pods", ""));
        assert!(rules.may_hide("", "pods", "shop"));
        assert!(rules.may_hide("coordination.k8s.io", "leases", ""));
        assert!(!rules.may_hide("coordination.k8s.io", "leases", "kube-node-lease"));
        assert!(!Rules::new(&[rule("*", "*", Any, SharedRead)]).may_hide("", "pods", ""));
    }

    #[test]
    fn an_object_that_no_rule_names_is_read_by_all_and_written_by_its_owner() {
        assert_eq!(Rules::new(&[]).mode("apps", "deployments", "shop"), SharedRead);
    }

    #[test]
    fn a_rule_that_names_a_namespace_is_not_about_objects_without_one() {
        let named = ResourceRule { namespaces: vec!["a".into()], ..rule("*", "*", Any, Unsharded) };
        let rules = Rules::new(&[named]);
        assert_eq!(rules.mode("", "nodes", ""), SharedRead);
        assert_eq!(rules.mode("", "pods", "a"), Unsharded);
    }
}
