//! What the fuzz targets share: slow, whole-body references that know nothing of the filter's code.

pub mod feed;
pub mod list;
pub mod proto;
pub mod tree;
