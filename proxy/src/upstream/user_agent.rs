//! The User-Agent that makes the API server's audit log the judge: which shard sent a request, and
//! by what right it writes.

use http::HeaderValue;
use shoal_sharding::Slot;

/// The audit log cuts a User-Agent here (apiserver `audit/request.go`).
const LIMIT: usize = 1024;
/// What marks the proxy's token.
const TOKEN: &str = "shoal/";

/// The slot and the epoch that a write is made under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The slot of the object's key.
    pub slot: Slot,
    /// The epoch at which this shard owns it.
    pub epoch: i64,
}

/// The User-Agent sent upstream: the client's own, without any `shoal/` token, then `identity`
/// (` shoal/<ring>/<shard>@<term>`) and the claim of a write.
///
/// Where a writer does not name itself the API server takes what stands before the first `/` for its name in
/// `managedFields` (apiserver `handlers/create.go`, `prefixFromUserAgent`). The client's part therefore always has one.
pub fn extend(client: Option<&HeaderValue>, identity: &str, claim: Option<Claim>) -> HeaderValue {
    let client = client.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let claim = claim.map(|claim| format!(" :{}.{}", claim.slot, claim.epoch)).unwrap_or_default();
    let suffix = format!("{TOKEN}{identity}{claim}");
    let mut agent = without_tokens(client);
    agent.truncate(LIMIT.saturating_sub(suffix.len() + "/ ".len()));
    agent.truncate(agent.trim_end().len());
    agent.push_str(if agent.contains('/') { " " } else { "/ " });
    // Names from the API are visible ASCII; a header that is not would be an empty one.
    HeaderValue::try_from(agent + &suffix).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The client's words without those that could pass for ours. Only ASCII can be here, so any byte
/// is a place to cut.
fn without_tokens(client: &str) -> String {
    if !client.contains(TOKEN) {
        return client.to_owned();
    }
    let words = client.split(' ').filter(|word| !word.contains(TOKEN));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extended(client: &str, claim: Option<Claim>) -> String {
        let sent = HeaderValue::from_str(client).unwrap();
        extend(Some(&sent), "kcm/kcm-0@1", claim).to_str().unwrap().to_owned()
    }

    #[test]
    fn reads_carry_the_shard_and_writes_their_claim() {
        assert_eq!(extended("kubectl/v1", None), "kubectl/v1 shoal/kcm/kcm-0@1");
        let claim = Claim { slot: Slot(17), epoch: 3 };
        assert_eq!(extended("kubectl/v1", Some(claim)), "kubectl/v1 shoal/kcm/kcm-0@1 :17.3");
        assert_eq!(extend(None, "kcm/kcm-0@1", None), "/ shoal/kcm/kcm-0@1");
    }

    #[test]
    fn a_client_cannot_write_a_token() {
        for forged in ["a shoal/x/y@9 :1.1 b", "a xshoal/x/y@9 :1.1 b"] {
            assert_eq!(extended(forged, None), "a :1.1 b/ shoal/kcm/kcm-0@1");
        }
        assert_eq!(extended("shoal/x/y@9", None), "/ shoal/kcm/kcm-0@1");
    }

    #[test]
    fn the_clients_part_is_cut_so_that_ours_survives_the_audit_log() {
        let agent = extended(&"x".repeat(2000), Some(Claim { slot: Slot(255), epoch: 1 }));
        assert_eq!(agent.len(), LIMIT);
        assert!(agent.ends_with("x/ shoal/kcm/kcm-0@1 :255.1"));
    }

    #[test]
    fn the_name_of_the_writer_stays_the_clients() {
        for client in ["", "curl", "manager/v1 (linux)", "two words", "a/b/c"] {
            let agent = extended(client, None);
            assert_eq!(agent.split('/').next(), client.split('/').next(), "{agent}");
        }
    }
}
