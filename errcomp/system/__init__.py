"""Files and folders written whole or not at all, and work in several processes."""
