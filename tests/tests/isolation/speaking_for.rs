//! A client may speak for others as far as the server lets it: what it says of them arrives as it was sent.

use http::StatusCode;

use crate::ground::Ground;

type Headers<'a> = &'a [(&'a str, &'a str)];

pub(crate) async fn others_by_impersonation(ground: &Ground) {
    let secrets = format!("/api/v1/namespaces/{}/secrets", ground.own);
    let cases: [(Headers<'_>, StatusCode); 8] = [
        (&[("impersonate-user", "jane")], StatusCode::FORBIDDEN),
        (
            &[
                ("Impersonate-User", "jane"),
                ("Impersonate-Group", "a"),
                ("Impersonate-Group", "system:masters"),
            ],
            StatusCode::OK,
        ),
        (
            &[("impersonate-user", "jane"), ("impersonate-uid", "7"), ("impersonate-extra-scope", "x")],
            StatusCode::FORBIDDEN,
        ),
        (&[("impersonate-user", "jane"), ("impersonate-user", "admin")], StatusCode::FORBIDDEN),
        (&[("impersonate-group", "system:masters")], StatusCode::BAD_REQUEST),
        (&[("impersonate_user", "jane")], StatusCode::OK),
        (&[("impersonate-user", "")], StatusCode::OK),
        (&[("x-remote-user", "jane"), ("x-remote-group", "nobody")], StatusCode::OK),
    ];
    for (headers, code) in cases {
        let [direct, seen] = ground.both("GET", &secrets, headers).await;
        assert_eq!(seen.code, direct.code, "{headers:?}: {seen:?}");
        assert_eq!(seen.body, direct.body, "{headers:?}");
        assert_eq!(direct.code, code, "{headers:?}: {direct:?}");
    }
}
