"""One replica at work, one installation per object: lease, election, write fence, neighbours."""
