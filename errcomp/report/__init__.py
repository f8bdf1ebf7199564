"""Reports of results as text, Markdown, LaTeX, HTML and JUnit XML, and figures."""
