"""Program: serves the dashboards of clusters that no longer run."""
