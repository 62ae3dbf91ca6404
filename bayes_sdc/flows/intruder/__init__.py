"""What an intruder learns: assumptions, estimators, results, and choosing by them."""
