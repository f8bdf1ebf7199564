"""What all figures share: style, words, rows with intervals, points that answer, files."""
