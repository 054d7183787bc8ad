"""Secrets in free text are masked, whatever is around them, in time that grows with the text alone; the rest stays."""

from __future__ import annotations

import string
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raykeeper.masking import MASK, PATTERNS, is_secret_name, masked_between, masked_text, masked_value
from support.planted_secrets import HUNTER2, LINES, OTHER_LINES, SECRETS

PROSE = st.text(string.ascii_letters + " .\n\"'{}:,ıİß✓", max_size=60)


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_of_each_kind_is_masked_and_what_is_around_it_stays(kind: str) -> None:
    masked = masked_text(f"before it\n{LINES[kind]}\nbehind it")
    assert SECRETS[kind] not in masked
    assert MASK in masked
    assert masked.startswith("before it\n")
    assert masked.endswith("\nbehind it")


@pytest.mark.parametrize("kind", OTHER_LINES)
def test_a_secret_behind_a_less_usual_name_or_in_brackets_is_masked_too(kind: str) -> None:
    line = OTHER_LINES[kind]
    masked = masked_text(f"before it\n{line}\nbehind it")
    assert not any(part in masked for part in (HUNTER2, HUNTER2.replace("-", "")[:18], "p@"))
    assert masked.startswith(f"before it\n{line[:3]}")
    assert masked.endswith("\nbehind it")
    assert masked_text(masked) == masked
    assert masked_value({"text": line}) == {"text": masked_text(line)}


@settings(max_examples=40)
@given(st.permutations(list(LINES)), PROSE)
def test_all_of_them_are_masked_in_any_order_between_any_words(kinds: list[str], between: str) -> None:
    masked = masked_text(f"\n{between}\n".join(LINES[kind] for kind in kinds))
    assert [kind for kind in kinds if SECRETS[kind] in masked] == []
    assert masked_text(masked) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("HF_TOKEN=abc def", "HF_TOKEN=<redacted> def"),
        ("connect(password='a;b c', port=5)", "connect(password='<redacted>', port=5)"),
        ('{"dbPassword": "abc", "port": 5}', '{"dbPassword": "<redacted>", "port": 5}'),
        (r"{\"api_key\": \"abc\", \"n\": 5}", r"{\"api_key\": \"<redacted>\", \"n\": 5}"),
        ("python a.py --hub-token abc --lr 3", "python a.py --hub-token <redacted> --lr 3"),
        ("python a.py --password=abc --lr 3", "python a.py --password=<redacted> --lr 3"),
        ("https://b/k?X-Amz-Signature=ab&n=1", "https://b/k?X-Amz-Signature=<redacted>&n=1"),
        ("https://b/k?sv=1&sig=ab%3D", "https://b/k?sv=1&sig=<redacted>"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic <redacted>"),
        ("AAAABBBBCCCCDDDD\n-----END PRIVATE KEY-----\nrest", "<redacted>\nrest"),
        ("İ token=abc", "İ token=<redacted>"),
        ("password=abc", "password=<redacted>"),
        ("mysql://root:p@ssw0rd@db/sales?x=a@b", "mysql://root:<redacted>@db/sales?x=a@b"),
        ("DB_PASS=abc --db-pass x Uid=sa;Pwd=y;", "DB_PASS=<redacted> --db-pass <redacted> Uid=sa;Pwd=<redacted>;"),
        ("passwords=['a', 'b'], n=3", "passwords=[<redacted>], n=3"),
        ("run(['--token', 'a', '--lr', '3'])", "run(['--token', '<redacted>', '--lr', '3'])"),
        ("['--token', '--lr', '3']", "['--token', '--lr', '3']"),
    ],
)
def test_only_the_value_is_masked(text: str, masked: str) -> None:
    assert masked_text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "",
        "max_tokens=512, tokenizer: bert, token_count=7",
        "SyntaxError: unexpected token: foo",
        "KeyError: 'user-17'",
        "partition_key=3 monkey: 4 key=5",
        "token=None, 'secret': null, password=",
        "git clone ssh://git@example.com/a.git",
        "see https://docs.example.com/a:b and 10.0.0.1:6379",
        "task-sk-12 hf_x ghp_short eyJ.a.b",
        "0b2d767e4b1f2d3bd55bbe371ee51cacc02d6202d0653cee8d8726b2",
        "PWD=/home/ray OLDPWD='/root' pwd: ~/x",
        "pass: 5, fail: 2; bypass=on compass: north forward_pass=0.3s backward-pass: 2 num_pass=3",
        "tokens: 512, total_tokens=1024 prompt tokens: 3.5k",
        "LTAI and LTAI5tshort, requests.get, STS.x",
    ],
)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    assert masked_text(text) == text


