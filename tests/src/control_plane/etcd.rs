//! Asking etcd through its gateway of HTTP and JSON (etcd `api/etcdserverpb/rpc.proto`).

use http::Request;
use serde_json::{Value, json};

use super::ControlPlane;
use crate::{HarnessError, kubeconfig};

/// Any key, here a zero byte, in base64: only the answer's header is of interest.
const ANY_KEY: &str = "AA==";

// === impl ControlPlane ===

impl ControlPlane {
    /// Compacts etcd to its present revision, so that nothing before it can be read any more. Returns that revision.
    pub async fn compact_etcd(&self) -> Result<u64, HarnessError> {
        let now = self.etcd_post("/v3/kv/range", &json!({"key": ANY_KEY})).await?;
        let revision = &now["header"]["revision"];
        self.etcd_post("/v3/kv/compaction", &json!({"revision": revision, "physical": true})).await?;
        revision.as_str().and_then(|number| number.parse().ok()).ok_or_else(|| HarnessError::Answer {
            url: self.etcd_url(),
            reason: format!("no revision in {now}"),
        })
    }

    async fn etcd_post(&self, path: &str, body: &Value) -> Result<Value, HarnessError> {
        let url = self.etcd_url();
        let failed = |reason: String| HarnessError::Answer { url: format!("{url}{path}"), reason };
        let request = Request::post(path).body(body.to_string().into_bytes());
        let request = request.map_err(|error| failed(error.to_string()))?;
        let client = kubeconfig::anonymous(&url, None).await?;
        client.request(request).await.map_err(|error| failed(error.to_string()))
    }

    fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.etcd.number())
    }
}
