"""The pods of a RayCluster as they should be. Pure: a spec and the operator's settings in, plain JSON out."""
