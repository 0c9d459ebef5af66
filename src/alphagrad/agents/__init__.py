"""Agents that learn to play the game: AlphaZero and PPO."""
