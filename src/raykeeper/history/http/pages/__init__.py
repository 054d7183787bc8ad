"""What a browser sees: our own plain pages, and the files of Ray's dashboard."""
