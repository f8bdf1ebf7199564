"""What people see of half-life: tables, figures, checks."""
