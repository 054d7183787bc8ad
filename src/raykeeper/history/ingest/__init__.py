"""From event segments to tables: events become partial rows, partial rows become one row for each thing."""
