"""Ray's jobs, nodes, tasks and log files, read from tables, polled answers and logs. No HTTP in here."""
