"""Jobs on Ray clusters of their own, or on one that is there."""
