"""Ray on Kubernetes that remembers."""
