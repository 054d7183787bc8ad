"""Program: the operator for RayCluster, RayJob, RayService and RayCronJob."""
