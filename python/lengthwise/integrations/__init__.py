"""One small module for each training framework; each imports its framework only when it is imported itself."""
