"""Files of older programs."""
