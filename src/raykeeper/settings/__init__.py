"""What every program's settings are read with: flags as Go reads them, single values, environment variables. Pure."""
