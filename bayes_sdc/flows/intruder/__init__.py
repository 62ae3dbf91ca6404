"""What an intruder learns: assumptions, estimators, the result, and choosing by it."""