@given(st.text(max_size=300))
def test_any_text_is_masked_without_trouble(text: str) -> None:
    assert len(masked_text(text)) >= 0


@given(
    st.sampled_from([word for pattern in PATTERNS for word in pattern.words]), st.text("=:'\"\\ -a\n/@.", max_size=6)
)
def test_no_repetition_of_a_patterns_own_words_takes_long(word: str, between: str) -> None:
    text = (word + between) * 1000
    began = time.process_time()
    masked_text(text)
    took = time.process_time() - began
    assert took < 1 + 1e-4 * len(text), f"{took:.3f} s for {len(text)} characters of {word + between!r}"


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "db.password",
        "apiKey",
        "aws_secret_access_key",
        "client-secret",
        "DB_PASS",
        "dbPass",
        "pwd",
        "api_keys",
    ],
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "tokenizer",
        "key",
        "token_count",
        "partition_key",
        "keys",
        "owner",
        "bypass",
        "forward_pass",
        "imagePullSecrets",
        "",
    ],
)
def test_other_names_are_not(name: str) -> None:
    assert not is_secret_name(name)


@given(st.text(string.ascii_letters + string.digits + "_-é", max_size=90), st.sampled_from(["", *SECRETS.values()]))
def test_the_quick_ways_of_the_walk_find_what_the_patterns_find(text: str, secret: str) -> None:
    for whole in (text + secret, secret + text, secret):
        assert masked_value({"name": whole}) == {"name": masked_text(whole)}


@pytest.mark.parametrize("before", ["", "(step pid=7) "])
def test_lines_after_a_private_key_can_stay_at_their_numbers(before: str) -> None:
    key = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBg", "kqhkiG9w0BAQEF", "-----END PRIVATE KEY-----"]
    lines = ["password=hunter2", *(f"{before}{line}" for line in key), "ValueError: no number"]
    masked = masked_text("\n".join(lines), keeps_lines=True).split("\n")
    assert (len(masked), masked[-1]) == (len(lines), lines[-1])
    assert not any(secret in "\n".join(masked) for secret in ("hunter2", "MIIE", "kqhk"))


@given(st.integers(0, 60), st.integers(0, 60))
def test_a_text_that_is_cut_anywhere_shows_no_part_of_a_secret(one: int, other: int) -> None:
    text, begin, end = "a\nlog in: password=q7Z9k2W4 now\nlast line", min(one, other), max(one, other)
    shown = "\n".join(masked_between(text[:begin], text[begin:end], text[end:]))
    assert not set(shown) & set("q7Z9k2W4")
    assert shown.replace("<redacted>", "") == "".join(
        letter for letter in text[begin:end] if letter not in "q7Z9k2W4"
    ), "and all the rest"


def test_a_text_that_is_cut_in_a_key_shows_none_of_it() -> None:
    lines = ["-----BEGIN PRIVATE KEY-----", *["MIIabcdefgh"] * 20, "-----END PRIVATE KEY-----"]
    text = "\n".join(lines)
    assert set(masked_between(text[:60], text[60:90], text[90:])) == {"<redacted>"}
