//! Who may log in at a control plane of the harness, by static token.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::HarnessError;

/// A user and its groups; what it may do is RBAC's matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// The name that the API server and its audit log know.
    pub name: &'static str,
    /// Its groups.
    pub groups: &'static [&'static str],
}

/// The tokens of one control plane, new in each.
#[derive(Debug)]
pub(crate) struct Tokens(BTreeMap<&'static str, String>);

// === impl User ===

impl User {
    /// May do everything.
    pub const ADMIN: Self = Self { name: "admin", groups: &["system:masters"] };
    /// What kube-controller-manager logs in as, before it takes the service accounts of its controllers.
    pub const CONTROLLER_MANAGER: Self = Self::plain("system:kube-controller-manager");
    /// What the controllers beside a ring log in as. They may do everything; a user of its own, so that the audit log
    /// tells them from the ring, which logs in as [`Self::CONTROLLER_MANAGER`].
    pub const SINGLETONS: Self = Self { name: "singletons", groups: &["system:masters"] };
    /// What kube-scheduler logs in as.
    pub const SCHEDULER: Self = Self::plain("system:kube-scheduler");
    /// Plays all nodes, so it may do everything; a user of its own for the audit log.
    pub const KWOK: Self = Self { name: "kwok", groups: &["system:masters"] };

    /// What the test controller over Websites logs in as; a user of its own for the audit log.
    pub const WEBSITES: Self = Self { name: "websites", groups: &["system:masters"] };
    /// What the coordinator logs in as.
    pub const COORDINATOR: Self = Self { name: "shoal-controller", groups: &["system:masters"] };

    /// Those that every control plane has.
    pub(crate) const STOCK: [Self; 7] = [
        Self::ADMIN,
        Self::CONTROLLER_MANAGER,
        Self::SINGLETONS,
        Self::SCHEDULER,
        Self::KWOK,
        Self::WEBSITES,
        Self::COORDINATOR,
    ];

    /// A user without groups, hence without rights until a test binds some.
    pub const fn plain(name: &'static str) -> Self {
        Self { name, groups: &[] }
    }
}

// === impl Tokens ===

impl Tokens {
    /// Makes a token for each of `users` and writes the file for `--token-auth-file`.
    pub(crate) fn create(users: &[User], file: &Path) -> Result<Self, HarnessError> {
        let mut tokens = BTreeMap::new();
        let mut rows = Vec::new();
        for user in users {
            let token = random_token()?;
            // token, name, uid, "groups": kube-apiserver's --token-auth-file
            rows.push(format!("{token},{0},{0},\"{1}\"\n", user.name, user.groups.join(",")));
            tokens.insert(user.name, token);
        }
        fs::write(file, rows.concat()).map_err(HarnessError::io("write", file))?;
        Ok(Self(tokens))
    }

    pub(crate) fn of(&self, user: &User) -> Result<&str, HarnessError> {
        let token = self.0.get(user.name).map(String::as_str);
        token.ok_or_else(|| HarnessError::UnknownUser(user.name.to_owned()))
    }
}

/// 128 random bits in hex.
fn random_token() -> Result<String, HarnessError> {
    let source = Path::new("/dev/urandom");
    let mut bits = [0; 16];
    File::open(source)
        .and_then(|mut file| file.read_exact(&mut bits))
        .map_err(HarnessError::io("read", source))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bits)))
}
