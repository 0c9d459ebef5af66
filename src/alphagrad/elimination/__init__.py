"""A graph and an objective, prepared for compiled elimination: the basis of finders, policy and game."""
