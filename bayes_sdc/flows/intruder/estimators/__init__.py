"""Ways to compute the intruder's probabilities."""
