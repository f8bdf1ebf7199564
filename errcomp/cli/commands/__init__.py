"""The commands: one file for each, imported when the command is called.

The name of the file is the name of the command, and the first line of its docstring is its line in
the help of the whole command line. ``build(parser)`` adds the description, the options and the
function to run; ``EXAMPLES`` end the help. To add a command, add its file.
"""

#: Order of the commands in the help; all others follow by name.
ORDER = (
    "audit",
    "report",
    "measurements",
    "propagate",
    "calibrate",
    "predict",
    "plan",
    "compare",
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

#: Commands that read no files of the user, to whose size limits apply.
WITHOUT_FILES = ("completion", "datasets", "doctor", "readers", "replicate")
