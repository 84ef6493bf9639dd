"""Every iterate of a descent in closed form."""
