"""Rules: pure where they decide, thin where they act."""
