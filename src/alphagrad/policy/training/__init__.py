"""How the policy that ships is taught: ``python -m alphagrad.policy.training``."""
