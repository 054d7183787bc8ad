"""Every test may use the real servers of the bed, and golden files."""

pytest_plugins = ["bed.fixtures", "bed.crds", "bed.object_stores", "bed.chromium", "bed.node.fixtures", "golden"]
