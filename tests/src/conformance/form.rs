//! The encodings and shapes that a client can ask for.

/// What is asked for in `Accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    Json,
    Protobuf,
    Yaml,
    /// What the API server writes only with a feature gate, then JSON.
    CborOrJson,
    /// That alone.
    Cbor,
    Table,
    /// What kubectl sends.
    Kubectl,
    MetadataJson,
    MetadataProtobuf,
    Any,
    None,
    /// A type that there is not.
    Html,
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const KUBECTL: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const METADATA_JSON: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const METADATA_PROTOBUF: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

// === impl Form ===

impl Form {
    /// All of them, in the order of the summary.
    pub(super) const ALL: [Self; 12] = [
        Self::Json,
        Self::Protobuf,
        Self::Yaml,
        Self::CborOrJson,
        Self::Cbor,
        Self::Table,
        Self::Kubectl,
        Self::MetadataJson,
        Self::MetadataProtobuf,
        Self::Any,
        Self::None,
        Self::Html,
    ];

    /// Those that hold the same in five ways.
    pub(super) const MAIN: [Self; 5] =
        [Self::Json, Self::Protobuf, Self::Table, Self::MetadataJson, Self::MetadataProtobuf];

    /// The header; none where there is none.
    pub(super) fn accept(self) -> Option<&'static str> {
        Some(match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
            Self::Yaml => "application/yaml",
            Self::CborOrJson => "application/cbor,application/json",
            Self::Cbor => "application/cbor",
            Self::Table => TABLE,
            Self::Kubectl => KUBECTL,
            Self::MetadataJson => METADATA_JSON,
            Self::MetadataProtobuf => METADATA_PROTOBUF,
            Self::Any => "*/*",
            Self::None => return None,
            Self::Html => "text/html",
        })
    }

    /// The head of its column.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Protobuf => "proto",
            Self::Yaml => "YAML",
            Self::CborOrJson => "CBOR/JSON",
            Self::Cbor => "CBOR",
            Self::Table => "Table",
            Self::Kubectl => "kubectl",
            Self::MetadataJson => "meta JSON",
            Self::MetadataProtobuf => "meta proto",
            Self::Any => "*/*",
            Self::None => "none",
            Self::Html => "html",
        }
    }
}
