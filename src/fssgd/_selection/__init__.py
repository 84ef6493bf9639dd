"""How many steps to take: scores of a number of steps, and the search for the best one."""
