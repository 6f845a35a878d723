//! The harness: real control planes, proxies and controllers as child processes.
