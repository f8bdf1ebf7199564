"""What people see of calibrated models: tables, figures, checks."""
