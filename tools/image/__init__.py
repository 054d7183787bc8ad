"""The container image: Debian's Python, our packages and our programs, as a folder for Docker or as an OCI archive."""
