"""A real node on this machine: containerd, kubelet, kube-proxy and CoreDNS, for real Ray pods. Root on Linux only."""
