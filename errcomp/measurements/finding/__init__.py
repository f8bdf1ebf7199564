"""What a check finds in rows: copies, hidden keys, clusters, drift, patterns, impossible values."""
