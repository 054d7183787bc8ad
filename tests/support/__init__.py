"""Scenes, stand-ins and helpers of the tests. What real servers need is in `bed`."""
