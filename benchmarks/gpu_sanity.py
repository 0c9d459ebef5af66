import jax, jax.numpy as jnp, numpy as np, traceback
import graphax as gx, llvmlite
from graphax.native import cuda, loaded
print(jax.devices(), jax.__version__, llvmlite.__version__, cuda.GPU.target)
f=lambda x: jnp.sin(x)*jnp.roll(x,1)/(1+x*x)
for n in (1,5,32,33,1000,100001):
    x=jax.random.normal(jax.random.key(0),(n,5))
    got=jax.jit(jax.vmap(gx.jacve(f,backend="native")))(x); want=jax.vmap(jax.jacfwd(f))(x)
    print(n, float(jnp.abs(got-want).max()), loaded.on_gpu.count())
x=jnp.float32([0.,-0.,1e5,3e7,1e20,jnp.inf,jnp.nan,2e38])
print(jax.jit(jax.vmap(gx.kernel(lambda x: (jnp.sin(x),jnp.cos(x),jnp.fmod(x,3.),jnp.exp(x)),backend="native")))(x))
print(np.sin(np.float64(x)),np.cos(np.float64(x)))
g=lambda x: jax.lax.scan(lambda c,_:(c+0.01*f(c),None),x,None,length=50)[0]
x=jax.random.normal(jax.random.key(0),(1000,5))
print(float(jnp.abs(jax.jit(jax.vmap(gx.jacve(g)))(x)-jax.vmap(jax.jacfwd(g))(x)).max()))
try: cuda.load(b"nonsense\0")
except Exception as e: print("refused:",e)
print(jax.jit(lambda x: x+1)(x)[0])
