"""One secret of each documented kind, none of them real; put together here, so that no scanner takes them for real."""

from __future__ import annotations

import string

_LETTERS = string.ascii_letters + string.digits


def _random_like(length: int) -> str:
    """Looks random and never changes."""
    return "".join(_LETTERS[(place * place * 7 + place * 11 + 5) % len(_LETTERS)] for place in range(length))


SECRETS = {
    "assignment": "hunter2-of-the-database",
    "quoted": "correct horse battery",
    "aws_key_id": "AKIA" + "IOSFODNN7" + "EXAMPLE",
    "aws_secret": "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY",
    "bearer": "mF_9.B5f-4.1JqM" + _random_like(12),
    "url": "s3cr3t-in-a-url",
    "private_key": "MIIEpAIBAAKCAQEA" + _random_like(48),
    "github": "ghp_" + _random_like(36),
    "hugging_face": "hf_" + _random_like(34),
    "openai": "sk-proj-" + _random_like(48),
    "slack": "xoxb-" + "123456789012-" + _random_like(24),
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiJub2JvZHkifQ." + _random_like(43),
}
"""What must never be seen, by kind."""

LINES = {
    "assignment": f"DB_PASSWORD={SECRETS['assignment']}",
    "quoted": f"{{'api_key': '{SECRETS['quoted']}'}}",
    "aws_key_id": f"signed by {SECRETS['aws_key_id']}, which expired",
    "aws_secret": f"aws_secret_access_key = {SECRETS['aws_secret']}",
    "bearer": f"Authorization: Bearer {SECRETS['bearer']}",
    "url": f"postgresql://reader:{SECRETS['url']}@db.example.com:5432/sales",
    "private_key": f"-----BEGIN RSA PRIVATE KEY-----\n{SECRETS['private_key']}\n-----END RSA PRIVATE KEY-----",
    "github": f"cloning with {SECRETS['github']}",
    "hugging_face": f"no access to the model for {SECRETS['hugging_face']}",
    "openai": f"Incorrect key provided: {SECRETS['openai']}.",
    "slack": f"posting as {SECRETS['slack']} failed",
    "jwt": f"cookie {SECRETS['jwt']} is too old",
}
"""How each of them appears in what a program writes."""

HUNTER2 = "hunter2-of-the-shapes"
"""The one secret of all shapes below."""
PIN = 4827_1159
"""A secret that is a number."""

OTHER_LINES = {
    "short name": f"DB_PASS={HUNTER2} retries=3",
    "camel case": f"connect(dbPass='{HUNTER2}')",
    "flag with a short name": f"mysql --db-pass {HUNTER2} sales",
    "flag in camel case": f"mysql --dbPassword {HUNTER2} sales",
    "connection string": f"Server=db;Uid=sa;Pwd={HUNTER2};",
    "plural": f"api_keys={HUNTER2}",
    "plural of tokens": f"HF_TOKENS={HUNTER2}",
    "list": f"passwords: ['a', '{HUNTER2}']",
    "dictionary": f"credentials={{'value': '{HUNTER2}'}}",
    "command line as Python prints it": f"Command '['mysql', '--password', '{HUNTER2}']' returned 1",
    "at sign in the password of a URL": f"mysql://root:p@{HUNTER2}@db",
    "at sign in the user of a URL": f"mysql://root@server:{HUNTER2}@db",
    "Alibaba access key id": "signed by LTAI" + "5t" + HUNTER2.replace("-", "")[:18],
    "Alibaba temporary key id": "signed by STS." + "NT" + HUNTER2.replace("-", "")[:18],
}
"""How it appears in a text. These came after the session of all kinds was recorded from Ray."""

SHAPES: dict[str, object] = {
    "list": {"password": [HUNTER2]},
    "number": {"password": PIN},
    "object": {"credentials": {"value": HUNTER2}},
    "objects in a list": {"apiKeys": [{"id": 7, "value": HUNTER2}, [HUNTER2]]},
    "short name": {"db_pass": HUNTER2},
    "plural": {"tokens": [HUNTER2]},
    "header": {"headers": {"Authorization": HUNTER2}},
    "name and value": {"env": [{"name": "DB_PASSWORD", "value": HUNTER2}]},
    "key and value": [{"key": "api-key", "value": [HUNTER2]}],
    "command line": {"cmdline": ["mysql", "--password", HUNTER2]},
    "number behind a flag": ["--pwd", PIN],
}
"""How it appears in what is JSON."""
