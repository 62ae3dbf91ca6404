"""Lancaster's additive model of interactions."""
