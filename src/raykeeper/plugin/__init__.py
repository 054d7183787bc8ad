"""`kubectl raykeeper`: health, failures, logs and support archives of Ray objects, in the terminal."""
