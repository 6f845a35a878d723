//! Answers that are no answers. What needs no filter passes as it came, as it would without a proxy; what needs one and
//! cannot be read is refused, or ends a watch with an ERROR event, which makes clients list again.

use shoal_tests::scripted::{Exchange, Gone};

use crate::form::Form;
use crate::matrix::{Strikes, each_form};

#[tokio::test]
async fn an_error_page_passes_as_it_came() {
    let page = async |_: Form, exchange: Exchange| -> Result<(), Gone> {
        exchange.answer(500, "text/html", "<html>500</html>").await
    };
    let table = "
        GET             500 text/html as it came               1
        LIST json       500 text/html as it came               1
        LIST protobuf   500 text/html as it came               1
        WATCH json      500 text/html as it came               1
        WATCH protobuf  500 text/html as it came               1
        POST            500 text/html as it came               1
        PUT             500 text/html as it came               1
        PATCH           500 text/html as it came               1
        DELETE          500 text/html as it came               1
    ";
    each_form("error_page", Strikes::Each, page, table).await;
}

/// Flow control answers in plain text (apiserver `filters/priority-and-fairness.go`).
#[tokio::test]
async fn too_many_requests_pass_with_their_retry_after() {
    let busy = async |_: Form, exchange: Exchange| -> Result<(), Gone> {
        let head = http::Response::builder().status(429);
        let head = head.header("content-type", "text/plain; charset=utf-8").header("retry-after", "7");
        let mut sending = exchange.head(head.body(()).unwrap())?;
        sending.send("Too many requests, please try again later.\n").await?;
        sending.end()
    };
    let table = "
        GET             429 text/plain; charset=utf-8 as it came, retry after 7  1
        LIST json       429 text/plain; charset=utf-8 as it came, retry after 7  1
        LIST protobuf   429 text/plain; charset=utf-8 as it came, retry after 7  1
        WATCH json      429 text/plain; charset=utf-8 as it came, retry after 7  1
        WATCH protobuf  429 text/plain; charset=utf-8 as it came, retry after 7  1
        POST            429 text/plain; charset=utf-8 as it came, retry after 7  1
        PUT             429 text/plain; charset=utf-8 as it came, retry after 7  1
        PATCH           429 text/plain; charset=utf-8 as it came, retry after 7  1
        DELETE          429 text/plain; charset=utf-8 as it came, retry after 7  1
    ";
    each_form("too_many_requests", Strikes::Each, busy, table).await;
}

/// An empty watch is one that ended before anything happened. An empty list is none.
const EMPTY: &str = "
    GET             empty                                  1
    LIST json       502 InternalError                      1
    LIST protobuf   502 InternalError                      1
    WATCH json      empty                                  1
    WATCH protobuf  empty                                  1
    POST            empty                                  1
    PUT             empty                                  1
    PATCH           empty                                  1
    DELETE          empty                                  1
";

#[tokio::test]
async fn an_empty_answer_is_no_empty_list() {
    let nothing = async |form: Form, exchange: Exchange| -> Result<(), Gone> {
        exchange.answer(200, form.answer().content_type, "").await
    };
    each_form("empty_answer", Strikes::Each, nothing, EMPTY).await;
}

#[tokio::test]
async fn an_answer_without_a_type_is_no_empty_list() {
    let nothing = async |_: Form, exchange: Exchange| exchange.answer(200, "", "").await;
    each_form("untyped_answer", Strikes::Each, nothing, EMPTY).await;
}

/// What is not filtered is the server's own truth; only what is filtered can be told.
const UNREADABLE: &str = "
    LIST json       502 InternalError                      1
    LIST protobuf   502 InternalError                      1
    WATCH json      ERROR event                            1
    WATCH protobuf  ERROR event                            1
";

#[tokio::test]
async fn json_that_is_none_is_not_shown() {
    let garbage = async |form: Form, exchange: Exchange| match form {
        Form::List(_) | Form::Watch(_) => exchange.answer(200, "application/json", "no JSON at all").await,
        _ => form.answer().send(exchange).await,
    };
    each_form("json_that_is_none", Strikes::Each, garbage, &among_unharmed(UNREADABLE)).await;
}

#[tokio::test]
async fn protobuf_that_is_json_is_not_shown() {
    let mislabelled = async |form: Form, exchange: Exchange| match form {
        Form::List(_) => {
            let json = Form::List(shoal_tests::scripted::pods::Form::Json).answer().whole();
            exchange.answer(200, "application/vnd.kubernetes.protobuf", json).await
        }
        Form::Watch(_) => {
            let json = Form::Watch(shoal_tests::scripted::pods::Form::Json).answer().whole();
            exchange.answer(200, "application/vnd.kubernetes.protobuf;stream=watch", json).await
        }
        _ => form.answer().send(exchange).await,
    };
    each_form("protobuf_that_is_json", Strikes::Each, mislabelled, &among_unharmed(UNREADABLE)).await;
}

fn among_unharmed(filtered: &str) -> String {
    format!("GET whole 1\n{}\nPOST whole 1\nPUT whole 1\nPATCH whole 1\nDELETE whole 1", filtered.trim())
}
