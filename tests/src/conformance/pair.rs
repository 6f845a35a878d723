//! A request that is sent twice, straight and through a proxy, and how its two answers may differ.

use http::Request;

use super::form::Form;
use crate::HarnessError;
use crate::raw::Http;

/// What the audit log tells these requests by.
pub(super) const AGENT: &str = "conformance";

/// A request as it goes on the wire.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    pub(super) method: &'static str,
    /// Path and query.
    pub(super) target: String,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    pub(super) http: Http,
}

/// What a request is about; everything is empty outside resources.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    pub(super) group: String,
    pub(super) resource: String,
    /// Of the object; a Namespace is in none.
    pub(super) namespace: String,
    /// In the path.
    pub(super) name: String,
    /// In the body of a create.
    pub(super) new_name: String,
    /// Required by the field selector.
    pub(super) selected: String,
}

/// How the answers may differ.
#[derive(Debug, Clone)]
pub(super) enum Rule {
    /// In nothing.
    Same,
    /// A list: by the items of other shards.
    List(Guide),
    /// A watch: by the events of other shards.
    Watch,
    /// A write: by a refusal, at a shard that does not own the object.
    Write,
    /// A create in a dry run: like a write, and the uid is new each time.
    DryCreate,
    /// Only the status is compared: what is in it changes with each request.
    Code,
    /// The proxy refuses what two servers could read in two ways; the API server answers as it likes.
    Unclear,
}

/// What else the API server is asked in order to know the right answer.
#[derive(Debug, Clone, Default)]
pub(super) enum Guide {
    /// Nothing.
    #[default]
    None,
    /// The same without gzip: a filtered list is not compressed.
    Plain(Ask),
    /// The same with `includeObject=Metadata`: whose the rows are.
    Rows(Ask),
    /// The same as JSON, which is YAML: a filtered list in YAML is written like that.
    Json(Ask),
}

/// One request and what is expected of it.
#[derive(Debug, Clone)]
pub(super) struct Pair {
    /// The row of the summary.
    pub(super) verb: &'static str,
    /// The column of the summary.
    pub(super) form: Form,
    pub(super) ask: Ask,
    pub(super) about: About,
    pub(super) rule: Rule,
    /// Whether the pages that follow are asked for too.
    pub(super) paged: bool,
}

// === impl Ask ===

impl Ask {
    /// A request without a body.
    pub(super) fn new(method: &'static str, target: impl Into<String>, form: Form) -> Self {
        let mut headers = vec![("user-agent", AGENT.to_owned())];
        headers.extend(form.accept().map(|accept| ("accept", accept.to_owned())));
        Self { method, target: target.into(), headers, body: Vec::new(), http: Http::Two }
    }

    /// The same with a header more.
    #[must_use]
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same with a body.
    #[must_use]
    pub(super) fn carrying(self, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { body: body.into(), ..self.with("content-type", content_type) }
    }

    /// The same with a parameter more.
    #[must_use]
    pub(super) fn query(mut self, parameter: &str) -> Self {
        if !parameter.is_empty() {
            self.target.push(if self.target.contains('?') { '&' } else { '?' });
            self.target.push_str(parameter);
        }
        self
    }

    /// The same in another form.
    #[must_use]
    pub(super) fn in_form(mut self, form: Form) -> Self {
        self.headers.retain(|(name, _)| *name != "accept");
        self.headers.extend(form.accept().map(|accept| ("accept", accept.to_owned())));
        self
    }

    /// The same without a header.
    #[must_use]
    pub(super) fn without(mut self, header: &str) -> Self {
        self.headers.retain(|(name, _)| *name != header);
        self
    }

    /// For the wire.
    pub(super) fn request(&self) -> Result<Request<Vec<u8>>, HarnessError> {
        let mut request = Request::builder().method(self.method).uri(&self.target);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        request
            .body(self.body.clone())
            .map_err(|error| HarnessError::Answer { url: self.target.clone(), reason: error.to_string() })
    }
}

// === impl Pair ===

impl Pair {
    /// A request of which nothing may differ.
    pub(super) fn same(verb: &'static str, form: Form, ask: Ask) -> Self {
        Self { verb, form, ask, about: About::default(), rule: Rule::Same, paged: false }
    }

    /// The same request by another rule.
    #[must_use]
    pub(super) fn by(self, about: About, rule: Rule) -> Self {
        Self { about, rule, ..self }
    }

    /// Leaves nothing of it to compare but the status.
    pub(super) fn compare_code(&mut self) {
        self.rule = Rule::Code;
    }

    /// For `--only` and for people.
    pub(super) fn describe(&self) -> String {
        let headers: Vec<_> = self.ask.headers.iter().filter(|(name, _)| *name != "user-agent").collect();
        let headers: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let body =
            if self.ask.body.is_empty() { String::new() } else { format!(" {} B", self.ask.body.len()) };
        let http = if self.ask.http == Http::One { " HTTP/1.1" } else { "" };
        format!("{}: {} {}{http} [{}]{body}", self.verb, self.ask.method, self.ask.target, headers.join(", "))
    }
}
