"""The test bed: the real servers that tests run against, started in seconds, harmed on purpose, and ended for sure.

Tests use it through fixtures: `control_plane` and `namespace` (shared by the whole run), `own_control_plane` (may be
killed, paused, compacted), `kwok`, `minio` and `bucket`. People use it through the command `bed`.
"""
