"""Risk of sample uniques by Poisson log-linear models, the standard to compare others with."""
