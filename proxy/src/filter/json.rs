//! JSON lists, watches and objects, read by structure only.
//!
//! One incremental pass: [`lexer`] walks the few levels on the way to `metadata`, [`skip`] jumps over everything else.
//! Keys match exactly, as in Kubernetes' decoder (`sigs.k8s.io/json` is case-sensitive); of a repeated key the last
//! one counts.

pub(super) mod event;
pub(super) mod find;
pub(super) mod lexer;
pub(super) mod list;
mod row;
mod series;
mod skip;
pub(super) mod table;
pub(super) mod text;
mod type_meta;
pub(super) mod whole;
