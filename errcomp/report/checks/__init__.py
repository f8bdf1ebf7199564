"""Results as checks in CI: JUnit XML and a Markdown summary, functions of the result alone.

What a check fails on is decided here once, so that exit code, file and summary say the same.
"""
