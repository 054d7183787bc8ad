"""Cleans tables."""

import pandas as pd


def drop_duplicates(rows):
    frame = pd.DataFrame(rows)
    return frame.drop_duplicates(subset=["customer_id"])


def normalise(rows):
    return drop_duplicates(rows)["amount"].sum()
