"""Facts, observations, rules and how they are weighed."""
