"""Jupyter: the only code that knows IPython, traitlets and widgets."""
