"""From the types of `ray.io` to CustomResourceDefinitions: pure functions that need no server."""
