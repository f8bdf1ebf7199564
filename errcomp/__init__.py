"""errcomp: how wrong is a performance prediction, why, and is the published figure true?"""

__version__ = "0.1.0"
