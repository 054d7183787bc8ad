"""The commands beside the server: `raykeeper report`, `import` and `delete`."""
