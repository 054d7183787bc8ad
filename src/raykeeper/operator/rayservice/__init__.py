"""RayService: Ray Serve on clusters that take over from each other."""
