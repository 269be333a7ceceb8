class Trouble(Exception):
    """What went wrong and what to do, in words for the user."""
