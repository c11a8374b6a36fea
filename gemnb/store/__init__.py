"""Disk: the only code that touches the store's files."""
