"""The controller of RayClusters: what should be, what is, and the steps from one to the other."""
