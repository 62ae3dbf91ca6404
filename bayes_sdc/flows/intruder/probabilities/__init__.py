"""What an intruder believes of a count, before and after the release."""
