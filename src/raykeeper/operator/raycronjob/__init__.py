"""RayJobs made by a time table."""
