"""From records at risk to a file that may leave: treat, measure again, see what it cost."""
