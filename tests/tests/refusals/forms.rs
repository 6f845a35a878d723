//! Every form of a write, as data: the test is their product with kinds, encodings and dry runs.

use http::StatusCode;
use shoal_tests::protobuf::{message, pack};
use shoal_tests::raw::Encoding;

use crate::fixture::{Kind, Side};

/// One form of a write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    pub(crate) method: &'static str,
    pub(crate) at: At,
    pub(crate) content: Content,
}

/// What the path of a write names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// The collection, whole.
    Collection,
    /// The collection, narrowed to one name by a field selector.
    OneOf,
    /// The object.
    Object,
    /// A subresource of it.
    Sub(&'static str),
}

/// What the body of a write holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// An object that there is not yet.
    New,
    /// What the API server answers at the same path.
    Current,
    Merge,
    Strategic,
    JsonPatch,
    Apply,
    DeleteOptions,
    Binding,
    Eviction,
    TokenRequest,
}

/// What a write of a foreign object is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) code: StatusCode,
    pub(crate) reason: &'static str,
    pub(crate) cause: &'static str,
}

/// For every kind.
const EVERY: [Form; 9] = [
    Form { method: "POST", at: At::Collection, content: Content::New },
    Form { method: "PUT", at: At::Object, content: Content::Current },
    Form { method: "PATCH", at: At::Object, content: Content::Merge },
    Form { method: "PATCH", at: At::Object, content: Content::Strategic },
    Form { method: "PATCH", at: At::Object, content: Content::JsonPatch },
    Form { method: "PATCH", at: At::Object, content: Content::Apply },
    Form { method: "DELETE", at: At::Object, content: Content::DeleteOptions },
    Form { method: "DELETE", at: At::Collection, content: Content::DeleteOptions },
    Form { method: "DELETE", at: At::OneOf, content: Content::DeleteOptions },
];

const STATUS: [Form; 3] = [
    Form { method: "PUT", at: At::Sub("status"), content: Content::Current },
    Form { method: "PATCH", at: At::Sub("status"), content: Content::Merge },
    Form { method: "PATCH", at: At::Sub("status"), content: Content::Apply },
];

const SCALE: [Form; 2] = [
    Form { method: "PUT", at: At::Sub("scale"), content: Content::Current },
    Form { method: "PATCH", at: At::Sub("scale"), content: Content::Merge },
];

const OF_PODS: [Form; 2] = [
    Form { method: "POST", at: At::Sub("binding"), content: Content::Binding },
    Form { method: "POST", at: At::Sub("eviction"), content: Content::Eviction },
];

const FINALIZE: Form = Form { method: "PUT", at: At::Sub("finalize"), content: Content::Current };
const TOKEN: Form = Form { method: "POST", at: At::Sub("token"), content: Content::TokenRequest };

/// Every form that a kind has.
pub(crate) fn forms(kind: &Kind) -> Vec<Form> {
    let subresources: Vec<Form> = match kind.resource {
        "pods" => [STATUS.as_slice(), &OF_PODS].concat(),
        "deployments" => [STATUS.as_slice(), &SCALE].concat(),
        "namespaces" => [STATUS.as_slice(), &[FINALIZE]].concat(),
        "nodes" | "widgets" => STATUS.to_vec(),
        "serviceaccounts" => vec![TOKEN],
        _ => Vec::new(),
    };
    EVERY.into_iter().chain(subresources).collect()
}

// === impl Form ===

