"""Results laid out as tables, and what tables are written to."""
