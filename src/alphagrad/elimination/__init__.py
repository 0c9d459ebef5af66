"""A graph and an objective made ready for compiled elimination: what finders, policy and game stand on."""
