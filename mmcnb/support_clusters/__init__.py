"""Support cluster machines: classes, rounds, representatives and expansions."""
