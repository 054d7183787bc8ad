"""Stores behind a network, through opendal."""
