"""Reports of audits, searches and replications: tables, figures, checks."""
