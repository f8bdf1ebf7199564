"""Tables in memory: each row is one of the data."""
