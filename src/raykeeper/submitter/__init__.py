"""Program: gives one job to Ray and prints what it writes. Small, for it runs once per RayJob."""
