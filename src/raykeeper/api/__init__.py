"""Kubernetes and Ray custom resources as data: structs, labels, derived names. Imports nothing else of ours."""
