"""Who asks, and what of the history they may see."""
