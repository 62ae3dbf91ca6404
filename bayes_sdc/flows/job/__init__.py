"""The job in one call, and its parts: what is asked for, its steps, and how long they take."""
