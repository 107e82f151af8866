"""Many bundles at once: every one to a report, all to one table, and whether this was seen before."""
