"""Search in what sessions left: errors, events and log lines, a part at a time, and with a place to go on from."""
