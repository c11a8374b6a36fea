"""Values: what a session is made of. No I/O, no third party."""
