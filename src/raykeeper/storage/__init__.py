"""The only code that talks to an object store. `open_store` makes one of settings; `ObjectStore` is what it can do."""
