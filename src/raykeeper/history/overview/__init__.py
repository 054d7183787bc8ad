"""What a session and a job were like: timelines, functions, resources, and how two runs differ."""
