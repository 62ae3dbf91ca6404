"""Files of persons: keys, combinations, frequencies, missing values."""
