"""How traffic moves from one cluster of a RayService to the next, step by step, through the Gateway API."""
