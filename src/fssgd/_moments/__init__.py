"""The sums over the rows that least squares needs, and the validation of what is summed."""
