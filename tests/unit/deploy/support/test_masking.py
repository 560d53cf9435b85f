"""Texts without secrets."""

import base64
import json
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.support.masking import MASK, Masking
from tests.support.authority import page_files
from tests.support.recovering import encoded, recovered

SECRET = "p@ss/w0rd+ü&'\"<x>\\%= 7"
SECRETS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Zl", "Zp"]), min_size=8, max_size=60)


@pytest.mark.parametrize("number", range(len(encoded(SECRET))))
def test_a_secret_is_masked_in_each_form_in_which_a_program_prints_it(number: int) -> None:
    text = f"10:00:01 cannot log in with {encoded(SECRET)[number]}, says the broker\n".encode()
    assert recovered(text, [SECRET]) == [SECRET]
    masked = Masking([SECRET]).masked(text)
    assert recovered(masked, [SECRET]) == []
    assert masked.startswith(b"10:00:01 cannot log in with ")
    assert MASK in masked


@pytest.mark.parametrize(
    "printed",
    [
        "p'ss/w0rd\\u00fc\\u0026\\\"\\u003cx\\u003e",
        "p'ss/w0rdü\\u0026\\\"\\u003cx\\u003e",  # Go's JSON, so Docker's
        "p'ss/w0rd\\u00FC&\\\"<x>",
        "p'ss/w0rd\\u00FC\\u0026\\\"\\u003Cx\\u003E",  # Java's
        "p'ss\\/w0rd\\u00fc&\\\"<x>",
        "p\\'ss/w0rdü&\"<x>",  # a Python string with both quotes
        "p&#39;ss/w0rdü&amp;&#34;&lt;x&gt;",
    ],
)
def test_case_1425_a_secret_is_masked_as_docker_java_and_pages_escape_it(printed: str) -> None:
    # Each of them was left as it was.
    for text in (printed, json.dumps(printed, ensure_ascii=False)[1:-1]) if "\\u" in printed else (printed,):
        assert Masking(["p'ss/w0rdü&\"<x>"]).masked(f"a {text} b".encode()) == b"a **** b"


@given(SECRETS, SECRETS, st.binary(max_size=5))
def test_any_secret_is_masked_wherever_it_stands(secret: str, other: str, around: bytes) -> None:
    text = around.join(each.encode() for each in (*encoded(secret), *encoded(other), secret + other, other + secret))
    masked = Masking([secret, other]).masked(text)
    assert secret.encode() not in masked
    assert base64.b64encode(secret.encode()) not in masked
    assert urllib.parse.quote(secret, safe="").encode() not in masked


def test_a_secret_that_is_a_part_of_another_one_leaves_nothing_of_that() -> None:
    masked = Masking(["tiger", "tiger-lily-1906"]).masked(b"tiger and tiger-lily-1906")
    assert masked == b"**** and ****"


def test_no_line_of_a_private_key_is_left_wherever_the_lines_are(tmp_path: Path) -> None:
    key = Path(page_files(tmp_path)["CONSOLE_TLS_KEY_FILE"]).read_text()
    lines = [line for line in key.splitlines() if not line.startswith("-")]
    texts = [key, json.dumps(key), key.replace("\n", ""), base64.b64encode(key.encode()).decode(), *lines]
    for text in texts:
        masked = Masking([key.strip()]).masked(f"read {text} here".encode())
        assert recovered(masked, [line for line in lines if len(line) > 20]) == []


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ('sasl.jaas.config=... required username="k" password="hunter22";', 'username="k" password="****";'),
        ("sasl.jaas.config='... password=\\\"hunter22\\\";'", 'password=\\"****\\"'),
        ('{"client_secret": "hunter22", "user": "k"}', '{"client_secret": "****", "user": "k"}'),
        ("Authorization: Basic azpodW50ZXIyMg==", "Authorization: Basic ****"),
        ('"authorization": "Bearer eyJhbGciOi.hunter22"', '"authorization": "Bearer ****"'),
        (
            "GET https://k:hunter22@host/path?access_token=hunter22&x=1",
            "https://k:****@host/path?access_token=****&x=1",
        ),
        ("AWS_SECRET_ACCESS_KEY=hunter22 started", "AWS_SECRET_ACCESS_KEY=**** started"),
        ("-----BEGIN PRIVATE KEY-----\nhunter22\n-----END", "-----BEGIN PRIVATE KEY-----****-----END"),
    ],
)
def test_what_only_looks_like_a_secret_is_masked_too(text: str, masked: str) -> None:
    found = Masking([]).masked(text.encode()).decode()
    assert "hunter22" not in found
    assert "azpodW50ZXIyMg" not in found
    assert masked in found


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ('password="it\'s-hunter22" x', 'password="****" x'),
        ("password='so \"hunter22\"' x", "password='****' x"),
        ('{"password": "a\\"hunter22", "user": "k"}', '{"password": "****", "user": "k"}'),
        ('{"password": "hunter22\\\\", "user": "k"}', '{"password": "****", "user": "k"}'),
        ('"password=\\"a\\\\\\"hunter22\\"; x"', '"password=\\"****\\"; x"'),
        ("PASSWORD='hunter22\\' x", "PASSWORD='****' x"),
        ("ssl.key.password = hunter22 x", "ssl.key.password = **** x"),
    ],
)
def test_case_1426_a_value_with_quotes_in_it_and_one_behind_blanks_look_like_a_secret(text: str, masked: str) -> None:
    # One with the other quotes, or behind "= ", was left; of one with its own the rest was.
    assert Masking([]).masked(text.encode()).decode() == masked


def test_json_stays_json_and_what_is_no_secret_stays() -> None:
    status = {"previous_secret": False, "topic": "tokens", "secret": "", "lag": 3, "api_key": "orange-key"}
    text = json.dumps(status).encode()
    assert json.loads(Masking(["hunter22"]).masked(text)) == status


def test_case_1422_a_line_of_a_megabyte_without_a_blank_is_masked_as_well() -> None:
    # It took hours: a pattern looked at the whole line again from each of its characters.
    line = b"0123456789" * 100_000
    assert Masking(["tiger"]).masked(line + b" tiger " + line) == line + b" **** " + line


@pytest.mark.parametrize("printed", [str, repr, json.dumps, urllib.parse.quote, lambda each: each.encode().hex()])
def test_case_1429_a_secret_of_several_short_lines_is_masked(printed: Callable[[str], str]) -> None:
    # Only lines of twelve characters were, and nothing of a password with a line break in it.
    secret = "hunter22\ntiger-lily"
    masked = Masking([secret]).masked(f"a {printed(secret)} b".encode())
    assert masked.strip(b"ab \"'") == MASK
