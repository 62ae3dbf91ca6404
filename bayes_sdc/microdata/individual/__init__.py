"""Individual risk: closed form, models, intervals, and the risk of a whole file."""
