"""Resource samples of all sessions: blocks in the store become tables by the hour, which queries read."""
