"""Default models against other people's, on tables, texts and images."""
