"""What published totals and holes give away of the counts they were meant to hide."""
