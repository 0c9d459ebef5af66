"""The command ``python -m alphagrad.policy.training``."""

from .course import main

if __name__ == "__main__":
    main()
