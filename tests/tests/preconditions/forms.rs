//! The forms in which a write says what it demands of its object.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use shoal_proxy::filter::Encoding;
use shoal_proxy::filter::object::demand::{self, Carrier, Demand};
use shoal_proxy::filter::object::{demand_in_json_patch, json_of_yaml};

/// A kind of object, and one of it to begin with.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) api_version: &'static str,
    pub(crate) name: &'static str,
    pub(crate) collection: &'static str,
    /// What an object has beside its metadata.
    pub(crate) rest: &'static str,
    /// Whether a PUT creates one that is not there.
    pub(crate) put_creates: bool,
}

/// How a write is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Put,
    PutProtobuf,
    Merge,
    Strategic,
    JsonPatch,
    Apply,
    ApplyYaml,
    Delete,
    Evict,
    Bind,
}

pub(crate) const CONFIG_MAP: Kind = core("ConfigMap", "/api/v1/namespaces/default/configmaps", "{}", false);
pub(crate) const POD: Kind = core(
    "Pod",
    "/api/v1/namespaces/default/pods",
    r#"{"spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}]}}"#,
    false,
);
pub(crate) const ENDPOINTS: Kind = core("Endpoints", "/api/v1/namespaces/default/endpoints", "{}", true);
pub(crate) const EVENT: Kind = core(
    "Event",
    "/api/v1/namespaces/default/events",
    r#"{"involvedObject":{"kind":"Pod","name":"p","namespace":"default"}}"#,
    true,
);
pub(crate) const LEASE: Kind = Kind {
    api_version: "coordination.k8s.io/v1",
    name: "Lease",
    collection: "/apis/coordination.k8s.io/v1/namespaces/default/leases",
    rest: "{}",
    put_creates: true,
};
pub(crate) const ROLE: Kind = Kind {
    api_version: "rbac.authorization.k8s.io/v1",
    name: "Role",
    collection: "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    rest: "{}",
    put_creates: true,
};
pub(crate) const DEPLOYMENT: Kind = Kind {
    api_version: "apps/v1",
    name: "Deployment",
    collection: "/apis/apps/v1/namespaces/default/deployments",
    rest: r#"{"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},
             "spec":{"containers":[{"name":"c","image":"i"}]}}}}"#,
    put_creates: false,
};
pub(crate) const WIDGET: Kind = Kind {
    api_version: "test.shoal.dev/v1",
    name: "Widget",
    collection: "/apis/test.shoal.dev/v1/namespaces/default/widgets",
    rest: "{}",
    put_creates: false,
};

const fn core(name: &'static str, collection: &'static str, rest: &'static str, put_creates: bool) -> Kind {
    Kind { api_version: "v1", name, collection, rest, put_creates }
}

// === impl Kind ===

impl Kind {
    pub(crate) fn object(&self, name: &str) -> Value {
        let mut object: Value = serde_json::from_str(self.rest).unwrap();
        object["apiVersion"] = self.api_version.into();
        object["kind"] = self.name.into();
        object["metadata"] = json!({"name": name, "namespace": "default"});
        object
    }
}

// === impl Form ===

impl Form {
    pub(crate) fn method(self) -> Method {
        match self {
            Self::Put | Self::PutProtobuf => Method::PUT,
            Self::Delete => Method::DELETE,
            Self::Evict | Self::Bind => Method::POST,
            _ => Method::PATCH,
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::PutProtobuf => "application/vnd.kubernetes.protobuf",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
            Self::JsonPatch => "application/json-patch+json",
            Self::Apply | Self::ApplyYaml => "application/apply-patch+yaml",
            Self::Put | Self::Delete | Self::Evict | Self::Bind => "application/json",
        }
    }

    /// Whether the write creates an object that is not there.
    pub(crate) fn creates(self, kind: &Kind, subresource: &str) -> bool {
        let is_apply = matches!(self, Self::Apply | Self::ApplyYaml);
        subresource.is_empty() && (is_apply || self == Self::Put && kind.put_creates)
    }

    /// The body as a client writes it that demands nothing; `read` is the object as the server has it, where the form needs
    /// all of it.
    pub(crate) fn body(self, kind: &Kind, subresource: &str, name: &str, read: &Bytes) -> Bytes {
        let labels = json!({"metadata": {"labels": {"x": "y"}}});
        let body = match self {
            Self::PutProtobuf => return read.clone(),
            Self::Merge | Self::Strategic if subresource == "scale" => json!({"spec": {"replicas": 3}}),
            Self::Merge | Self::Strategic => labels,
            Self::JsonPatch if subresource == "scale" => {
                json!([{"op": "replace", "path": "/spec/replicas", "value": 4}])
            }
            Self::JsonPatch => json!([{"op": "add", "path": "/metadata/labels", "value": {"x": "z"}}]),
            Self::Delete => json!({"gracePeriodSeconds": 0}),
            Self::Evict => json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}),
            Self::Bind => json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                                 "target": {"kind": "Node", "name": "n"}}),
            Self::Put | Self::Apply | Self::ApplyYaml if subresource == "scale" => {
                json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 2},
                       "metadata": {"name": name, "namespace": "default"}})
            }
            Self::ApplyYaml => {
                let yaml = format!(
                    "apiVersion: {}\nkind: {}\nmetadata:\n  name: {name}\n  labels: {{x: w}}\n",
                    kind.api_version, kind.name
                );
                return json_of_yaml(&Bytes::from(yaml)).unwrap();
            }
            Self::Put | Self::Apply => kind.object(name),
        };
        Bytes::from(body.to_string())
    }

    /// The same body with that demand, as the proxy writes it.
    pub(crate) fn demanding(self, body: &Bytes, demand: &Demand) -> Bytes {
        let (encoding, carrier) = match self {
            Self::JsonPatch => return demand_in_json_patch(body, demand).unwrap(),
            Self::PutProtobuf => (Encoding::Protobuf, Carrier::Object),
            Self::Delete => (Encoding::Json, Carrier::Options),
            Self::Evict => (Encoding::Json, Carrier::Eviction),
            _ => (Encoding::Json, Carrier::Object),
        };
        demand::demand(body, encoding, carrier, demand).unwrap()
    }
}
