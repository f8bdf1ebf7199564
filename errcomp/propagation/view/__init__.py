"""What people see of propagation: tables, figures, checks."""
