"""The two jobs, from a file to a folder."""
