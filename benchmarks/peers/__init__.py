"""Other people's methods, written plainly or called from their libraries."""
