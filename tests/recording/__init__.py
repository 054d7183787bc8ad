"""Records failures of real Ray with our collectors, once: `python -m recording [name ...]`."""
