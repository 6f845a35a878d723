//! Room 2: what a request asks for, read exactly as the API server reads it. Pure; no IO.

pub mod accept;
