"""The neighbour graph of nodes: its communities, linkage, layout and votes."""
