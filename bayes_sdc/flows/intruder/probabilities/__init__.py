"""What an intruder believes about a count, before and after the release."""
