"""What Ray's events do not carry, asked of the head's dashboard and stored when it changed."""
