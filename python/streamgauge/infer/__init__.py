"""Infers the unstated conditions of a paper: unknowns, a search over them, and necessary conditions."""
