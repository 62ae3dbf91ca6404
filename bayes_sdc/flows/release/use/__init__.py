"""What users of a table lose."""
