"""All methods side by side, and beside published figures."""
