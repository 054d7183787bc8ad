"""What the nightly booking checks."""


def check_balance(amounts, expected):
    total = sum(amounts)
    assert total == expected, f"ledger out of balance: {total} != {expected}"
