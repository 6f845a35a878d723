//! Shoal's Kubernetes API types.
