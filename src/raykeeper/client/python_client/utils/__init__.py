"""Builders under KubeRay's names."""
