//! What the audit log says of who sent these requests.

use serde::Deserialize;

use super::ground::Ground;
use super::pair::{AGENT, About};
use crate::ring::HUB;
use crate::{HarnessError, evidence};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    verb: String,
    #[serde(default)]
    user_agent: String,
    object_ref: Option<Object>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Object {
    namespace: String,
    name: String,
    resource: String,
    api_group: String,
}

/// Agents of proxied requests that are not in the form that the judge reads; an error of its own if there are none.
pub(super) fn wrong_agents(ground: &Ground) -> Result<Vec<String>, HarnessError> {
    let log = evidence::snapshot(&ground.plane.audit_log())?;
    let lines = log.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Line>(line).ok());
    let (mut proxied, mut claimed, mut wrong) = (0, 0, Vec::new());
    for line in lines.filter(|line| line.user_agent.starts_with(AGENT) && line.user_agent != AGENT) {
        proxied += 1;
        claimed += usize::from(line.user_agent.contains(" :"));
        if !line.is_right() {
            wrong.push(format!("{} {:?}", line.verb, line.user_agent));
        }
    }
    if proxied == 0 || claimed == 0 {
        wrong.push(format!("{proxied} proxied requests and {claimed} claims in the log"));
    }
    Ok(wrong)
}

// === impl Line ===

impl Line {
    fn is_right(&self) -> bool {
        let Some(mark) = self.user_agent.strip_prefix(&format!("{AGENT}/ shoal/kcm/kcm-")) else {
            return false;
        };
        let (shard, claim) = mark.split_once(' ').map_or((mark, None), |(shard, claim)| (shard, Some(claim)));
        let is_write =
            matches!(self.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection");
        matches!(shard, "0@1" | "1@1")
            && match (claim, &self.object_ref) {
                (None, Some(object)) => !is_write || object.about().is_unclaimed(),
                (None, None) => true,
                (Some(claim), Some(object)) => object.is_claimed_by(claim),
                (Some(_), None) => false,
            }
    }
}

// === impl Object ===

impl Object {
    fn about(&self) -> About {
        let is_namespace = self.api_group.is_empty() && self.resource == "namespaces";
        About {
            group: self.api_group.clone(),
            resource: self.resource.clone(),
            namespace: if is_namespace { String::new() } else { self.namespace.clone() },
            name: self.name.clone(),
            ..About::default()
        }
    }

    /// The name of what is created outside namespaces is in the body, which the log may not have.
    fn is_claimed_by(&self, claim: &str) -> bool {
        let about = self.about();
        let Some((slot, "1")) = claim.strip_prefix(':').and_then(|claim| claim.split_once('.')) else {
            return false;
        };
        about.key().is_empty() || slot == shoal_judge::slot_of(HUB, about.key()).to_string()
    }
}
