"""The commands of ``bayes-sdc``, one a module; each parses, calls a job, and prints."""
