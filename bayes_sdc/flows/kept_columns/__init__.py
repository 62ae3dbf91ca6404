"""What leaves beside the counts: which columns are released, and what they tell of small counts."""
