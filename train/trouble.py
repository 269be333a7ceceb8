class Trouble(Exception):
    """What went wrong and what to do, in words for the user."""


class NotFinite(Trouble):
    """A loss or a gradient is NaN or infinite."""
