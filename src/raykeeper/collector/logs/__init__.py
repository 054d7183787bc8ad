"""Log files of a node: found, followed by inode through rotation, shipped in packs. Ray's own files are the spool."""
