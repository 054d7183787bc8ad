"""What a session and a job were like: time lines, functions, resources, and how two runs differ."""
