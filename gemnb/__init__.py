"""Gemini sessions in the notebook."""
