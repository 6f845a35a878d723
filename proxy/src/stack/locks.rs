//! Room 6 on the way: the shard's own lock in place of the one that the controller knows, and who may write it.

use std::io;

use http::StatusCode;

use super::{Stack, intake::Onward};
use crate::{
    election::{LockNames, Touch},
    ownership::{Ring, Role},
    request::KubeRequest,
    respond::Refusal,
};

impl Stack {
    /// Puts the shard's own lock in place of the one that the controller knows, if the request is about that.
    pub(super) async fn rename_lock<'r>(
        &self,
        ring: &'r Ring,
        request: &KubeRequest,
        onward: &mut Onward,
    ) -> Result<Option<&'r LockNames>, Refusal> {
        let Some(target) = request.target() else { return Ok(None) };
        let locks = &ring.locks;
        let touch = match locks.touch(&request.info.verb, target, request.is_write())? {
            Touch::Create => locks.create(target, &onward.names(request).await?.name)?,
            touch => touch,
        };
        match touch {
            Touch::Lock(lock) => {
                self.may_touch(ring, lock, request, onward).await?;
                onward.rename(request, lock).await?;
                Ok(Some(lock))
            }
            Touch::Collection => {
                onward.select(|name| locks.selected(target, name).map(str::to_owned))?;
                Ok(None)
            }
            Touch::Create | Touch::None => Ok(None),
        }
    }

    /// Whether the controller may read, or write, its lock now. In a ring of files it always may.
    async fn may_touch(
        &self,
        ring: &Ring,
        lock: &LockNames,
        request: &KubeRequest,
        onward: &mut Onward,
    ) -> Result<(), Refusal> {
        let Some(life) = self.life.as_ref() else { return Ok(()) };
        let writes = request.is_write();
        let identity = if writes { onward.lock_holder(request).await? } else { None };
        let (was_haunted, is_haunted) = {
            let mut life = life.lock();
            let was_haunted = life.is_haunted();
            identity.map_or(Ok(()), |identity| life.wrote(&identity)).map_err(|error| unnoted(&error))?;
            (was_haunted, life.is_haunted())
        };
        if was_haunted && !is_haunted {
            // From now on a shard may be claimed.
            self.live.iter().for_each(|live| live.tell());
        }
        match ring.role {
            // Whoever finds no lock makes one, and so tells who it is.
            _ if is_haunted && !writes => Err(absent(lock)),
            _ if is_haunted => Err(unavailable(
                "this proxy began anew beside a controller that it knows nothing of: it leads nothing until that process \
                 has ended",
            )),
            Role::Nobody => Err(unavailable(
                "this proxy has no shard yet: it waits for one of the ring's identity Leases to be free",
            )),
            Role::Standby if writes => {
                let why = format!("this proxy stands by for shard {}, which leads", ring.shard);
                Err(lock.lost(&why))
            }
            Role::Holder if writes && ring.lapses => Err(lock.lost(
                "the proxy lets the lock run out, so that the controller begins anew with what it owns now",
            )),
            Role::Holder | Role::Standby => Ok(()),
        }
    }
}

fn absent(lock: &LockNames) -> Refusal {
    let message = format!("{} {:?} not found", lock.subject(), lock.original);
    Refusal::new(StatusCode::NOT_FOUND, "NotFound", message).about(lock.subject())
}

fn unavailable(why: &str) -> Refusal {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", why).retry_after(1)
}

/// Without the note a later life of this proxy could not tell the controllers apart.
fn unnoted(error: &io::Error) -> Refusal {
    unavailable(&format!("the proxy cannot note which controller it serves in its --tls-dir: {error}"))
}
