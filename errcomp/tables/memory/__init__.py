"""Tables in memory: each row is a row of the data."""
