"""What the numbers of a fit say: diagnosis, summary and displays."""
