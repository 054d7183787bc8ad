"""The target of a request line is read as Go's HTTP server reads it."""

from __future__ import annotations

import pytest

from raykeeper.web.targets import MalformedTarget, Target, redirect


@pytest.mark.parametrize(
    ("text", "path", "query"),
    [
        ("/a/b", "/a/b", []),
        ("/a%2Fb?x=1&x=2", "/a/b", [("x", "1"), ("x", "2")]),
        ("/a?x=%20&y", "/a", [("x", " "), ("y", "")]),
        ("http://host:80/a", "/a", []),
        ("HTTPS://host", "/", []),
        ("/a#b?c", "/a", []),
        ("/%ff", "/\udcff", []),
        ("/a?u=http://foo/bar", "/a", [("u", "http://foo/bar")]),
        ("http://a/apishttp://b/v1", "/apishttp://b/v1", []),
        ("/apishttp://b/v1", "/apishttp://b/v1", []),
    ],
)
def test_path_and_query(text: str, path: str, query: list[tuple[str, str]]) -> None:
    target = Target.parse(text)
    assert target.path == path
    assert list(target.query) == query


@pytest.mark.parametrize("text", ["", "a/b", "*", "/a%", "/a%zz", "/%4"])
def test_what_is_no_path_is_refused(text: str) -> None:
    if text == "":
        assert Target.parse(text).path == "/"
        return
    with pytest.raises(MalformedTarget):
        Target.parse(text)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("/a/b", "/a/b"),
        ("/a//b", "/a/b"),
        ("//a", "/a"),
        ("/a/", "/a/"),
        ("/a/./b/../c", "/a/c"),
        ("/..", "/"),
        ("/a/..", "/"),
        ("/a/b/.", "/a/b/"),
        ("/%2e%2e/a", "/a"),
        ("/a%2f%2fb", "/a/b"),
        ("/", "/"),
    ],
)
def test_a_path_has_one_clean_spelling(text: str, clean: str) -> None:
    assert Target.parse(text).clean_path == clean


def test_a_redirect_says_nothing_that_a_browser_would_run() -> None:
    response = redirect('/a"><script>', "x=1")
    assert response.headers["Location"] == "/a%22%3E%3Cscript%3E?x=1"
    assert "<script>" not in str(response.text)
    assert redirect("/a\r\nSet-Cookie: b", "").headers["Location"] == "/a%0D%0ASet-Cookie:%20b"
