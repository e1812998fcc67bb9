"""Convex relaxations of maximum margin clustering, for few rows."""
