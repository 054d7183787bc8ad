"""Log files of the past: which there are, where their bytes are in the packs, and how a few of them are read."""
