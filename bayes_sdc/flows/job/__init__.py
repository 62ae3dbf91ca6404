"""The job in parts: what is asked for, its steps, and how long they take."""
