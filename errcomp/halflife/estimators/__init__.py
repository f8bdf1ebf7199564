"""When series of validations expire: each by itself, groups of them, with and without a law."""
