"""What the operator refuses before it touches a child, each rule a small function; all violations are told at once."""
