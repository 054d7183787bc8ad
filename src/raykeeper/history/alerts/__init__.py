"""Tells people of jobs that failed: each receiver of each job once, whatever the number of servers."""
