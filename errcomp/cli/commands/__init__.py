"""The commands, a file each, which is imported when its command is called.

The name of the file is the name of the command, the first line of its docstring what the help of
the whole command line says of it. ``build(parser)`` adds its description, its options and what
runs; ``EXAMPLES`` are what the help ends with. A command is added by adding its file.
"""

#: In which order the help lists them; those that are not named here follow by name.
ORDER = (
    "audit",
    "report",
    "propagate",
    "calibrate",
    "predict",
    "halflife",
    "history",
    "metrics",
    "claims",
    "replicate",
    "datasets",
    "ingest",
    "join",
    "readers",
    "doctor",
    "completion",
)
