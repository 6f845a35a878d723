//! The rules of a ring: what happens to an object of a kind.

use shoal_api::{KeyMode, ResourceRule, RuleMode, RuleScope};

/// The resource rules of a ring, in order.
#[derive(Clone, Debug)]
pub struct Rules(Box<[ResourceRule]>);

/// What happens to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Treatment {
    /// Who sees it and who writes it.
    pub mode: RuleMode,
    /// What of it is hashed.
    pub key: KeyMode,
}

// === impl Rules ===

impl Rules {
    /// Takes the rules as they are written.
    pub fn new(rules: &[ResourceRule]) -> Self {
        Self(rules.into())
    }

    /// What happens to an object of a kind; `namespace` is empty for one without. The first rule that
    /// matches decides; without one every shard reads and the owner writes.
    pub fn treatment(&self, group: &str, resource: &str, namespace: &str) -> Treatment {
        let rule = self.of_kind(group, resource).find(|rule| matches_object(rule, namespace));
        rule.map_or(Treatment::UNMATCHED, Treatment::of)
    }

    /// Whether a list or watch of a kind, in one namespace or (empty) across all, can hold objects
    /// that must be hidden. False only where no rule can say `Sharded` of any of them.
    pub fn may_hide(&self, group: &str, resource: &str, namespace: &str) -> bool {
        if !namespace.is_empty() {
            return self.treatment(group, resource, namespace).mode == RuleMode::Sharded;
        }
        self.of_kind(group, resource).any(|rule| rule.mode == RuleMode::Sharded)
    }

    /// Whether everything that such a list or watch can hold is treated in that one way. Whether a kind has
    /// namespaces is not known here, so across all of them objects of both scopes count.
    pub fn is_uniform(&self, group: &str, resource: &str, namespace: &str, wanted: Treatment) -> bool {
        if !namespace.is_empty() {
            return self.treatment(group, resource, namespace) == wanted;
        }
        [RuleScope::Namespaced, RuleScope::Cluster].into_iter().all(|scope| {
            let mut rules = self.of_kind(group, resource).filter(|rule| reaches(rule, scope));
            let is_last = |rule: &&ResourceRule| rule.namespaces.is_empty();
            let differs = |rule: &ResourceRule| Treatment::of(rule) != wanted;
            rules.find(|rule| differs(rule) || is_last(rule)).is_some_and(|rule| !differs(rule))
        })
    }

    fn of_kind<'a>(&'a self, group: &'a str, resource: &'a str) -> impl Iterator<Item = &'a ResourceRule> {
        self.0.iter().filter(move |rule| names(&rule.groups, group) && names(&rule.resources, resource))
    }
}

// === impl Treatment ===

impl Treatment {
    /// That of an object that no rule names.
    pub const UNMATCHED: Self = Self { mode: RuleMode::SharedRead, key: KeyMode::Namespace };

    fn of(rule: &ResourceRule) -> Self {
        Self { mode: rule.mode, key: rule.key }
    }
}

/// Whether a rule can be about objects of that scope.
fn reaches(rule: &ResourceRule, scope: RuleScope) -> bool {
    let names_a_namespace = !rule.namespaces.is_empty();
    (rule.scope == RuleScope::Any || rule.scope == scope)
        && (scope == RuleScope::Namespaced || !names_a_namespace)
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
            assert_eq!(
                rules.treatment(group, resource, namespace).mode,
                mode,
                "{group}/{resource} in {namespace:?}"
            );
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
        assert_eq!(Rules::new(&[]).treatment("apps", "deployments", "shop"), Treatment::UNMATCHED);
    }

    #[test]
    fn a_rule_that_names_a_namespace_is_not_about_objects_without_one() {
        let named = ResourceRule { namespaces: vec!["a".into()], ..rule("*", "*", Any, Unsharded) };
        let rules = Rules::new(&[named]);
        assert_eq!(rules.treatment("", "nodes", "").mode, SharedRead);
        assert_eq!(rules.treatment("", "pods", "a").mode, Unsharded);
    }

    #[test]
    fn a_list_is_uniform_only_if_no_object_in_it_can_be_treated_otherwise() {
        let by_uid = |scope| ResourceRule { key: KeyMode::Uid, ..rule("*", "*", scope, Sharded) };
        let named = |rule: ResourceRule| ResourceRule { namespaces: vec!["a".into()], ..rule };
        let wanted = Treatment { mode: Sharded, key: KeyMode::Uid };
        for (rules, everywhere, in_a, in_b) in [
            (vec![by_uid(Any)], true, true, true),
            (vec![by_uid(Namespaced)], false, true, true),
            (vec![by_uid(Namespaced), by_uid(Cluster)], true, true, true),
            (vec![by_uid(Namespaced), rule("*", "*", Cluster, SharedRead)], false, true, true),
            (vec![named(by_uid(Any))], false, true, false),
            (vec![named(by_uid(Any)), by_uid(Any)], true, true, true),
            (vec![named(rule("*", "*", Any, Unsharded)), by_uid(Any)], false, false, true),
            (vec![rule("*", "*", Any, Sharded), by_uid(Any)], false, false, false),
            (vec![], false, false, false),
        ] {
            let compiled = Rules::new(&rules);
            let uniform = |namespace| compiled.is_uniform("", "pods", namespace, wanted);
            assert_eq!((uniform(""), uniform("a"), uniform("b")), (everywhere, in_a, in_b), "{rules:?}");
        }
    }
}
