"""The model of small counts on arrays: truncated distributions, priors, parameters."""
