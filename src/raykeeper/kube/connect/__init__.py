"""How to reach an API server and as whom: kubeconfig, service account, credentials that renew themselves."""
