"""The messages and services of API server V1. The modules beside the `.proto` files are written by `make generate`.

Names and numbers of fields are KubeRay's, so that its clients work unmodified. What KubeRay does not have begins at
field number 1001.
"""
