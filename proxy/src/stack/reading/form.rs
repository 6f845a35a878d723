//! The form in which an answer that will be read is asked for, and that of what comes.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header, request::Parts};
use http_body::Body as HttpBody;

use super::unreadable;
use crate::{
    body::{BodyError, Gunzip},
    filter::{Encoding, TableRows},
    request::{
        KubeRequest,
        accept::{Asked, BodyType},
        path::Verb,
        query::Query,
    },
    respond::Refusal,
    stack::intake::uri,
};

const INCLUDE_OBJECT: &str = "includeObject";

/// What is asked of the server, and what the client asked for.
pub(in crate::stack) struct Form {
    asked: Asked,
    rows: TableRows,
}

// === impl Form ===

impl Form {
    /// What to ask for in a request's stead.
    pub(super) fn of(request: &KubeRequest, query: Option<&str>) -> Self {
        let asked = Asked::of(request.accept.as_deref(), request.info.verb == Verb::Watch);
        let query = Query::new(query);
        let is_none = query.get(INCLUDE_OBJECT).is_ok_and(|value| value.as_deref() == Some("None"));
        let rows = if asked.is_table && is_none { TableRows::WithoutObject } else { TableRows::WithObject };
        Self { asked, rows }
    }

    /// Asks the server for it. Where nothing of what the client takes can be read, the server says what it has.
    pub(super) fn ask(&self, parts: &mut Parts) -> Result<(), Refusal> {
        if let Ok(accept) = &self.asked.accept {
            let accept = HeaderValue::from_str(accept)
                .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, "BadRequest", error.to_string()))?;
            parts.headers.insert(header::ACCEPT, accept);
        }
        parts.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if self.rows == TableRows::WithoutObject {
            let mut query = Query::new(parts.uri.query());
            query.set(INCLUDE_OBJECT, "Metadata");
            parts.uri = uri(&query, parts.uri.path())?;
        }
        Ok(())
    }

    /// Refuses a request of whose answers none could be read. For what must not be done before that is known.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        match &self.asked.accept {
            Ok(_) => Ok(()),
            Err(error) => Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", error.to_string())),
        }
    }

    /// How the rows of a table are shown; none where there will be no table.
    pub(in crate::stack) fn tables(&self) -> Option<TableRows> {
        self.asked.is_table.then_some(self.rows)
    }

    /// Which of the two forms that can be read a response has.
    pub(in crate::stack) fn readable(&self, headers: &HeaderMap) -> Result<Encoding, Refusal> {
        super::readable(headers).map_err(|refusal| self.check().err().unwrap_or(refusal))
    }

    /// Calls JSON by the name that the client asked for.
    pub(in crate::stack) fn relabel(&self, headers: &mut HeaderMap) {
        if self.asked.is_yaml && BodyType::of(text(headers, &header::CONTENT_TYPE)) == BodyType::Json {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/yaml"));
        }
    }
}

/// The response without a `Content-Encoding`. gzip comes out although identity was asked for; another coding cannot be read.
pub(in crate::stack) fn decoded<B>(response: Response<B>) -> Result<Response<Gunzip<B>>, Refusal>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    let coding = text(response.headers(), &header::CONTENT_ENCODING).unwrap_or("identity");
    if coding.eq_ignore_ascii_case("identity") {
        return Ok(response.map(Gunzip::plain));
    }
    if !coding.eq_ignore_ascii_case("gzip") {
        return Err(unreadable(&format!("Content-Encoding {coding}, although identity was asked for")));
    }
    let mut response = response.map(Gunzip::gzip);
    response.headers_mut().remove(header::CONTENT_ENCODING);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    Ok(response)
}

fn text<'h>(headers: &'h HeaderMap, name: &header::HeaderName) -> Option<&'h str> {
    headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"))
}

#[cfg(test)]
mod tests;
