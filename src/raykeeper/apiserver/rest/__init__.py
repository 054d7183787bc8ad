"""The API over HTTP: paths and JSON as the descriptors say, in the manner of KubeRay's gateway."""