impl Form {
    /// How its body can be written; patches are JSON.
    pub(crate) fn encodings(&self) -> &'static [Encoding] {
        match self.content {
            Content::Merge | Content::Strategic | Content::JsonPatch | Content::Apply => &[Encoding::Json],
            _ => &Encoding::ALL,
        }
    }

    pub(crate) fn content_type(&self, encoding: Encoding) -> &'static str {
        match self.content {
            Content::Merge => "application/merge-patch+json",
            Content::Strategic => "application/strategic-merge-patch+json",
            Content::JsonPatch => "application/json-patch+json",
            Content::Apply => "application/apply-patch+yaml",
            _ => encoding.media_type(),
        }
    }

    pub(crate) fn target(&self, kind: &Kind, side: &Side, dry_run: bool) -> String {
        let path = match self.at {
            At::Collection | At::OneOf => kind.collection(&side.key),
            At::Object => kind.object(side),
            At::Sub(subresource) => format!("{}/{subresource}", kind.object(side)),
        };
        let mut query = Vec::new();
        if self.at == At::OneOf {
            query.push(format!("fieldSelector=metadata.name%3D{}", kind.name(side)));
        }
        if self.content == Content::Apply {
            query.push("fieldManager=test&force=true".to_owned());
        }
        if dry_run {
            query.push("dryRun=All".to_owned());
        }
        format!("{path}?{}", query.join("&"))
    }

    /// The refusal forms of DESIGN.md.
    pub(crate) fn expected(&self, kind: &Kind) -> Expected {
        let (code, reason) = match (self.method, self.at) {
            ("POST", At::Collection) => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable"),
            (_, At::Collection | At::OneOf) => (StatusCode::FORBIDDEN, "Forbidden"),
            _ => (StatusCode::CONFLICT, "Conflict"),
        };
        let broad = self.method == "DELETE" && self.at == At::Collection && !kind.namespaced;
        Expected { code, reason, cause: if broad { "NotNarrowed" } else { "ForeignSlot" } }
    }

    /// The name that the answer is about: the one in the path.
    pub(crate) fn subject(&self, kind: &Kind, side: &Side) -> Option<String> {
        matches!(self.at, At::Object | At::Sub(_)).then(|| kind.name(side).to_owned())
    }

    /// Whether the API server itself takes the form, so that it must pass on own objects.
    pub(crate) fn is_served(&self, kind: &Kind) -> bool {
        match (self.at, self.content) {
            (At::Sub(_), _) | (_, Content::Strategic) if kind.is_custom() => false,
            (At::Collection, Content::DeleteOptions) => kind.namespaced,
            // No namespaces are deleted by the collection.
            (At::OneOf, _) => kind.resource != "namespaces",
            _ => true,
        }
    }

    /// The body, where it does not come from the API server.
    pub(crate) fn written(
        &self,
        kind: &Kind,
        side: &Side,
        encoding: Encoding,
        dry_run: bool,
    ) -> Option<Vec<u8>> {
        let (version, kind, name) = (kind.api_version(), kind.type_name, kind.name(side));
        let annotated = r#"{"metadata":{"annotations":{"test":"1"}}}"#;
        let text = match self.content {
            Content::New | Content::Current => return None,
            Content::Merge if self.at == At::Sub("scale") => r#"{"spec":{"replicas":0}}"#.to_owned(),
            Content::Merge | Content::Strategic => annotated.to_owned(),
            Content::JsonPatch => {
                r#"[{"op":"add","path":"/metadata/annotations","value":{"test":"1"}}]"#.to_owned()
            }
            Content::Apply => format!(
                r#"{{"apiVersion":"{version}","kind":"{kind}","metadata":{{"name":"{name}","labels":{{"test":"1"}}}}}}"#
            ),
            Content::DeleteOptions => return Some(options(encoding, dry_run)),
            Content::Binding => return Some(binding(name, encoding)),
            Content::Eviction => return Some(eviction(name, encoding)),
            Content::TokenRequest => return Some(token_request(encoding)),
        };
        Some(text.into_bytes())
    }
}

/// meta/v1 `DeleteOptions`: dryRun 5. With a body the server reads no options from the query.
fn options(encoding: Encoding, dry_run: bool) -> Vec<u8> {
    match encoding {
        Encoding::Json => {
            let all = if dry_run { r#""All""# } else { "" };
            format!(r#"{{"kind":"DeleteOptions","apiVersion":"v1","dryRun":[{all}]}}"#).into_bytes()
        }
        Encoding::Protobuf => {
            let all: &[(u32, &[u8])] = if dry_run { &[(5, b"All")] } else { &[] };
            pack("v1", "DeleteOptions", message(all))
        }
    }
}

/// core/v1 `Binding`: metadata 1, target 2 (`ObjectReference`: kind 1, name 3).
fn binding(name: &str, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Json => format!(
            r#"{{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"{name}"}},"target":{{"kind":"Node","name":"n"}}}}"#
        )
        .into_bytes(),
        Encoding::Protobuf => {
            let (metadata, target) = (message(&[(1, name.as_bytes())]), message(&[(1, b"Node"), (3, b"n")]));
            pack("v1", "Binding", message(&[(1, &metadata), (2, &target)]))
        }
    }
}

/// policy/v1 `Eviction`: metadata 1.
fn eviction(name: &str, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Json => {
            format!(r#"{{"apiVersion":"policy/v1","kind":"Eviction","metadata":{{"name":"{name}"}}}}"#)
                .into_bytes()
        }
        Encoding::Protobuf => {
            pack("policy/v1", "Eviction", message(&[(1, &message(&[(1, name.as_bytes())]))]))
        }
    }
}

/// authentication/v1 `TokenRequest`: spec 2, all of it optional.
fn token_request(encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Json => {
            br#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}"#.to_vec()
        }
        Encoding::Protobuf => pack("authentication.k8s.io/v1", "TokenRequest", message(&[(2, &[])])),
    }
}
