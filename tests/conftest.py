import os

# Programs in tests run once, so compiling fast matters and running fast does not.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
