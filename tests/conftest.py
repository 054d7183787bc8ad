"""Every test may use the real servers of the bed."""

pytest_plugins = ["bed.fixtures", "bed.node.fixtures"]
