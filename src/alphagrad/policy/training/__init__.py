"""Training of the policy that ships with the package: ``python -m alphagrad.policy.training``."""
