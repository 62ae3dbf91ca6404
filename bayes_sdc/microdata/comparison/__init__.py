"""All risk measures of a file side by side."""
