"""What people see of audits, searches and replications: tables, figures, checks."""
