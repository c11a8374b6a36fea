"""Tables: the only code that knows pandas."""
