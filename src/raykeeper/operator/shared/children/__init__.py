"""Objects that belong to another and are not pods: what should be, what is, and what to do about the difference."""
