"""What all readers share: sources, sheets, rows, and the registry of formats."""
