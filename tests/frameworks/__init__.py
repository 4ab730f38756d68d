"""The frameworks around torch: each contract against the library itself."""
