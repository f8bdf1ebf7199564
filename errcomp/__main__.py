"""``python -m errcomp``: the same as the command ``errcomp``."""

from errcomp.cli import main

raise SystemExit(main())
