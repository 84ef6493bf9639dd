"""The two commands that measure: demo, the question's experiment, and bench."""
