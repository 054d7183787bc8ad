"""All tasks succeed, and what they add up to is wrong: the driver's own check fails in another module."""

import ray
from ledger import check_balance


@ray.remote
def book(amount):
    return amount * 2


ray.init()
booked = ray.get([book.remote(amount) for amount in range(10)])
check_balance(booked, expected=91)
