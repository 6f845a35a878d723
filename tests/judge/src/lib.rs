//! Reads API server audit logs and says whether a ring kept its promises.
